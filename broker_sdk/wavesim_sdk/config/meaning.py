"""What the declaration cannot say: checks between keys, in the words of the user."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path

from wavesim_sdk.config.model import Config
from wavesim_sdk.config.plausible import at, check_model
from wavesim_sdk.config.vehicle import Model, Transducer
from wavesim_sdk.errors import ConfigError

_NAME = re.compile(r"[A-Za-z0-9_-]{1,31}")


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
        check_model(model)
        if model.transducer is not None:
            _transducer(model.transducer, model.place)
    _fleet(config, models)
    _files(config, path)


def _transducer(t: Transducer, place: str) -> None:
    if t.listen_high <= t.listen_low:
        at(place, "transducer: listen_high is not above listen_low")
    if t.query and not t.reply:
        at(place, "transducer: it answers queries but has no `reply` frequency")
    if t.query and not t.listen_low <= t.query <= t.listen_high:
        at(place, "transducer: its `query` frequency lies outside its listening band")


def _fleet(config: Config, models: dict[str, Model]) -> None:
    seen: set[str] = set()
    bodies = config.fleet.bodies
    if len(bodies) > config.shared.vehicles:
        at(bodies[-1].place, f"{len(bodies)} bodies, but <shared vehicles> allows {config.shared.vehicles}")
    for body in bodies:
        model = models[body.model]
        if not _NAME.fullmatch(body.name):
            at(body.place, f"name '{body.name}': use 1 to 31 letters, digits, - and _")
        if body.name in seen:
            at(body.place, f"two bodies are called '{body.name}'")
        seen.add(body.name)
        if (model.type == "buoy") != (body in config.fleet.buoy):
            word = "buoy" if model.type == "buoy" else "vehicle"
            at(body.place, f"model '{body.model}' is a {model.type} model; write it as <{word}>")
        if body.client == "none" and body.program is not None:
            at(body.place, f"'{body.name}' has a program but client=\"none\"")
        if body.transducer is not None:
            _transducer(body.transducer, body.place)
        if body.program is not None:
            steps = body.program.period / config.time.step
            if abs(steps - round(steps)) > 1e-6 or round(steps) < 1:
                at(
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
