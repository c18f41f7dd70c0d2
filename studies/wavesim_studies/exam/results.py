"""Result files of the exam, and the table that is built from them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from wavesim_sdk.errors import LogError
from wavesim_sdk.terminal_text import finite_json
from wavesim_studies.exam.scenario import LEVELS, AlteredScenario, frozen_digests

__all__ = ["FORMAT", "read_results", "table_rows", "write_results"]

FORMAT = "wavesim-exam-1"
COLUMNS = (
    "scenario",
    "level",
    "filter",
    "seeds",
    "rms (m)",
    "95 % (m)",
    "bound (m)",
    "straight (m)",
    "NEES of 2",
    "NIS of 1",
    "available (%)",
    "covered (%)",
    "first fix (s)",
    "pings (J)",
)
REQUIRED = (
    "scenario",
    "level",
    "seed",
    "digest",
    "filter",
    "content_hash",
    "truth_hash",
    "vehicles",
    "bound",
    "straight",
)


def write_results(cases: Sequence[dict[str, Any]], path: Path) -> None:
    """Write a result file."""
    try:
        path.write_text(finite_json({"format": FORMAT, "cases": list(cases)}, 2) + "\n")
    except OSError as error:
        raise LogError(f"cannot write {path}: {error.strerror}") from None


def read_results(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Read result files. Raise LogError if a file is not a result or if two results have the same case and filter, and
    AlteredScenario if a result belongs to another version of a scenario, or if two results of one case belong to
    different runs.
    """
    found: list[dict[str, Any]] = []
    for path in paths:
        found += _read(path)
    first: dict[tuple[str, str, int], dict[str, Any]] = {}
    filters: dict[tuple[str, str, int, str], dict[str, Any]] = {}
    for case in found:
        key = case["scenario"], case["level"], case["seed"]
        other = first.setdefault(key, case)
        if other["truth_hash"] != case["truth_hash"]:
            raise AlteredScenario(
                f"the results of '{other['filter']}' and '{case['filter']}' for {key[0]}, {key[1]}, seed {key[2]} belong to "
                f"different runs: the true tracks differ ({other['file']}, {case['file']}). Did a program steer the "
                "vehicle itself, or was the simulator changed?"
            )
        twin = filters.setdefault((*key, case["filter"]), case)
        if twin is not case:
            raise LogError(
                f"{twin['file']} and {case['file']} both contain a result of '{case['filter']}' for {key[0]}, {key[1]}, "
                f"seed {key[2]}; distinguish the filters with --name"
            )
    return found


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        data = json.loads(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise LogError(f"cannot read {path}: {getattr(error, 'strerror', None) or 'it is not a text file'}") from None
    except ValueError as error:
        raise LogError(f"{path} is not a result of `wavesim exam`: {error}") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT or not isinstance(data.get("cases"), list):
        raise LogError(f"{path} is not a result of `wavesim exam`: it must be JSON with the format '{FORMAT}'")
    frozen = frozen_digests()
    for case in data["cases"]:
        if not isinstance(case, dict):
            raise LogError(f"{path} is not a result of `wavesim exam`: a case must be an object")
        if {"scenario", "digest"} <= case.keys() and frozen.get(case["scenario"]) != case["digest"]:
            raise AlteredScenario(
                f"{path}: the result for '{case['scenario']}' belongs to another version of the scenario; run it again"
            )
        if missing := [k for k in REQUIRED if k not in case]:
            raise LogError(f"{path}: a case lacks '{missing[0]}'")
        case["file"] = str(path)
    cases: list[dict[str, Any]] = data["cases"]
    return cases


def table_rows(cases: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return the rows of the table: one for each scenario, level and filter, combined over seeds and vehicles."""
    order, groups = list(frozen_digests()), dict[tuple[int, int, str], list[dict[str, Any]]]()
    for case in cases:
        key = order.index(case["scenario"]), LEVELS.index(case["level"]), case["filter"]
        groups.setdefault(key, []).append(case)
    rows: list[tuple[str, ...]] = []
    for (place, level, name), group in sorted(groups.items()):
        values = [v for case in group for v in case["vehicles"].values()]
        bounds, straight = ([b for case in group for b in case[k].values()] for k in ("bound", "straight"))
        fixes = [v["first_fix"] for v in values]
        first = "-" if not fixes or any(f is None for f in fixes) else f"{sum(fixes) / len(fixes):.1f}"
        rows.append(
            (
                order[place],
                LEVELS[level],
                name,
                str(len({case["seed"] for case in group})),
                _number(_rms([v["rms"] for v in values])),
                _number(_mean([v["p95"] for v in values])),
                _number(_rms(bounds)),
                _number(_rms(straight)),
                _number(_mean([v.get("nees") for v in values])),
                _number(_mean([v.get("nis") for v in values])),
                *(f"{100.0 * (_mean([v[k] for v in values]) or 0.0):.0f}" for k in ("available", "coverage")),
                first,
                _number(sum(v["ping_energy"] for v in values) / len(group)),
            )
        )
    return rows


def markdown(rows: Sequence[tuple[str, ...]]) -> str:
    """Return the table as Markdown."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def csv(rows: Sequence[tuple[str, ...]]) -> str:
    """Return the table as CSV."""
    quoted = (
        [f'"{x.replace(chr(34), chr(34) * 2)}"' if set(x) & set(',"\n') else x for x in row] for row in (COLUMNS, *rows)
    )
    return "\n".join(",".join(row) for row in quoted)


def plain(rows: Sequence[tuple[str, ...]]) -> str:
    """Return the table as text with aligned columns."""
    table = [COLUMNS, *rows]
    width = [max(len(row[k]) for row in table) for k in range(len(COLUMNS))]
    return "\n".join(
        "  ".join(x.ljust(w) if k < 3 else x.rjust(w) for k, (x, w) in enumerate(zip(row, width, strict=True))).rstrip()
        for row in table
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else None


def _rms(values: Sequence[float | None]) -> float | None:
    known = [v * v for v in values if v is not None]
    return math.sqrt(sum(known) / len(known)) if known else None


def _number(x: float | None) -> str:
    return "-" if x is None else f"{x:.3g}"
