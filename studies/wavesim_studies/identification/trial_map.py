"""Declarations of all elements and keys of a trial map, in the same form as for a configuration. A trial map assigns the
columns of CSV files to actuators and to measurements.
"""

from __future__ import annotations

from dataclasses import dataclass

from wavesim_world.config.schema import Vector, children, key, place, text


@dataclass(frozen=True)
class TrialTable:
    """CSV file with a header. It contains commands or measurements over time."""

    file: str = text("Path of the CSV file, relative to the folder of the trial.")
    columns: str = text(
        "Columns as NAME=COLUMN or NAME=COLUMN:UNIT, separated by spaces, for example `time=t_ns:ns rudder=data:deg "
        "yaw_rate=wz`. NAME is an actuator of the model, a measurement, `time`, or `attitude` with the four columns of a "
        "quaternion (scalar first). Only these columns are used.",
    )
    position: Vector = key(
        "Position in the body frame (forward, starboard, down) of the instrument that measured the values. It matters for "
        "positions and velocities.",
        "length",
        (0.0, 0.0, 0.0),
        count=3,
    )
    place: str = place()


@dataclass(frozen=True)
class TrialMap:
    """Description of the files of a trial."""

    licence: str = text("Licence of the data. Reports print it.", "")
    table: tuple[TrialTable, ...] = children(TrialTable, "A CSV file.", least=1)
    place: str = place()
