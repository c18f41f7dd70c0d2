"""The bodies in a simulation by row and by name, and the rows that are free or reserved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wavesim_sdk.actuators import Actuator
from wavesim_sdk.errors import InvalidArgument
from wavesim_sdk.names import shorten
from wavesim_sdk.tables import NAME_BYTES
from wavesim_world.config import BodyConfig, Model, TransducerConfig


@dataclass
class Occupant:
    """Description of the body that occupies a row."""

    name: str
    model: Model
    transducer: TransducerConfig | None
    actuators: tuple[Actuator, ...]


class Occupants:
    """The occupied rows. The first rows are reserved for the bodies in the configuration, in the same order."""

    def __init__(self, bodies: Sequence[BodyConfig], capacity: int) -> None:
        self.by_row: dict[int, Occupant] = {}
        self.reserved = {
            b.name: (row, b) for row, b in enumerate(bodies)
        }  #: row and configuration of each body, by name
        self._rows: dict[str, int] = {}  # row by body name
        self._capacity = capacity
        self._row_taken = np.zeros(capacity, bool)  # rows that are occupied or reserved
        self._row_taken[: len(self.reserved)] = True
        self._lowest_free_row = 0  # all rows below this one are taken

    def row_for(self, name: str) -> int | None:
        """Return the row that a body with this name would occupy, or None if all rows are in use."""
        if name in self.reserved:
            return self.reserved[name][0]
        if self._lowest_free_row < self._capacity:
            self._lowest_free_row += int(np.argmin(self._row_taken[self._lowest_free_row :]))
            if not self._row_taken[self._lowest_free_row]:
                return self._lowest_free_row
        return None

    def row_of(self, name: str) -> int | None:
        """Return the row of a body, or None if the body is absent."""
        return self._rows.get(name)

    def free_row(self, name: str, row: int | None) -> int:
        """Return a valid row for a new body. Raises InvalidArgument if the name or the row is invalid or already in use."""
        if not isinstance(name, str) or not 0 < len(name.encode()) <= NAME_BYTES:
            raise InvalidArgument(f"invalid name '{shorten(name)}': use 1 to {NAME_BYTES} bytes")
        if name in self._rows:
            raise InvalidArgument(f"a body named '{name}' is already in the simulation")
        row = self.row_for(name) if row is None else row
        if row is None:
            raise InvalidArgument(
                f'all {self._capacity} rows are in use; increase <shared vehicles="N"/> in the configuration to allow more bodies'
            )
        if not isinstance(row, int) or not 0 <= row < self._capacity:
            raise InvalidArgument(f"invalid row {shorten(row, 20)}: use 0 to {self._capacity - 1}")
        if row in self.by_row:
            raise InvalidArgument(f"row {row} is already occupied by '{self.by_row[row].name}'")
        if (row < len(self.reserved) or name in self.reserved) and self.reserved.get(name, (-1,))[0] != row:
            raise InvalidArgument(f"row {row} is not available to '{name}': it is reserved for another body")
        return row

    def add(self, row: int, occupant: Occupant) -> None:
        """Add a body in a row that was returned by :meth:`free_row`."""
        self.by_row[row] = occupant
        self._rows[occupant.name], self._row_taken[row] = row, True

    def remove(self, row: int) -> None:
        """Remove the body in a row."""
        del self._rows[self.by_row.pop(row).name]
        if row >= len(self.reserved):
            self._row_taken[row], self._lowest_free_row = False, min(self._lowest_free_row, row)

    def in_row(self, row: int) -> Occupant:
        """Return the body in a row. Raises InvalidArgument if the row has no body."""
        try:
            return self.by_row[row]
        except (KeyError, TypeError):
            raise InvalidArgument(f"no body in row {shorten(row, 20)}") from None
