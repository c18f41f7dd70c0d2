"""Checks of conditions that involve several keys, which the declaration of a single key cannot express."""

from __future__ import annotations

import ipaddress
import itertools
import re
from pathlib import Path

import numpy as np

from wavesim_sdk.actuators import parse_command
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.fences import check_corner_total, check_fence
from wavesim_sdk.names import suggest_name
from wavesim_sdk.sensors import MAX_SCALARS
from wavesim_sdk.wire.messages import Right
from wavesim_world.actuators import actuators_of
from wavesim_world.config import instrument_checks, lines
from wavesim_world.config.acoustics import Modem, RadiatedNoise, TransducerConfig
from wavesim_world.config.model import BodyConfig, Config
from wavesim_world.config.primitives import shape_of
from wavesim_world.config.validation import check_model, fail_at
from wavesim_world.config.vehicle import Model
from wavesim_world.config.world import Samples
from wavesim_world.modem_curves import find_curve

#: smallest permitted gravity in m/s2 other than 0; the limit is necessary because formulas for wave numbers and
#: accelerations divide by gravity
MIN_GRAVITY = 1e-3
IN_AIR_M = 2.0  #: maximum height in m above the mean water level at which a body may start; the allowance covers waves
_NAME = re.compile(r"[A-Za-z0-9_-]{1,31}")


