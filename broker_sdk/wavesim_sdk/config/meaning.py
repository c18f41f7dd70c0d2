"""What the declaration cannot say: checks between keys, in the words of the user."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from wavesim_sdk.config.model import Config, Matrix6, Model, Transducer
from wavesim_sdk.errors import ConfigError

MAX_THRUSTERS, MAX_FINS = 8, 4
_NAME = re.compile(r"[A-Za-z0-9_-]{1,31}")


def matrix(m: Matrix6 | None) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The 6x6 array of a matrix element; zeros if it is absent."""
    if m is None:
        return np.zeros((6, 6))
    return np.array(m.rows).reshape(6, 6) if m.rows else np.diag(np.array(m.diagonal, dtype=float))


def check(config: Config, models: dict[str, Model], path: Path) -> None:
    """Raise ConfigError for the first thing that cannot be simulated."""
    file = str(path)
    if not _NAME.fullmatch(config.name):
        raise ConfigError(f"name '{config.name}': use 1 to 31 letters, digits, - and _", file)
    try:
        loopback = ipaddress.ip_address(config.network.address).is_loopback
    except ValueError:
        raise ConfigError(f"network address '{config.network.address}' is not an IP address", file) from None
    if not loopback:
        raise ConfigError(
            f"network address {config.network.address} is not loopback; this version carries no keys, "
            "so it serves 127.0.0.0/8 and ::1 only",
            file,
        )
    for model in models.values():
        _model(model)
    _fleet(config, models)
    _files(config, path)


def _at(place: str, message: str) -> NoReturn:
    file, _, line = place.rpartition(":")
    raise ConfigError(message, file, int(line or 0))


def _model(model: Model) -> None:
    def fail(message: str) -> NoReturn:
        _at(model.place, f"model '{model.name}': {message}")

    shape = {"surface": model.box, "underwater": model.cylinder, "buoy": model.sphere}
    given = [s for s in shape.values() if s is not None]
    if len(given) != 1 or shape[model.type] is None:
        word = {"surface": "box", "underwater": "cylinder", "buoy": "sphere"}[model.type]
        fail(f"a {model.type} body needs exactly one geometry, a <{word}>")
    for name in ("added_mass", "linear_drag", "quadratic_drag", "lift"):
        m: Matrix6 | None = getattr(model, name)
        if m is not None and bool(m.rows) == bool(m.diagonal):
            fail(f"<{name.replace('_', '-')}> needs either `diagonal` or 36 numbers between its tags")
    added = matrix(model.added_mass)
    if np.linalg.eigvalsh(0.5 * (added + added.T)).min() < -1e-9:
        fail("the added mass has a negative eigenvalue; M_A is given with positive sign here")
    i = model.inertia
    tensor = np.array([[i.xx, i.xy, i.xz], [i.xy, i.yy, i.yz], [i.xz, i.yz, i.zz]])
    principal = np.linalg.eigvalsh(tensor)
    if principal.min() <= 0.0:
        fail("the inertia is not positive definite")
    if principal[0] + principal[1] < principal[2] * (1.0 - 1e-9):
        fail("no mass distribution has this inertia: one principal moment exceeds the sum of the others")
    if len(model.thruster) > MAX_THRUSTERS or len(model.fin) > MAX_FINS:
        fail(f"at most {MAX_THRUSTERS} thrusters and {MAX_FINS} fins")
    if model.type == "buoy" and (model.thruster or model.fin):
        fail("a buoy has no actuators")
    for thruster in model.thruster:
        if thruster.maximum < thruster.minimum:
            fail(f"thruster '{thruster.name}': maximum is below minimum")
        if not any(thruster.direction):
            fail(f"thruster '{thruster.name}': the direction is the zero vector")
    for fin in model.fin:
        if not any(fin.normal):
            fail(f"fin '{fin.name}': the normal is the zero vector")
    if model.transducer is not None:
        _transducer(model.transducer, model.place)


def _transducer(t: Transducer, place: str) -> None:
    if t.listen_high <= t.listen_low:
        _at(place, "transducer: listen_high is not above listen_low")
    if t.query and not t.reply:
        _at(place, "transducer: it answers queries but has no `reply` frequency")
    if t.query and not t.listen_low <= t.query <= t.listen_high:
        _at(place, "transducer: its `query` frequency lies outside its listening band")


def _fleet(config: Config, models: dict[str, Model]) -> None:
    seen: set[str] = set()
    bodies = config.fleet.bodies
    if len(bodies) > config.shared.vehicles:
        _at(bodies[-1].place, f"{len(bodies)} bodies, but <shared vehicles> allows {config.shared.vehicles}")
    for body in bodies:
        model = models[body.model]
        if not _NAME.fullmatch(body.name):
            _at(body.place, f"name '{body.name}': use 1 to 31 letters, digits, - and _")
        if body.name in seen:
            _at(body.place, f"two bodies are called '{body.name}'")
        seen.add(body.name)
        if (model.type == "buoy") != (body in config.fleet.buoy):
            word = "buoy" if model.type == "buoy" else "vehicle"
            _at(body.place, f"model '{body.model}' is a {model.type} model; write it as <{word}>")
        if body.client == "none" and body.program is not None:
            _at(body.place, f"'{body.name}' has a program but client=\"none\"")
        if body.transducer is not None:
            _transducer(body.transducer, body.place)
        if body.program is not None:
            steps = body.program.period / config.time.step
            if abs(steps - round(steps)) > 1e-6 or round(steps) < 1:
                _at(
                    body.place,
                    f"program period {body.program.period:g} s is no multiple of the time step {config.time.step:g} s",
                )


def _files(config: Config, path: Path) -> None:
    folder = path.parent
    named = [config.world.soundings and config.world.soundings.file, config.world.volume and config.world.volume.file]
    named += [b.program.run for b in config.fleet.bodies if b.program]
    for name in named:
        if name and not (folder / name).is_file():
            raise ConfigError(f"the file '{name}' does not exist (looked in {folder})", str(path))
