"""Worker that answers queries about sound propagation between two points, one JSON object per line: ``wavesim acoustics
--serve``.

A request is a JSON object on one line of standard input. The worker answers each request with one JSON object on one line
of standard output, in the order of the requests, and ends when its input ends. It keeps the medium of the last
configuration, so that further requests for the same configuration take milliseconds.

====================  ====================================================================================================
member of a request   meaning
====================  ====================================================================================================
``id``                any JSON value; the answer repeats it
``kind``              ``rays``, ``loss`` or ``section``
``config``            path of a configuration, or its XML text
``folder``            for XML text: the folder of the files that it names
``from``              position of the source: north, east, depth in m
``to``                position of the receiver; not needed for ``loss``
``time``              time of the emission in s since the start (default: 0)
``frequency``         carrier in Hz (default: 25000)
``plane``             for ``loss``: ``vertical`` (default) or ``horizontal``
``range``             for ``loss``: distance up to which the plane extends, in m (default: 1.1 times the distance of ``to``,
                      up to 1e6 m, or 1000 m without ``to``)
``bearing``           for a vertical plane: its direction in deg, clockwise from north (default: towards ``to``, or 0)
``depth``             for a horizontal plane: its depth in m (default: that of ``to``, or of ``from``)
``shape``             for ``loss`` and ``section``: number of rows and columns, 2 to 600 each (default: 100 and 200)
``coherent``          for ``loss``: whether to sum the paths coherently (with phases), not incoherently (default: false)
====================  ====================================================================================================

Coordinates must be between -1e6 and 1e6 m. The worker refuses members that the table does not contain.

An answer has the member ``id``, and ``error`` if the request failed, with a message for the user. The ``id`` of an answer
is null if the request is not valid JSON. Otherwise, ``notes`` is a list of sentences about the limits of the answer, such
as a time after the end of the volume, and:

* ``rays``: ``arrivals`` is a list of objects with the columns of :data:`propagation_model.ARRIVAL`, angles in deg, in
  the order of their times. ``rays`` contains the points [north, east, depth] of the ray of each arrival, in the same
  order. ``distance`` is the straight-line distance. Both lists are empty in an acoustic shadow.
* ``loss``: ``loss`` contains the rows of the plane in dB, with null outside the water. The rows of a vertical plane belong
  to ``depths``, and its columns to ``ranges``; ``bed`` is the depth of the bed at these ranges, and ``bearing`` the
  direction in deg. The rows of a horizontal plane belong to ``north``, and its columns to ``east``; ``depth`` is its depth.
* ``section``: ``speed`` contains the sound speed in m/s, with null outside the water. Its rows belong to ``depths``, and
  its columns to ``ranges``; ``bed`` is the depth of the bed at these ranges.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import atan2, cos, hypot, sin
from wavesim_sdk.errors import InvalidArgument, WaveSimError
from wavesim_sdk.names import shorten, suggest_name
from wavesim_server.acoustics import loss_planes
from wavesim_server.acoustics.propagation_model import DEFAULT_FREQUENCY, PropagationModel
from wavesim_world import data_files
from wavesim_world.config import load, load_text
from wavesim_world.config.named_files import file_states, named_files
from wavesim_world.ocean.sound_warnings import NodePlace

__all__ = ["AcousticsWorker", "arrival_rows", "serve"]

MAX_SHAPE = 600
MAX_COORDINATE = 1e6  #: maximum absolute value of a coordinate, m
MAX_NUMBER = 1e12  #: maximum absolute value of other numbers
MEMBERS = (
    *(
        "id",
        "kind",
        "config",
        "folder",
        "from",
        "to",
        "time",
        "frequency",
        "plane",
        "range",
        "bearing",
        "depth",
        "shape",
    ),
    "coherent",
)
#: number of decimal places of the columns of an arrival; all other numbers have three
_DECIMALS = {"time": 9, "length": 4, "phase": 6, "straight_line_error": 4}
_ANGLES = ("launch_bearing", "launch_elevation", "arrival_bearing", "arrival_elevation")


def arrival_rows(table: Any) -> list[dict[str, Any]]:
    """Convert the rows of an arrival table to JSON objects, with angles in deg."""
    rows = []
    for row in table:
        values = {name: row[name].item() for name in table.dtype.names}
        values |= {name: math.degrees(values[name]) for name in _ANGLES}
        rows.append({n: round(v, _DECIMALS.get(n, 3)) if isinstance(v, float) else v for n, v in values.items()})
    return rows


class AcousticsWorker:
    """Worker that answers queries. It keeps the medium of the last configuration."""

    def __init__(self) -> None:
        self._key: Any = None
        self._files: list[Path] = []  # of the kept configuration
        self._states: list[tuple[int, int] | None] = []
        self._model: PropagationModel

    def answer(self, line: str | bytes) -> str:
        """Return the answer to one request. An invalid request never raises an exception; its answer contains
        ``error``.
        """
        number = None
        try:
            request = json.loads(line.decode() if isinstance(line, bytes) else line)
            if not isinstance(request, dict):
                raise InvalidArgument("a request must be a JSON object")
            json.dumps(request.get("id"), allow_nan=False)  # raises ValueError if the answer cannot repeat it
            number = request.get("id")
            return json.dumps({"id": number, **self._answer(request)}, separators=(",", ":"), allow_nan=False)
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            message = f"the request is not valid JSON: {error}"
        except (WaveSimError, OSError) as error:
            message = str(error)
        except RecursionError:
            message = "the request has too many levels of nested lists or objects"
        except (ValueError, OverflowError, MemoryError) as error:  # such as an integer of thousands of digits
            message = f"cannot answer the request: {error or 'not enough memory'}"
        return json.dumps({"id": number, "error": message}, separators=(",", ":"), allow_nan=False)

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        kinds: dict[str, Callable[[PropagationModel, dict[str, Any]], dict[str, Any]]] = {
            "rays": _rays,
            "loss": _loss,
            "section": _section,
        }
        for name in request:
            if name not in MEMBERS:
                raise InvalidArgument(f"unknown member '{shorten(name)}'{suggest_name(shorten(name), MEMBERS)}")
        kind = request.get("kind")
        if not isinstance(kind, str) or kind not in kinds:
            raise InvalidArgument(f"unknown kind '{shorten(kind)}'{suggest_name(shorten(kind), kinds)}")
        model = self._medium(request)
        found = kinds[kind](model, request)
        ends = [NodePlace(name, _position(request, name)) for name in ("from", "to") if name in request]
        return {**found, "notes": model.notes(ends, _number(request, "time", 0.0))}

    def _medium(self, request: dict[str, Any]) -> PropagationModel:
        """Return the medium for the configuration that a request names."""
        config, folder = request.get("config"), request.get("folder")
        if not isinstance(config, str) or not isinstance(folder, str | None):
            raise InvalidArgument("`config` must be the path of a configuration or its text, and `folder` a path")
        _check_text(config, "config")
        _check_text(folder or "", "folder")
        is_text = config.lstrip().startswith("<")
        key = (config, folder)
        if key != self._key or file_states(self._files) != self._states:
            self._key = None
            # before the files are read, so that no change is missed
            if is_text:
                self._files = named_files(Path(folder) / "configuration", config) if folder is not None else []
            else:
                self._files = named_files(Path(config))
            self._states = file_states(self._files)
            loaded = load_text(config, folder) if is_text else load(config)
            data_files.check(loaded)
            self._model = PropagationModel(loaded)
            self._key = key
        return self._model


def serve(lines: Iterable[str | bytes], write: Callable[[str], None]) -> None:
    """Answer each line that is not blank by calling ``write``."""
    worker = AcousticsWorker()
    for line in lines:
        if line.strip():
            write(worker.answer(line))


# -------------------------------------------------------------------- members of requests


def _check_text(value: str, name: str) -> None:
    """Reject a string that can be neither a path nor XML."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidArgument(f"`{name}` contains half of a surrogate pair, which is not a character") from None
    if "\0" in value:
        raise InvalidArgument(f"`{name}` contains a NUL character")


