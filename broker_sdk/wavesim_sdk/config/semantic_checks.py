"""What the declaration cannot say: checks between keys, in the words of the user."""

from __future__ import annotations

import ipaddress
import itertools
import re
from pathlib import Path

import numpy as np

from wavesim_sdk.actuators import actuators_of, parse_command
from wavesim_sdk.config import instrument_checks, lines
from wavesim_sdk.config.acoustics import TransducerConfig
from wavesim_sdk.config.model import BodyConfig, Config
from wavesim_sdk.config.primitives import shape_of
from wavesim_sdk.config.validation import check_model, fail_at
from wavesim_sdk.config.vehicle import Model
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.names import suggest_name
from wavesim_sdk.sensors import MAX_SCALARS
from wavesim_sdk.wire.messages import Right

IN_AIR_M = 2.0  #: so far above the level a body may begin, clear of all water: waves are no higher
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
    if not loopback and not config.network.keys and not config.network.insecure:
        raise ConfigError(
            f"network address {config.network.address} is not loopback, so others could reach the server: name a file of `keys` "
            '(wavesim keys makes one), or write insecure="yes" if everybody there may control it',
            file,
        )
    _grants(config)
    _modems(config, models)
    for model in models.values():
        check_model(model)
        if model.transducer is not None:
            _transducer(model.transducer, model.place)
    _fleet(config, models)
    _fences(config)
    lines.check(config.fleet.line, {b.name: b.position for b in config.fleet.bodies}, _NAME.pattern)
    instrument_checks.check(config, models)
    _water(config, path)
    _files(config, path)


def _grants(config: Config) -> None:
    """Rights are known words."""
    known = [r.name.lower() for r in Right if r.name is not None]
    for grant in config.network.grant:
        for word in grant.rights.split():
            if word not in known:
                fail_at(grant.place, f"<grant>: there is no right '{word}'{suggest_name(word, known)}")
        if not grant.rights.split():
            fail_at(grant.place, f"<grant>: it grants nothing; rights are {', '.join(known)}")


def _fences(config: Config) -> None:
    """Names are unique, and each has an area."""
    seen: set[str] = set()
    for fence in config.fleet.fence:
        if fence.name in seen:
            fail_at(fence.place, f"there are two fences '{fence.name}'")
        seen.add(fence.name)
        if len(fence.corner) < 3:
            fail_at(fence.place, f"fence '{fence.name}' needs at least 3 corners")
        n, e = np.array([[c.north, c.east] for c in fence.corner]).T
        if abs(float(n @ np.roll(e, -1) - e @ np.roll(n, -1))) < 2e-2:
            fail_at(fence.place, f"fence '{fence.name}' encloses no area")


def _modems(config: Config, models: dict[str, Model]) -> None:
    """Addresses are unique."""
    seen: dict[int, str] = {}
    for body in config.fleet.bodies:
        t = body.transducer or models[body.model].transducer
        if t is None or t.modem is None or not t.modem.address:
            continue
        if t.modem.address in seen:
            fail_at(
                body.place, f"'{body.name}' and '{seen[t.modem.address]}' have the same modem address {t.modem.address}"
            )
        seen[t.modem.address] = body.name


def _transducer(t: TransducerConfig, place: str) -> None:
    if t.listen_high <= t.listen_low:
        fail_at(place, "transducer: listen_high is not above listen_low")
    if t.query and not t.reply:
        fail_at(place, "transducer: it answers queries but has no `reply` frequency")
    if t.query and not t.listen_low <= t.query <= t.listen_high:
        fail_at(place, "transducer: its `query` frequency lies outside its listening band")
    if t.modem is not None and not t.listen_low <= t.modem.frequency <= t.listen_high:
        fail_at(place, "modem: its `frequency` lies outside the listening band of its transducer")
    if t.beam is not None:
        if not any(t.beam.axis):
            fail_at(place, "beam: the axis has no direction")
        rows = t.beam.rows
        angles = rows[0::2]
        if (t.beam.pattern == "table") != bool(rows):
            fail_at(place, 'beam: rows `angle loss` and pattern="table" belong together')
        if len(rows) % 2 or any(b <= a for a, b in itertools.pairwise(angles)) or any(v < 0 for v in rows):
            fail_at(place, "beam: rows are `angle loss`, ascending in angle (degrees), losses not negative")
    if t.head is not None:
        phones = [h.position for h in t.head.hydrophone]
        if not 3 <= len(phones) <= 8:
            fail_at(place, f"head: it has {len(phones)} hydrophones; three to eight are needed")
        if np.linalg.matrix_rank(np.array(phones) - np.mean(phones, axis=0), tol=1e-6) < 2:
            fail_at(place, "head: its hydrophones lie on one line; directions need a plane at least")
        if not any(t.head.axis):
            fail_at(place, "head: the axis has no direction")


