"""Declaration of the flat arrays of the dynamics: a name, unit, frame and description for each group of rows.

Each array is declared once, in :mod:`~wavesim_server.dynamics.block_rows`,
:mod:`~wavesim_server.dynamics.parameter_rows`, :mod:`~wavesim_server.dynamics.work_rows` or
:mod:`~wavesim_server.dynamics.model_columns`. The declarations define the row numbers, the array sizes, and which rows
are published in shared memory. docs/KERNEL_ROWS.md and tests/physics/test_row_tables.py also use these declarations.

The result of a declaration is a plain integer, because a compiled function can use only plain integers as constants.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from wavesim_sdk.arrays import Ints
from wavesim_sdk.tables import Table


@dataclass(frozen=True)
class RowGroup:
    """Consecutive rows of an array that are declared together."""

    name: str
    first: int
    count: int
    unit: str
    frame: str  #: frame: W (north-east-down) or B (the body); empty for numbers without a frame
    doc: str
    column: str = ""  #: column of the `state` table in which the rows are published


@dataclass
class RowTable:
    """Rows of an array, in the order of their declaration."""

    name: str  #: name of the array in the kernels
    doc: str
    groups: list[RowGroup] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Number of rows that have been declared so far."""
        return self.groups[-1].first + self.groups[-1].count if self.groups else 0

    def declare(self, name: str, unit: str, frame: str, doc: str, count: int = 1, column: str = "") -> int:
        """Declare the next rows and return the number of their first row. ``name`` is the name of the constant that
        stores this number.
        """
        first = self.size
        self.groups.append(RowGroup(name, first, count, unit, frame, doc, column))
        return first

    def published_rows(self, table: Table) -> Ints:
        """Return an array (n, 2) with one pair for each row that ``table`` publishes: the row, and its column in ``table``."""
        first_column = table.first_columns
        pairs: list[tuple[int, int]] = []
        used: dict[str, int] = {}
        for group in self.groups:
            for row in range(group.first, group.first + group.count) if group.column else ():
                at = used.setdefault(group.column, 0)
                pairs.append((row, first_column[group.column] + at))
                used[group.column] = at + 1
        return np.array(pairs, np.int64)

    def markdown(self) -> str:
        """Return the table as a section of docs/KERNEL_ROWS.md."""
        lines = [f"## {self.name}", "", self.doc, "", "| first row | name | rows | unit | frame | content |"]
        lines.append("|---|---|---|---|---|---|")
        lines += [f"| {g.first} | `{g.name}` | {g.count} | {g.unit} | {g.frame} | {g.doc} |" for g in self.groups]
        return "\n".join([*lines, ""])


def row_numbers(table: Table) -> int:
    """Return how many numbers a row of a table contains."""
    return sum(math.prod(f.shape) for f in table.fields)
