"""Requests from the configurator, which checks, tests and saves models as trees of XML elements.

The page edits the XML elements themselves. The page, the configuration reader and ``docs/CONFIG.md`` use the same
declaration of elements and keys. The page can therefore set everything that the simulator supports, and nothing else.
"""

from __future__ import annotations

import csv
import math
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree

from wavesim_sdk.errors import ConfigError, WaveSimError
from wavesim_sdk.geodesy import Origin
from wavesim_sdk.guidance.mission_files import parse_mission
from wavesim_sdk.log_validation import is_number, is_short_text
from wavesim_viz import model_files
from wavesim_viz.command_runner import run_wavesim
from wavesim_viz.equipment import described_instruments, instrument
from wavesim_viz.hull_fit import HullStore
from wavesim_viz.mesh_job import MeshJob, mesh_arguments
from wavesim_viz.page_content import InstrumentInfo, ModelInfo
from wavesim_viz.page_protocol import (
    ElementRule,
    HullFile,
    HullProperties,
    ImportedMission,
    ImportedVessel,
    MeshJobState,
    ModelCheck,
    ModelEntry,
    ReceivedFile,
    SavedFile,
    SavedMission,
    SavedModel,
    SimulatedMotion,
    VehicleEntry,
    VehicleInstruments,
    XmlTree,
)
from wavesim_viz.scene import model_info
from wavesim_viz.uploads import MOST_UPLOAD, FileStore, clean_name
from wavesim_viz.vessel_import import import_vessel
from wavesim_viz.xml_trees import RequestFailed, classes, parse, root_of, to_element, to_text, to_tree
from wavesim_world.config import LoadedConfig, Model, library, load, load_text
from wavesim_world.config.build import read_models
from wavesim_world.config.sensors import InstrumentConfig
from wavesim_world.config.validation import check_model
from wavesim_world.hull_reader import FORMATS
from wavesim_world.ocean.bed import sea_bed

MOST_SECONDS = 600.0
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,60}\.xml")


