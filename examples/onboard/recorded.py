"""On-board program that replays recorded actuator commands from a file.

python recorded.py --config ../trials/recorded.xml --vehicle boat --commands odin-zigzag.csv --map port=port --map 4=nozzle*deg

File names are relative to the folder of the configuration. Each line of commands remains in effect until the next line
is due. A measured track (--track) is published as the estimate: the viewer shows it next to the vehicle, and the report
of the trial contains its distance from the vehicle.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

import program
from wavesim_sdk.algebra import interpolate
from wavesim_sdk.broker import Broker, Step
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.estimate import Estimate
from wavesim_sdk.names import suggest_name
from wavesim_world.config import BodyConfig, LoadedConfig
from wavesim_world.recorded_data import parse_map, read_columns

Array = np.ndarray[Any, np.dtype[np.float64]]
SOON = 1e-6  #: tolerance in s: a line of commands already counts as due this long before its time


class Recorded:
    """Recorded actuator commands over time, and a measured track for comparison (if given)."""

    def __init__(self, loaded: LoadedConfig, body: BodyConfig, options: argparse.Namespace) -> None:
        columns, self.times = read_columns(loaded.data_file(options.commands), options.rate)
        self.commands = dict(parse_map(loaded.model(body.model), item, columns) for item in options.map)
        self.track: list[Array] = []
        if options.track:
            measured, at = read_columns(loaded.data_file(options.track), options.rate)
            for name in (options.north, options.east):
                if name not in measured:
                    raise ConfigError(f"the track has no column '{name}'{suggest_name(name, measured)}", options.track)
            self.track = [at, measured[options.north], measured[options.east]]
        self._line = -1

    def act(self, step: Step, broker: Broker) -> tuple[dict[str, float], Estimate | None]:
        names = [a.name for a in broker.actuators]
        line = int(np.searchsorted(self.times, step.time + SOON, side="right")) - 1
        orders = (
            {names[which]: float(values[line]) for which, values in self.commands.items()} if line != self._line else {}
        )
        self._line = line
        return orders, self._believed(step.time)

    def _believed(self, time: float) -> Estimate | None:
        if not self.track or time > self.track[0][-1] + SOON:
            return None
        at, north, east = self.track
        place = [float(interpolate(time, at, x)) for x in (north, east)]
        return Estimate(north=place[0], east=place[1], dead_reckoning_north=place[0], dead_reckoning_east=place[1])


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--commands", required=True, metavar="FILE")
    parser.add_argument("--map", action="append", required=True, metavar="ACTUATOR=COLUMN[*FACTOR]")
    parser.add_argument("--rate", type=float, help="sample rate of a file without a time column, in lines per second")
    parser.add_argument("--track", metavar="FILE", help="measured")
    parser.add_argument("--north", default="north", help="its column")
    parser.add_argument("--east", default="east", help="its column")


if __name__ == "__main__":
    sys.exit(program.run(__doc__, Recorded, options))