def check(config: Config, models: dict[str, Model], path: Path) -> None:
    """Raise ConfigError for the first element or key that prevents the simulation of a configuration."""
    file = str(path)
    if not _NAME.fullmatch(config.name):
        raise ConfigError(f"invalid name '{config.name}': use 1 to 31 letters, digits, - and _", file)
    try:
        loopback = ipaddress.ip_address(config.network.address).is_loopback
    except ValueError:
        raise ConfigError(f"network address '{config.network.address}' is not an IP address", file) from None
    if not loopback and not config.network.keys and not config.network.insecure:
        raise ConfigError(
            f"network address {config.network.address} is not loopback, so other machines could reach the server: set "
            "`keys` to a key file "
            '(create one with `wavesim keys`), or write insecure="yes" if everyone on that network may control it',
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
    """Check that every right in a <grant> exists."""
    known = [r.name.lower() for r in Right if r.name is not None]
    for grant in config.network.grant:
        for word in grant.rights.split():
            if word not in known:
                fail_at(grant.place, f"<grant>: unknown right '{word}'{suggest_name(word, known)}")
        if not grant.rights.split():
            fail_at(grant.place, f"<grant>: `rights` is empty; use one or more of {', '.join(known)}")


def _fences(config: Config) -> None:
    """Check that the names of the fences are unique, and that their polygons are valid."""
    seen: set[str] = set()
    for fence in config.fleet.fence:
        if fence.name in seen:
            fail_at(fence.place, f"duplicate fence name '{fence.name}'; give each fence its own name")
        seen.add(fence.name)
        try:
            check_fence(fence.request())
        except ValueError as error:
            fail_at(fence.place, str(error))
    try:
        check_corner_total(f.request() for f in config.fleet.fence)
    except ValueError as error:
        fail_at(config.fleet.fence[-1].place, str(error))


def _modems(config: Config, models: dict[str, Model]) -> None:
    """Check that no two modems with the same modulation have the same address."""
    seen: dict[tuple[str, int], str] = {}
    for body in config.fleet.bodies:
        t = body.transducer or models[body.model].transducer
        if t is None or t.modem is None or not t.modem.address:
            continue
        modem = (t.modem.modulation, t.modem.address)
        if modem in seen:
            fail_at(body.place, f"'{body.name}' and '{seen[modem]}' have the same modem address {t.modem.address}")
        seen[modem] = body.name


def _modem(t: TransducerConfig, modem: Modem, place: str) -> None:
    if modem.curve:
        try:
            find_curve(modem.curve)
        except ConfigError as error:
            fail_at(place, f"modem: {error}")
        if modem.bit_error:
            fail_at(place, "modem: its `curve` replaces `bit_error`; remove `bit_error`")
    if not t.listen_low <= modem.frequency <= t.listen_high:
        fail_at(place, "modem: its `frequency` is outside the receiving band of its transducer")


def _transducer(t: TransducerConfig, place: str) -> None:
    if t.listen_high <= t.listen_low:
        fail_at(place, "transducer: `listen_high` must be greater than `listen_low`")
    if t.query and not t.reply:
        fail_at(place, "transducer: it answers queries, so it needs a `reply` frequency")
    if t.query and not t.listen_low <= t.query <= t.listen_high:
        fail_at(place, "transducer: its `query` frequency is outside its receiving band")
    if t.pinger is not None and bool(t.pinger.waveform) == (t.pinger.frequency > 0.0):
        fail_at(place, "pinger: it needs either `frequency` or `waveform`")
    if t.modem is not None:
        _modem(t, t.modem, place)
    if t.beam is not None:
        if not any(t.beam.axis):
            fail_at(place, "beam: `axis` is the zero vector; give a direction")
        rows = t.beam.rows
        angles = rows[0::2]
        if (t.beam.pattern == "table") != bool(rows):
            fail_at(place, 'beam: use rows `angle loss` and pattern="table" together, or neither')
        if len(rows) % 2 or any(b <= a for a, b in itertools.pairwise(angles)) or any(v < 0 for v in rows):
            fail_at(
                place, "beam: rows must be `angle loss`, ascending in angle (degrees), with losses of at least 0 dB"
            )
    if t.head is not None:
        phones = [h.position for h in t.head.hydrophone]
        if not 3 <= len(phones) <= 8:
            fail_at(place, f"head: it has {len(phones)} hydrophones, but needs 3 to 8")
        if np.linalg.matrix_rank(np.array(phones) - np.mean(phones, axis=0), tol=1e-6) < 2:
            fail_at(
                place, "head: its hydrophones are on one line; place them in a plane or in space to measure directions"
            )
        if not any(t.head.axis):
            fail_at(place, "head: `axis` is the zero vector; give a direction")


def _radiated_noise(noise: RadiatedNoise, body: BodyConfig, model: Model) -> None:
    """Check that the tones of a noise source have a level and a frequency, and that its propeller has a shaft."""
    if model.type == "aircraft":
        fail_at(
            body.place, f"aircraft '{body.name}' cannot have <radiated-noise>: only sound in the water is simulated"
        )
    if (noise.blades > 0) != (noise.blade_level > 0.0):
        fail_at(body.place, f"'{body.name}': <radiated-noise> needs both `blades` and `blade_level`, or neither")
    if (noise.machine > 0.0) != (noise.machine_level > 0.0):
        fail_at(body.place, f"'{body.name}': <radiated-noise> needs both `machine` and `machine_level`, or neither")
    if noise.propeller and not noise.blades:
        fail_at(body.place, f"'{body.name}': <radiated-noise> has a `propeller`, so it needs `blades`")
    shafts = [t.name for t in model.thruster if t.law == "shaft"]
    if noise.blades and not shafts:
        fail_at(
            body.place,
            f"'{body.name}': <radiated-noise> has `blades`, but no thruster of model '{model.name}' has law=shaft",
        )
    if noise.propeller and noise.propeller not in shafts:
        fail_at(
            body.place,
            f"'{body.name}': <radiated-noise>: model '{model.name}' has no thruster '{noise.propeller}' with law=shaft"
            f"{suggest_name(noise.propeller, shafts)}; its thrusters with a shaft: {', '.join(shafts)}",
        )


def _fleet(config: Config, models: dict[str, Model]) -> None:
    seen: set[str] = set()
    bodies = config.fleet.bodies
    if len(bodies) > config.shared.vehicles:
        fail_at(
            bodies[-1].place,
            f"the fleet has {len(bodies)} bodies, but <shared vehicles> allows {config.shared.vehicles}; increase it",
        )
    for body in bodies:
        model = models[body.model]
        if not _NAME.fullmatch(body.name):
            fail_at(body.place, f"invalid name '{body.name}': use 1 to 31 letters, digits, - and _")
        if body.name in seen:
            fail_at(body.place, f"duplicate body name '{body.name}'; give each body its own name")
        seen.add(body.name)
        if (model.type == "buoy") != (body in config.fleet.buoy):
            word = "buoy" if model.type == "buoy" else "vehicle"
            fail_at(body.place, f"model '{body.model}' is a {model.type} model; write it as <{word}>")
        _height(body, model)
        if body.client == "none" and body.program is not None:
            fail_at(
                body.place,
                f'\'{body.name}\' has a program but client="none"; set client="required" or "optional", or remove the program',
            )
        _failsafe(body, model)
        if body.speed and (any(body.velocity) or any(body.angular_velocity)):
            fail_at(
                body.place,
                f"'{body.name}': `speed` defines the complete initial motion; remove `velocity` and `angular_velocity`",
            )
        if body.transducer is not None:
            _transducer(body.transducer, body.place)
        if body.radiated_noise is not None:
            _radiated_noise(body.radiated_noise, body, model)
        if body.program is not None:
            if bool(body.program.run) == bool(body.program.bridge):
                fail_at(body.place, f"'{body.name}': a program needs either `run` or `bridge`")
            _lockstep_period("program", body.program.period, config, body.place)
        for device in body.device:
            if bool(device.name) == bool(device.run):
                fail_at(device.place, "<device>: set either `name` or `run`")
            if device.period:
                _lockstep_period(f"device '{device.label}':", device.period, config, device.place)


def _height(body: BodyConfig, model: Model) -> None:
    """Check that only aircraft start or fly above the water, and that they do not start below it."""
    if model.type == "aircraft":
        if body.position[2] > 0.0:
            fail_at(
                body.place,
                f"aircraft '{body.name}' would start {body.position[2]:g} m under water: a position is north, east, down, so "
                "heights are negative",
            )
        return
    above = -body.position[2] - shape_of(model).bounding_radius
    if above > IN_AIR_M:
        fail_at(
            body.place,
            f"'{body.name}' would start {above:.3g} m above the water: a position is north, east, down, so depths are "
            "positive",
        )
    if any(w.depth < 0.0 for w in body.waypoint):
        fail_at(body.place, f"'{body.name}' has a waypoint above the water: only aircraft have negative depths")


def _lockstep_period(whose: str, period: float, config: Config, where: str) -> None:
    steps = period / config.time.step
    if abs(steps - round(steps)) > 1e-6 or round(steps) < 1:
        fail_at(where, f"{whose} period {period:g} s is not a multiple of the time step {config.time.step:g} s")


def _failsafe(body: BodyConfig, model: Model) -> None:
    if (body.failsafe == "safe") != bool(body.safe):
        fail_at(body.place, f"'{body.name}': use failsafe=\"safe\" and the key `safe` together, or neither")
    try:
        parse_command(actuators_of(model), body.safe)
    except ValueError as error:
        fail_at(body.place, f"'{body.name}': `safe`: {error}")


def _water(config: Config, path: Path) -> None:
    world = config.world
    if world.volume is not None and world.samples is not None:
        raise ConfigError("the world has both <volume> and <samples>; use only one", str(path))
    if config.acoustics.profile == "volume" and world.volume is None:
        raise ConfigError(
            'acoustics: profile="volume" needs water on a grid: add a <volume> to <world>, or use profile="water"',
            str(path),
        )
    if world.samples is not None:
        _samples(world.samples, path)
    if config.world.pressure_2 and not config.world.pressure_1:
        raise ConfigError(
            "`pressure_2` needs `pressure_1`; remove both for the pressure of a standard ocean", str(path)
        )
    waves, deep = world.waves, world.waves.depth or (world.bed.depth if world.soundings is None else 0.0)
    if waves.beaufort < 0 and 0.0 < deep < waves.height:
        raise ConfigError(
            f"waves of significant height {waves.height:g} m cannot exist in {deep:g} m of water: waves break when "
            "their significant height reaches about 0.6 times the depth; reduce `height`, or set the `depth` of <waves>",
            str(path),
        )
    if 0.0 < world.gravity < MIN_GRAVITY:
        raise ConfigError(
            f"a gravity of {world.gravity:g} m/s2 is too small to compute with: use 0 m/s2 or at least {MIN_GRAVITY:g} m/s2",
            str(path),
        )
    if world.gravity == 0.0 and (waves.beaufort > 0 or (waves.beaufort < 0 and waves.height > 0.0)):
        raise ConfigError(
            "surface waves cannot exist without gravity: set the `gravity` of <world>, or remove <waves>", str(path)
        )
    if len(world.scalar) > MAX_SCALARS:
        fail_at(
            world.scalar[MAX_SCALARS].place, f"the world has {len(world.scalar)} scalars; the maximum is {MAX_SCALARS}"
        )
    for s in world.scalar:
        if bool(s.column) == bool(s.gaussian):
            fail_at(s.place, f"scalar '{s.name}' needs either a `column` or at least one <gaussian>")
        if s.column and world.volume is None:
            fail_at(s.place, f"scalar '{s.name}' has a `column`, but the world has no <volume>; add one")


def _samples(samples: Samples, path: Path) -> None:
    series = {"temperature": samples.temperature, "salinity": samples.salinity}
    if samples.file and any(series.values()):
        raise ConfigError(
            "<samples> has both a `file` and the files of single quantities; use only one of these forms", str(path)
        )
    for name, files in series.items():
        if not samples.file and not files:
            other = "salinity" if name == "temperature" else "temperature"
            needed = f"a <{name}>" if series[other] else "a `file`, or a <temperature> and a <salinity>"
            raise ConfigError(f"<samples> needs {needed}", str(path))
        for earlier, later in itertools.pairwise(files):
            if later.time <= earlier.time:
                fail_at(
                    later.place,
                    f"the times of the <{name}> files must be in ascending order, but {later.time:g} s follows "
                    f"{earlier.time:g} s",
                )


def _files(config: Config, path: Path) -> None:
    folder = path.parent
    if (config.acoustics.profile == "file") != bool(config.acoustics.file):
        raise ConfigError('acoustics: use profile="file" and `file` together, or neither', str(path))
    world = config.world
    samples = (*world.samples.temperature, *world.samples.salinity) if world.samples is not None else ()
    sources = (world.soundings, world.volume, world.samples, *samples, *world.obstacles.mesh)
    named = [config.acoustics.file, config.network.keys, *(s.file for s in sources if s is not None)]
    named += [r.file for r in config.acoustics.replay]
    named += [b.program.run for b in config.fleet.bodies if b.program]
    for name in named:
        if name and not (folder / name).is_file():
            raise ConfigError(f"file '{name}' does not exist (searched in {folder})", str(path))