class Configurator:
    """Handler of requests from the page. It answers with plain data, and writes files only in ``folder`` and below it."""

    def __init__(self, folder: Path, configuration: Callable[[], str]) -> None:
        self.folder, self._configuration = folder, configuration
        self.uploads, self.results = FileStore(), FileStore()
        self.hulls = HullStore(self.uploads, self.results)
        self.mesh_job = MeshJob(folder)

    # -- contents ----------------------------------------------------------------------------------

    def _sources(self) -> dict[str, tuple[Model, Path]]:
        """Map each model name to the model and its file. The models come from the library, the scene and the working
        folder.
        """
        found = {}
        for m in library().values():
            found[m.name] = (m, Path(m.place.rpartition(":")[0]))
        own = [Path(f)] if (f := self._configuration()).endswith(".xml") else []
        for path in [*own, *sorted(self.folder.glob("*.xml"))]:
            try:
                models = read_models(path)
            except WaveSimError:  # another kind of file, or an unfinished one
                continue
            for m in models.values():
                found[m.name] = (m, Path(m.place.rpartition(":")[0]))
        return found

    def models(self, _query: Any) -> list[ModelEntry]:
        """List all models that a user can open."""
        return [
            {"name": m.name, "title": m.title, "type": m.type, "file": path.name}
            for m, path in self._sources().values()
        ]

    def model(self, query: Any) -> XmlTree:
        """Return one model as a tree."""
        name = str(query.get("name", ""))
        if name not in (known := self._sources()):
            raise RequestFailed(f"unknown model '{name}'")
        for element in parse(known[name][1].read_bytes()).iter("model"):
            if element.get("name") == name:
                return to_tree(element)
        raise RequestFailed(f"the file of '{name}' has changed and no longer contains this model")

    def schema(self, _query: Any) -> dict[str, ElementRule]:
        """Describe every element of a model, including its instruments, with the unit, default, range and meaning of
        each key.
        """
        return classes(Model, {})

    def _configurations(self) -> dict[str, Path]:
        """Map file names to configurations: the configuration of the scene, and those in the working folder."""
        own = [Path(f)] if (f := self._configuration()).endswith(".xml") else []
        found: dict[str, Path] = {}
        for path in [*own, *sorted(self.folder.glob("*.xml"))]:
            if path.name not in found and root_of(path) == "wavesim":
                found[path.name] = path
        return found

    def vehicles(self, _query: Any) -> list[VehicleEntry]:
        """List all bodies, from all configurations, whose own instruments can be edited."""
        found: list[VehicleEntry] = []
        for name, path in self._configurations().items():
            try:
                root = parse(path.read_bytes())
            except (RequestFailed, OSError):
                continue
            found += [
                {"file": name, "name": b.get("name", ""), "model": b.get("model", "")}
                for b in root.iterfind("fleet/*")
                if b.tag in ("vehicle", "buoy")
            ]
        return found

    def vehicle(self, query: Any) -> VehicleInstruments:
        """Return the data of a body in a configuration: its own <sensors>, the drawing of its model, and the
        instruments that it inherits.
        """
        path = self._configuration_of(query)
        element = _body(parse(path.read_bytes()), str(query.get("name", "")))
        own = element.find("sensors")
        model, instruments, inherited = self._describe_body(load(path), element)
        return {
            "file": path.name,
            "sensors": to_tree(own) if own is not None else None,
            "look": model,
            "instruments": instruments,
            "given": inherited,
        }

    def _configuration_of(self, query: Any) -> Path:
        name, known = str(query.get("file", "")), self._configurations()
        if name not in known:
            raise RequestFailed(f"no configuration '{name}' here")
        return known[name]

    @staticmethod
    def _describe_body(loaded: LoadedConfig, element: Any) -> tuple[ModelInfo, list[InstrumentInfo], list[str]]:
        """Return the drawing and all instruments of a body, as the configuration reader resolves them, and the names of
        the inherited instruments.
        """
        body = next(b for b in loaded.config.fleet.bodies if b.name == element.get("name"))
        own = {i.name for i in body.sensors.instruments} if body.sensors is not None else set()
        suite = loaded.suite(body)
        inherited = [i.name for i in suite if i.name not in own]
        return model_info(loaded.model(body.model)), _instruments(suite, loaded), inherited

    def import_model(self, body: Any) -> list[XmlTree]:
        """Read the models of an uploaded file, in WaVeSim's format or in a format that `wavesim vehicles import` reads."""
        name, text = Path(_word(body, "file", "model.xml")).name, _of(str, body.get("text", ""), "text")
        if not name or name == "..":
            raise RequestFailed("the file has no name")
        if name.endswith(".xml"):
            return [to_tree(m) for m in parse(text.encode()).iter("model")]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_text(text)
            more = [f"--section={s}"] if (s := _word(body, "section")) else []
            xml = run_wavesim(["vehicles", "import", str(path), *more], Path(folder))
        return [to_tree(m) for m in parse(xml.encode()).iter("model")]

    # -- uploads --------------------------------------------------------------------------------------

    def upload(self, body: Any) -> ReceivedFile:
        """Keep an uploaded file until another request uses it."""
        name, data = clean_name(body.get("file")), body["data"]
        if not data:
            raise RequestFailed(f"{name.name} is empty")
        return {"upload": self.uploads.add(str(name), data), "file": str(name), "size": len(data)}

    def hull_files(self, _query: Any) -> list[str]:
        """List the hull files in the working folder."""
        return sorted(p.name for p in self.folder.iterdir() if p.suffix.lower()[1:] in FORMATS and p.is_file())

    def open_hull(self, body: Any) -> HullFile:
        """Read a hull file, either uploaded or from the working folder."""
        return self.hulls.open(*self._hull_content(body))

    def _hull_content(self, body: Any) -> tuple[str, bytes]:
        """Return the name and the content of a hull file that a request names."""
        if "upload" in body:
            return self.uploads.get(body["upload"])
        name = str(body.get("file", ""))
        if name not in self.hull_files(None):
            raise RequestFailed(f"there is no hull file '{name}' in the working folder")
        path = self.folder / name
        if path.stat().st_size > MOST_UPLOAD:
            raise RequestFailed(f"{name} is larger than {MOST_UPLOAD >> 20} MiB; simplify the mesh")
        return name, path.read_bytes()

    def start_from_mesh(self, body: Any) -> MeshJobState:
        """Start to compute a model from the mesh in a hull file."""
        arguments = mesh_arguments(body)
        return self.mesh_job.start(*self._hull_content(body), arguments)

    def from_mesh(self, _query: Any) -> MeshJobState:
        """Return the progress of the model that is being computed."""
        return self.mesh_job.state()

    def cancel_from_mesh(self, _body: Any) -> MeshJobState:
        """Stop computing a model."""
        return self.mesh_job.cancel()

    def fit_hull(self, body: Any) -> HullProperties:
        """Place a hull in body axes and return its properties."""
        return self.hulls.fit(body)

    def hull_model(self, body: Any) -> XmlTree:
        """Return an initial model for a hull, with estimated coefficients."""
        return self.hulls.model(body)

    def import_vessel(self, body: Any) -> ImportedVessel:
        """Read the uploaded files of a vessel, or of a panel code."""
        return import_vessel(body, self.uploads, self.results)

    def _supply(self, model: Any, folder: Path) -> dict[str, bytes]:
        """Copy the files named in a model into a folder, and return them."""
        places = [self.folder, *sorted({path.parent for _, path in self._sources().values()})]
        return model_files.supply(model, folder, self.results, places)

    # -- checking and testing -------------------------------------------------------------------------

    def check(self, body: Any) -> ModelCheck:
        """Check a model with the configuration reader. Return the result and, if the model can be simulated, its
        drawing.
        """
        try:
            with tempfile.TemporaryDirectory() as folder:
                self._supply(body.get("model"), Path(folder))
                model = self._read(body.get("model"), Path(folder))
                hull = model_files.hull_triangles(model, Path(folder))
        except RequestFailed:
            raise
        except WaveSimError as error:
            return {"ok": False, "error": getattr(error, "message", str(error))}
        suite = model.sensors.instruments if model.sensors is not None else ()
        answer: ModelCheck = {
            "ok": True,
            "look": model_info(model),
            "instruments": _instruments(suite),
            "hull": hull,
            "given": [],
        }
        return answer

    def check_instruments(self, body: Any) -> ModelCheck:
        """Use the configuration reader to check a vehicle whose own instruments were changed. Return the result."""
        try:
            _, loaded, element = self._with_instruments(body)
            model, instruments, inherited = self._describe_body(loaded, element)
            return {"ok": True, "look": model, "instruments": instruments, "given": inherited}
        except RequestFailed:
            raise
        except WaveSimError as error:
            return {"ok": False, "error": getattr(error, "message", str(error))}

    def _with_instruments(self, body: Any) -> tuple[str, LoadedConfig, Any]:
        """Change the instruments of one body in a configuration. Return the new text, the configuration, and the body's
        element.
        """
        base = self._configuration_of(body)
        root = parse(base.read_bytes())
        element = _body(root, str(body.get("vehicle", "")))
        for old in element.findall("sensors"):
            element.remove(old)
        if body.get("sensors"):
            element.append(to_element(body["sensors"]))
        text = to_text(root)
        return text, load_text(text, base.parent), element

    @staticmethod
    def _read(tree: Any, folder: Path) -> Model:
        """Check the model that a tree describes, and write it to ``folder``/model.xml."""
        root = etree.Element("models")
        root.append(to_element(tree))
        path = folder / "model.xml"
        path.write_text(to_text(root))
        (model,) = read_models(path).values() or (None,)
        assert model is not None
        check_model(model)
        return model

    def test_drive(self, body: Any) -> SimulatedMotion:
        """Simulate the model. The ``commands`` (values by actuator) apply after the first second. Return the motion of
        the model, with one column per quantity.
        """
        seconds = body.get("seconds", 60.0)
        if not is_number(seconds) or not 1.0 <= seconds <= MOST_SECONDS:
            raise RequestFailed(f"invalid test duration: expected 1 to {MOST_SECONDS:g} s")
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            self._supply(body.get("model"), folder)
            model = self._read(body.get("model"), folder)
            commands = _commands(body.get("commands")) or preset(model, str(body.get("kind", "turn")))
            if not commands:
                raise RequestFailed("the model has no actuators to test")
            with (folder / "commands.csv").open("w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(["time", *(f"c{k}" for k in range(len(commands)))])
                writer.writerow([0.0, *(0.0 for _ in commands)])
                for t in (1.0, seconds):
                    writer.writerow([t, *(float(v) for v in commands.values())])
            depth = {"underwater": "50", "aircraft": "-100"}.get(model.type, "0")
            arguments = [
                "replay-actuators",
                "commands.csv",
                "--model",
                model.name,
                "--models",
                "model.xml",
                "--step",
                "0.02",
            ]
            arguments += ["--start", "0", "0", depth, "--out", "track.csv"]
            for k, actuator in enumerate(commands):
                arguments += ["--map", f"{actuator}=c{k}"]
            run_wavesim(arguments, folder)
            with (folder / "track.csv").open(newline="") as file:
                rows = list(csv.reader(file))
        columns = [list(map(float, column)) for column in zip(*rows[1:], strict=True)]
        return {"commands": commands, "columns": dict(zip(rows[0], columns, strict=True))}

    # -- saving -----------------------------------------------------------------------------------------

    def _target(self, name: Any, overwrite: bool) -> Path:
        if not isinstance(name, str) or not _FILE.fullmatch(name):
            raise RequestFailed("invalid file name: use letters, digits, . _ - and the ending .xml")
        target = self.folder / name
        if target.exists() and not overwrite:
            raise RequestFailed(f"{name} already exists; use another name, or tick 'replace'")
        return target

    def save(self, body: Any) -> SavedModel:
        """Write a models file, and next to it a configuration that simulates the model with its instruments."""
        overwrite = body.get("replace") is True
        target = self._target(body.get("file"), overwrite)
        trial = self._target(f"{target.stem}-trial.xml", overwrite)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            files = self._supply(body.get("model"), folder)
            for beside, data in files.items():
                own = self.folder / beside
                if own.exists() and not overwrite and own.read_bytes() != data:
                    raise RequestFailed(
                        f"{beside} already exists with other content; tick 'replace', or rename that file"
                    )
            model = self._read(body.get("model"), folder)
            (folder / target.name).write_text((folder / "model.xml").read_text())
            (folder / trial.name).write_text(_trial_configuration(model, target.name))
            load(folder / trial.name)
            texts = [(folder / p.name).read_text() for p in (target, trial)]
        for beside, data in files.items():
            _write(self.folder / beside, data)
        _write(target, texts[0])
        _write(trial, texts[1])
        return {"file": str(target), "trial": str(trial)}

    def save_instruments(self, body: Any) -> SavedFile:
        """Write a configuration in which a vehicle's own instruments are changed."""
        target = self._target_beside(self._configuration_of(body), body)
        _write(target, self._with_instruments(body)[0])
        return {"file": str(target)}

    def mission_file(self, body: Any) -> ImportedMission:
        """Read an uploaded mission file. The request contains the origin of the world in degrees."""
        name, text = _word(body, "file", "mission.plan"), _of(str, body.get("text", ""), "text")
        place = body.get("origin")
        origin = None
        if place is not None:
            latitude, longitude = _points([place], 2)[0]
            origin = Origin(math.radians(latitude), math.radians(longitude))
        try:
            found = parse_mission(name, text, origin)
        except ConfigError as error:
            raise RequestFailed(str(error)) from None
        return {
            "points": [(w.north, w.east, w.depth, w.speed) for w in found.waypoints],
            "notices": list(found.notices),
        }

    def mission(self, body: Any) -> SavedMission:
        """Write the scene's configuration with changed waypoints, beacons and fences."""
        base = Path(self._configuration())
        if base.suffix != ".xml" or not base.is_file():
            raise RequestFailed("no configuration to change here (the scene comes from a log or another machine)")
        target = self._target_beside(base, body)
        root = parse(base.read_bytes())
        fleet = root.find("fleet")
        if fleet is None:
            fleet = etree.SubElement(root, "fleet")
        self._missions(fleet, body)
        text = to_text(root)
        warnings = _waypoints_below_bed(load_text(text, base.parent), body.get("waypoints") or {})
        _write(target, text)
        return {"file": str(target), "warnings": warnings}

    def _target_beside(self, base: Path, body: Any) -> Path:
        """Return the path for a changed configuration. It is in the folder of the original, because file names in the
        configuration are relative to that folder. Raise RequestFailed if that folder is outside the configurator's
        ``folder``.
        """
        if not base.parent.resolve().is_relative_to(self.folder.resolve()):
            raise RequestFailed(
                f"{base.name} is outside the folder in which this viewer writes; start it with --folder {base.parent}"
            )
        target = self._target(body.get("file_out", body.get("file")), body.get("replace") is True)
        if target.parent.resolve() != base.parent.resolve():
            target = base.parent / target.name
            if target.exists() and body.get("replace") is not True:
                raise RequestFailed(
                    f"{target.name} already exists next to {base.name}; use another name, or tick 'replace'"
                )
        return target

    @staticmethod
    def _missions(fleet: Any, body: Any) -> None:
        for name, points in _of(dict, body.get("waypoints") or {}, "waypoints").items():
            vehicle = next((v for v in fleet if v.get("name") == name), None)
            if vehicle is None:
                raise RequestFailed(f"the configuration has no vehicle '{name}'")
            for old in (*vehicle.findall("waypoint"), *vehicle.findall("mission")):
                vehicle.remove(old)
            for n, e, d, u in _points(points, 4):
                etree.SubElement(
                    vehicle, "waypoint", north=f"{n:g} m", east=f"{e:g} m", depth=f"{d:g} m", speed=f"{u:g} m/s"
                )
        for b in _objects(body.get("beacons") or [], "beacons"):
            (position,) = _points([b.get("position")], 3)
            where = f"{' '.join(f'{v:g}' for v in position)} m"
            etree.SubElement(fleet, "buoy", name=_word(b, "name"), model=_word(b, "model", "buoy"), position=where)
        if "fences" in body:
            for old in fleet.findall("fence"):
                fleet.remove(old)
            for f in _objects(body["fences"], "fences"):
                fence = etree.SubElement(fleet, "fence", name=_word(f, "name"), keep=_word(f, "keep", "inside"))
                for n, e in _points(f.get("corners"), 2):
                    etree.SubElement(fence, "corner", north=f"{n:g} m", east=f"{e:g} m")


def _write(target: Path, text: str | bytes) -> None:
    """Write a file. If that fails, any existing file with this name remains unchanged."""
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(text.encode() if isinstance(text, str) else text)
        draft.replace(target)
    except OSError as error:
        raise RequestFailed(f"cannot write {target}: {error.strerror}") from None
    finally:
        draft.unlink(missing_ok=True)


def _of(type_: type, value: Any, what: str) -> Any:
    """Return a value from a request. Raise RequestFailed if it does not have the expected type; the viewer's page
    always sends that type.
    """
    if not isinstance(value, type_):
        raise RequestFailed(f"'{what}' in the request has the wrong type: {type(value).__name__}")
    return value


def _objects(value: Any, what: str) -> list[dict[str, Any]]:
    return [_of(dict, v, what) for v in _of(list, value, what)]


def _word(body: dict[str, Any], key: str, default: str = "") -> str:
    """Return a single-line string that is valid in XML and in file names."""
    value = body.get(key, default)
    if not is_short_text(value):
        raise RequestFailed(f"'{key}' in the request must be a single line of text")
    return str(value)


def _commands(value: Any) -> dict[str, float]:
    """Return the ``commands`` in a request: a value for each actuator name. Raise RequestFailed if they are invalid."""
    found: dict[str, float] = _of(dict, value or {}, "commands")
    if not all(is_short_text(k) and is_number(v) for k, v in found.items()):
        raise RequestFailed("'commands' in the request must map actuator names to numbers")
    return found


def preset(model: Model, kind: str) -> dict[str, float]:
    """Build the commands for a turning circle or a step in thrust. The thrusters push ahead at 70 % of their maximum;
    fins and swivels are at half their limits.
    """
    found: dict[str, float] = {}
    forward = [t for t in model.thruster if t.direction[0] > 0.3 * math.dist(t.direction, (0, 0, 0))]
    for t in forward:
        found[t.name] = 0.7 * t.maximum
    if kind == "turn":
        steering = [f for f in model.fin if abs(f.normal[1]) > 0.5 * math.dist(f.normal, (0, 0, 0))]
        swivels = [t for t in forward if t.swivel is not None]
        for f in steering:
            found[f.name] = 0.5 * f.limit * (1.0 if f.position[0] <= 0 else -1.0) * math.copysign(1.0, f.normal[1])
        for t in swivels:
            assert t.swivel is not None
            found[f"{t.name}-angle"] = 0.5 * t.swivel.minimum
        if not steering and not swivels:  # thrust on one side only
            for t in forward:
                if t.position[1] > 0.0:
                    found[t.name] = 0.2 * t.maximum
    return found


def _waypoints_below_bed(loaded: LoadedConfig, names: Iterable[str]) -> list[str]:
    """Return a warning for each waypoint that is below the sea bed."""
    bed, found = sea_bed(loaded), []
    for vehicle in loaded.config.fleet.vehicle:
        if vehicle.name not in names:
            continue
        for k, w in enumerate(vehicle.waypoint, 1):
            depth = float(bed(np.array(w.north), np.array(w.east)))
            if w.depth >= depth:
                found.append(
                    f"waypoint {k} of '{vehicle.name}' is at a depth of {w.depth:g} m, but the bed is at {depth:.1f} m"
                )
    return found


def _trial_configuration(model: Model, models_file: str) -> str:
    """Return a configuration that contains one vehicle of the model."""
    depth = {"underwater": 5.0, "aircraft": -100.0}.get(model.type, 0.0)
    root = etree.Element("wavesim", name=f"try-{model.name}"[:31])
    etree.SubElement(etree.SubElement(root, "models"), "include", file=models_file)
    fleet = etree.SubElement(root, "fleet")
    tag = "buoy" if model.type == "buoy" else "vehicle"
    etree.SubElement(fleet, tag, name=model.name[:31], model=model.name, position=f"0 0 {depth:g} m", client="optional")
    return to_text(root)


def _instruments(suite: Sequence[InstrumentConfig], loaded: LoadedConfig | None = None) -> list[InstrumentInfo]:
    """Return the drawing data of instruments."""
    return [instrument(t, (), loaded) for t in described_instruments(suite)]


def _body(root: Any, name: str) -> Any:
    """Return the XML element of a body in a configuration."""
    for element in root.iterfind("fleet/*"):
        if element.tag in ("vehicle", "buoy") and element.get("name") == name:
            return element
    raise RequestFailed(f"the configuration has no vehicle '{name}'")


def _points(points: Any, count: int) -> list[list[float]]:
    if not isinstance(points, list) or len(points) > 1000:
        raise RequestFailed("expected a list of points")
    for p in points:
        if (
            not isinstance(p, list)
            or len(p) != count
            or not all(isinstance(v, int | float) and math.isfinite(v) for v in p)
        ):
            raise RequestFailed(f"invalid point: expected {count} finite numbers")
    return points