def _number(request: dict[str, Any], name: str, default: float) -> float:
    value = request.get(name, default)
    if type(value) not in (int, float) or not -MAX_NUMBER <= value <= MAX_NUMBER:
        raise InvalidArgument(f"`{name}` must be a finite number up to {MAX_NUMBER:g}, got {shorten(value)}")
    return float(value)


def _position(request: dict[str, Any], name: str) -> Floats:
    value = request.get(name)
    if not (
        isinstance(value, list)
        and len(value) == 3
        and all(type(v) in (int, float) and -MAX_COORDINATE <= v <= MAX_COORDINATE for v in value)
    ):
        raise InvalidArgument(
            f"`{name}` must be a list of three numbers: north, east and depth in m, from -{MAX_COORDINATE:g} to "
            f"{MAX_COORDINATE:g}"
        )
    return np.asarray(value, float)


def _shape(request: dict[str, Any]) -> tuple[int, int]:
    value = request.get("shape", [100, 200])
    if not (isinstance(value, list) and len(value) == 2 and all(type(v) is int and 2 <= v <= MAX_SHAPE for v in value)):
        raise InvalidArgument(f"`shape` must be a list of two integers from 2 to {MAX_SHAPE}")
    return value[0], value[1]


def _listed(values: Floats, decimals: int = 2) -> list[Any]:
    """Return an array as nested lists, with null instead of NaN."""
    rounded = np.round(np.asarray(values, float), decimals).astype(object)
    rounded[~np.isfinite(np.asarray(values, float))] = None
    found: list[Any] = rounded.tolist()
    return found


