"""A sea of bodies that move on straight lines, for tests of sound."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from wavesim_sdk.tables import Outcome, Table
from wavesim_server import Simulation
from wavesim_server.acoustics import eigenrays, rays
from wavesim_world.config import LoadedConfig

TICKS = ("1 ms", "4 ms", "20 ms", "100 ms")
GHOST = """<models><model name="ghost" type="buoy"><sphere diameter="0.1 m"/><mass value="1000 kg"/><inertia xx="1" yy="1" zz="1"/>
<buoyancy volume="1 m3"/><added-mass diagonal="0 0 0 0 0 0"/><linear-drag diagonal="0 0 0 0 0 0"/><quadratic-drag diagonal="0 0 0 0 0 0"/>
<transducer {transducer}>{inner}</transducer></model></models>"""
PLAIN = 'listen_low="10 kHz" listen_high="40 kHz" threshold="60 dB" source_level="200 dB" pulse="10 ms" recharge="0 s"'
ANSWERS = PLAIN + ' query="25 kHz" reply="26 kHz" turn_around="{tat} ms"'


def sea(
    config: Callable[..., LoadedConfig],
    tick: str,
    *transducers: str | tuple[str, str],
    noise: str = "20 dB",
    extra: str = "",
    inner: str = "",
    world: str = '<bed depth="9000 m"/>',
    rest: str = "",
    seed: int = 1,
) -> Simulation:
    """A sea in which bodies move on straight lines (weight equals buoyancy, no drag).

    Body `ghostK` has the K-th transducer: its attributes, or these and its elements. ``extra`` and ``inner`` are
    attributes and elements of <acoustics>.
    """
    models = ""
    for k, t in enumerate(transducers):
        attributes, elements = (t, "") if isinstance(t, str) else t
        models += GHOST.replace('"ghost"', f'"ghost{k}"').format(transducer=attributes, inner=elements)[8:-9]
    sound = "" if "sound_speed" in extra else 'sound_speed="1500 m/s"'
    acoustics = f'<acoustics {sound} ambient_noise="{noise}" {extra}>{inner}</acoustics>'
    return Simulation(
        config(
            f'<time step="{tick}"/><world density="1000 kg/m3">{world}</world>{acoustics}<models>{models}</models>{rest}',
            seed=str(seed),
        )
    )


def node(sim: Simulation, name: str, kind: int, x: float, v: float = 0.0, y: float = 0.0, z: float = 1000.0) -> int:
    row = sim.enter(name, f"ghost{kind}", (x, y, z))
    sim.set_pose(row, velocity=(v, 0.0, 0.0, 0.0, 0.0, 0.0))
    return row


def run(sim: Simulation, seconds: float) -> tuple[Any, Any]:
    sim.advance(math.ceil(seconds * 1e9 / sim.step_ns - 1e-9))
    return sim.take_signals()


def heard(receptions: Any, row: int) -> Any:
    return receptions[(receptions["receiver"] == row) & (receptions["outcome"] == Outcome.HEARD)]


def outcomes(receptions: Any, row: int) -> list[Outcome]:
    """What became of everything that could have been heard at a node."""
    return [Outcome(int(o)) for o in receptions[receptions["receiver"] == row]["outcome"]]


def records(of: Table, count: int) -> Any:
    """So many records, all zero."""
    return np.zeros(count, of.dtype).view(np.recarray)


def find_eigenrays(link: rays.Link, bounces: int) -> Any:
    """The eigenrays of a path with at most so many bounces."""
    fan, found = records(eigenrays.FAN, eigenrays.fan_size(len(link.profile.z))), records(eigenrays.EIGENRAY, 64)
    search = eigenrays.EigenraySearch(link, bounces, True, fan, found, np.zeros((0, 2)), records(rays.RAY, 1))
    count, _ = eigenrays.find_eigenrays(search, eigenrays.launch_fan(link.profile, link.source, fan))
    return found[:count]
