"""No kernel is compiled or loaded while the clock runs, because all participants would wait for it.

Run as a program, this file prints the kernels that a world requests after all have been loaded. It needs its own
process, because another test may already have loaded these kernels.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from wavesim_sdk.tables import SIGNALS
from wavesim_world.config import LoadedConfig, load

WORLDS = {
    "soundings": """<world><soundings file="bed.asc" north="-100 m" east="-100 m"/><waves height="1 m"/><wind speed="8 m/s"/>
<current><layer depth="0 m" north="1 m/s"/><layer depth="20 m" north="0.5 m/s" east="0.2 m/s"/></current>
<obstacles><block position="30 0 5 m" size="4 9 18 m"/><pier position="-20 0 10 m" radius="1 m" height="20 m"/></obstacles></world>
<acoustics/>""",
    "profile": """<world><bed depth="18 m"/><temperature surface="19 C" knee_1="4 m" knee_2="9 m" gradient_1="-0.9 C/m" gradient_2="-0.02 C/m"/>
<tide amplitude="1.5 m" period="1000 s"/></world>
<acoustics profile="water" formula="chen-millero" sum="coherent"><multipath order="3" bottom_speed="1650 m/s" bottom_density="1.9"/></acoustics>""",
    "free": "",
}
MODEM = '<transducer><modem address="{}"/></transducer>'
FLEET = f"""<fleet><vehicle name="lauv" model="lauv" position="0 0 3 m" speed="1 m/s">{MODEM.format(1)}</vehicle>
<buoy name="b" model="buoy" position="40 20 5 m">{MODEM.format(2)}<mooring anchor="40 20 17 m" length="11.9 m" stiffness="1500 N/m" damping="150 N s/m"/></buoy></fleet>"""


@pytest.mark.compiled
@pytest.mark.parametrize(("world", "threads"), [*((world, 1) for world in WORLDS), ("free", 2)])
def test_nothing_is_compiled_or_loaded_once_time_runs(
    config: Callable[..., LoadedConfig], tmp_path: Path, world: str, threads: int
) -> None:
    (tmp_path / "bed.asc").write_text(
        "ncols 4\nnrows 4\nxllcorner 0\nyllcorner 0\ncellsize 300\n" + "20 25 30 40\n" * 4
    )
    path = config(f'<time step="20 ms"/><shared vehicles="8" signals="64"/>{WORLDS[world]}{FLEET}').path
    run = subprocess.run([sys.executable, __file__, path, str(threads)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["heard"], run.stdout


def main(path: Path, threads: int) -> None:
    import numba.core.dispatcher

    from wavesim_server import compiling
    from wavesim_server.simulation import Simulation

    compiling.exercise_all(threads)
    compiled = numba.core.dispatcher.Dispatcher.compile

    def watched(kernel: object, signature: object) -> object:
        print(f"{kernel.py_func.__module__}.{kernel.py_func.__name__}")  # type: ignore[attr-defined]
        return compiled(kernel, signature)

    numba.core.dispatcher.Dispatcher.compile = watched
    world = Simulation(load(path), threads=threads)
    world.enter_residents()
    lauv = world.row_of("lauv")
    assert lauv is not None
    rows = [
        world.enter(m, m, (90.0 * k, 40.0, 0.0)) for k, m in enumerate(("vita1", "jolner", "box-buoy", "supply"), 1)
    ]
    world.ping(lauv, 25e3)
    world.advance(100)
    world.send(lauv, b"hello", 2)
    world.advance(200)
    world.range_request(lauv, 2)
    world.advance(200)
    if world.take_signals()[1].size:
        print("heard")
    world.command(lauv, [0.5] * len(world.fleet.actuators(lauv)))
    world.fail(lauv, 0, "stuck")
    world.allocate(rows[0], [[1.0] * len(world.occupants[rows[0]].model.thruster)] * 6)
    world.push(rows[0], (10.0, 0.0, 0.0))
    world.set_pose(rows[0], (5.0, 0.0, 3.0))
    world.set_weather(current_north=0.3, wind_speed=8.0)
    world.advance(50)
    world.tick_executor.threads.min_bodies = 0
    world.advance(50)
    (
        world.results.effort(),
        world.results.surroundings(world.time_s),
        world.weather_model.uniform_flow(world.time_s),
        world.state(),
        world.actuation(),
    )
    world.channel.live_signals(np.zeros(world.config.shared.signals, SIGNALS.dtype), world.time_s)
    world.leave(rows[0])
    world.advance(10)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