# -------------------------------------------------------------------- kinds of requests


def _rays(model: PropagationModel, request: dict[str, Any]) -> dict[str, Any]:
    a, b = _position(request, "from"), _position(request, "to")
    asked = (a, b, _number(request, "time", 0.0), _number(request, "frequency", DEFAULT_FREQUENCY))
    table, tracks = model.arrivals_and_tracks(*asked)
    distance = round(float(hypot(hypot(b[0] - a[0], b[1] - a[1]), b[2] - a[2])), 4)
    rays = [_listed(track[:, [2, 3, 1]]) for track in tracks]
    return {"distance": distance, "arrivals": arrival_rows(table), "rays": rays}


def _section(model: PropagationModel, request: dict[str, Any]) -> dict[str, Any]:
    a, b = _position(request, "from"), _position(request, "to")
    found = model.sound_speed_section(a, b, _number(request, "time", 0.0), _shape(request))
    return {name: _listed(getattr(found, name), 3) for name in ("ranges", "depths", "speed", "bed")}


def _loss(model: PropagationModel, request: dict[str, Any]) -> dict[str, Any]:
    source, time = _position(request, "from"), _number(request, "time", 0.0)
    target = _position(request, "to") if "to" in request else source
    frequency, rows_columns = _number(request, "frequency", DEFAULT_FREQUENCY), _shape(request)
    coherent = request.get("coherent", False)
    if not isinstance(coherent, bool):
        raise InvalidArgument(f"`coherent` must be true or false, got {shorten(coherent)}")
    far = float(hypot(target[0] - source[0], target[1] - source[1]))
    reach = _number(request, "range", min(1.1 * far, loss_planes.MAX_RANGE) if far > 0.0 else 1000.0)
    if not 1.0 <= reach <= loss_planes.MAX_RANGE:
        raise InvalidArgument(f"`range` must be from 1 to {loss_planes.MAX_RANGE:g} m, got {reach:g}")
    kind = request.get("plane", "vertical")
    if kind not in ("vertical", "horizontal"):
        raise InvalidArgument(
            f"unknown plane '{shorten(kind)}'{suggest_name(shorten(kind), ('vertical', 'horizontal'))}"
        )
    model.check_position(source, "the source")
    if kind == "vertical":
        default = math.degrees(float(atan2(target[1] - source[1], target[0] - source[0])))
        bearing = math.radians(_number(request, "bearing", default))
        plane = loss_planes.vertical_plane(model, source, bearing, reach, rows_columns)
        loss = loss_planes.transmission_loss(model, source, plane, time, frequency, coherent)
        bed = model.bed_depth(source[0] + plane.ranges * cos(bearing), source[1] + plane.ranges * sin(bearing))
        return {
            "bearing": round(math.degrees(bearing) % 360.0, 6),
            "ranges": _listed(plane.ranges, 3),
            "depths": _listed(plane.depths, 3),
            "bed": _listed(bed),
            "loss": _listed(loss),
        }
    depth = _number(request, "depth", float(target[2]))
    level = loss_planes.horizontal_plane(source, depth, reach, rows_columns)
    loss = loss_planes.transmission_loss(model, source, level, time, frequency, coherent)
    return {
        "depth": depth,
        "north": _listed(level.north, 3),
        "east": _listed(level.east, 3),
        "loss": _listed(loss),
    }