def _fleet(config: Config, models: dict[str, Model]) -> None:
    seen: set[str] = set()
    bodies = config.fleet.bodies
    if len(bodies) > config.shared.vehicles:
        fail_at(bodies[-1].place, f"{len(bodies)} bodies, but <shared vehicles> allows {config.shared.vehicles}")
    for body in bodies:
        model = models[body.model]
        if not _NAME.fullmatch(body.name):
            fail_at(body.place, f"name '{body.name}': use 1 to 31 letters, digits, - and _")
        if body.name in seen:
            fail_at(body.place, f"two bodies are called '{body.name}'")
        seen.add(body.name)
        if (model.type == "buoy") != (body in config.fleet.buoy):
            word = "buoy" if model.type == "buoy" else "vehicle"
            fail_at(body.place, f"model '{body.model}' is a {model.type} model; write it as <{word}>")
        above = -body.position[2] - shape_of(model).bounding_radius
        if above > IN_AIR_M:
            fail_at(
                body.place,
                f"'{body.name}' would begin {above:.3g} m above the water: a position is north, east, down, so that depths are "
                "positive",
            )
        if body.client == "none" and body.program is not None:
            fail_at(body.place, f"'{body.name}' has a program but client=\"none\"")
        _failsafe(body, model)
        if body.speed and (any(body.velocity) or any(body.angular_velocity)):
            fail_at(
                body.place, f"'{body.name}': `speed` is all of its motion; leave out `velocity` and `angular_velocity`"
            )
        if body.transducer is not None:
            _transducer(body.transducer, body.place)
        if body.program is not None:
            if bool(body.program.run) == bool(body.program.bridge):
                fail_at(body.place, f"'{body.name}': a program has either `run` or `bridge`")
            steps = body.program.period / config.time.step
            if abs(steps - round(steps)) > 1e-6 or round(steps) < 1:
                fail_at(
                    body.place,
                    f"program period {body.program.period:g} s is no multiple of the time step {config.time.step:g} s",
                )


def _failsafe(body: BodyConfig, model: Model) -> None:
    if (body.failsafe == "safe") != bool(body.safe):
        fail_at(body.place, f"'{body.name}': failsafe=\"safe\" and the values `safe` belong together")
    try:
        parse_command(actuators_of(model), body.safe)
    except ValueError as error:
        fail_at(body.place, f"'{body.name}': `safe`: {error}")


def _water(config: Config, path: Path) -> None:
    world = config.world
    if world.volume is not None and world.samples is not None:
        raise ConfigError("the water has a <volume> and <samples>; write one of them", str(path))
    if config.world.pressure_2 and not config.world.pressure_1:
        raise ConfigError("pressure_2 belongs to pressure_1; without both, pressure is a standard ocean's", str(path))
    waves, deep = world.waves, world.waves.depth or (world.bed.depth if world.soundings is None else 0.0)
    if waves.beaufort < 0 and 0.0 < deep < waves.height:
        raise ConfigError(
            f"waves of a significant height of {waves.height:g} m cannot be in {deep:g} m of water: they break before they are "
            "0.6 of the depth high; make them lower, or give <waves> the `depth` that they travel in",
            str(path),
        )
    if len(world.scalar) > MAX_SCALARS:
        fail_at(world.scalar[MAX_SCALARS].place, f"{len(world.scalar)} scalars; there are at most {MAX_SCALARS}")
    for s in world.scalar:
        if bool(s.column) == bool(s.gaussian):
            fail_at(s.place, f"scalar '{s.name}' has either a `column` or one <gaussian> and more")
        if s.column and world.volume is None:
            fail_at(s.place, f"scalar '{s.name}' has a `column`, but there is no <volume>")


def _files(config: Config, path: Path) -> None:
    folder = path.parent
    if (config.acoustics.profile == "file") != bool(config.acoustics.file):
        raise ConfigError('acoustics: profile="file" and `file` belong together', str(path))
    world = config.world
    sources = (world.soundings, world.volume, world.samples, *world.obstacles.mesh)
    named = [config.acoustics.file, config.network.keys, *(s.file for s in sources if s is not None)]
    named += [b.program.run for b in config.fleet.bodies if b.program]
    for name in named:
        if name and not (folder / name).is_file():
            raise ConfigError(f"the file '{name}' does not exist (looked in {folder})", str(path))
