"""Declarations of the dynamics' arrays: names, units, frames, places, use, and publication into shared memory."""

from __future__ import annotations

import ast
import math
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from wavesim_sdk import tables
from wavesim_server.dynamics import block_rows, model_columns, parameter_rows, work_rows
from wavesim_server.dynamics.row_tables import RowTable, row_numbers

#: modules of the declarations, with the names under which the kernels import them
MODULES = {"B": block_rows, "P": parameter_rows, "W": work_rows, "M": model_columns}
TABLES = [
    pytest.param(letter, module, table, id=table.name)
    for letter, module in MODULES.items()
    for table in vars(module).values()
    if isinstance(table, RowTable)
]
_SYMBOL = r"(?:kg|m|s|N|rad)\d?"
_PRODUCT = rf"{_SYMBOL}(?: {_SYMBOL})*"
UNIT = re.compile(rf"(?:1|{_PRODUCT})(?:/(?:{_SYMBOL}|\({_PRODUCT}\)))?")
EACH_TABLE = pytest.mark.parametrize(("letter", "module", "table"), TABLES)


@EACH_TABLE
def test_a_constant_has_the_name_and_the_place_of_its_rows(letter: str, module: ModuleType, table: RowTable) -> None:
    for group in table.groups:
        assert getattr(module, group.name) == group.first


@EACH_TABLE
def test_rows_follow_each_other_without_gap_or_overlap(letter: str, module: ModuleType, table: RowTable) -> None:
    owners = [g.name for g in table.groups for _ in range(g.count)]
    assert len(owners) == table.size
    for group in table.groups:
        assert group.count > 0
        assert owners[group.first : group.first + group.count] == [group.name] * group.count


@pytest.mark.parametrize("letter", MODULES)
def test_names_are_unique_in_a_module(letter: str) -> None:
    found = [t for t in vars(MODULES[letter]).values() if isinstance(t, RowTable)]
    names = [g.name for t in found for g in t.groups]
    assert len(set(names)) == len(names)


@EACH_TABLE
def test_units_frames_and_sentences(letter: str, module: ModuleType, table: RowTable) -> None:
    for g in table.groups:
        units = re.split(r", | or ", g.unit) if g.unit else []
        assert [u for u in units if not UNIT.fullmatch(u)] == [], g.name
        assert g.frame in ("", "W", "B"), g.name
        assert g.doc.endswith((".", ").")), g.name


def used_names(root: Path) -> set[str]:
    """Names like ``B.NU`` in the packages, except in the declarations themselves."""
    own = {Path(str(module.__file__)).name for module in MODULES.values()}
    files = [p for folder in ("server", "studies") for p in (root / folder).rglob("*.py") if p.name not in own]
    return {
        f"{node.value.id}.{node.attr}"
        for path in files
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }


def test_every_declared_row_is_used(root: Path) -> None:
    used = used_names(root)
    declared = {f"{p.values[0]}.{g.name}" for p in TABLES for g in p.values[2].groups}  # type: ignore[union-attr]
    assert declared - used == set()


def test_the_published_rows_fill_the_state_except_for_the_velocity_through_the_water() -> None:
    pairs = block_rows.TABLE.published_rows(tables.STATE)
    through_water = tables.STATE.first_columns["v_FB_B"]
    assert sorted([*pairs[:, 1], *range(through_water, through_water + 3)]) == list(range(row_numbers(tables.STATE)))


def test_first_columns_are_those_of_the_record() -> None:
    for table in (tables.STATE, tables.ACTUATION, tables.EFFORT, tables.SURROUNDINGS):
        fields = table.dtype.fields
        assert fields is not None
        assert {name: 8 * at for name, at in table.first_columns.items()} == {n: f[1] for n, f in fields.items()}
        sizes = [math.prod(f.shape) for f in table.fields]
        assert list(table.first_columns.values()) == [sum(sizes[:k]) for k in range(len(sizes))]
        assert 8 * row_numbers(table) == table.dtype.itemsize


def test_rows_of_one_field_go_to_consecutive_columns() -> None:
    table = RowTable("state", "")
    table.declare("A", "m", "W", "First.", column="q_WB")
    table.declare("B", "m", "W", "Not published.", 5)
    table.declare("C", "m", "W", "Second and third.", 2, column="q_WB")
    assert np.array_equal(table.published_rows(tables.STATE), [[0, 3], [6, 4], [7, 5]])
