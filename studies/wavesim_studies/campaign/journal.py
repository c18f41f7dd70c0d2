"""Journal of a campaign: the outcome of each run, with one commit per run.

Only the process that started the campaign writes to the journal.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from wavesim_sdk.errors import WaveSimError
from wavesim_studies.campaign.plan import PlannedRun
from wavesim_studies.campaign.run import Outcome

FILE = "journal.sqlite"
_SCHEMA = """
create table if not exists runs (key text primary key, row integer, point integer, replicate integer, seed integer,
  factors text, attempts integer, status text, outcome text);
create table if not exists about (name text primary key, value text);
"""


class Journal:
    """An open journal. If ``new`` is set, the journal is created for writing; otherwise, ``folder`` must already
    contain a journal. Raises WaveSimError if the journal cannot be opened.
    """

    def __init__(self, folder: Path, *, new: bool = False) -> None:
        self.path = folder / FILE
        if not new and not self.path.is_file():
            raise WaveSimError(f"no results in {folder}; `wavesim campaign run` creates them")
        try:
            if new:
                folder.mkdir(parents=True, exist_ok=True)
            # The next reader recovers a journal whose writer was killed during a commit, and needs write access for
            # that.
            mode = "rwc" if new else "rw" if os.access(self.path, os.W_OK) else "ro"
            self._base = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode={mode}", uri=True, timeout=30.0)
            if new:
                # Do not wait for the disk at each run. After a power failure the last runs may be repeated.
                self._base.execute("pragma journal_mode = wal")
                self._base.execute("pragma synchronous = normal")
                self._base.executescript(_SCHEMA)
                self._base.execute("insert or replace into about values ('writer', 'wavesim')")
                self._base.commit()
        except (OSError, sqlite3.Error) as error:
            raise self._cannot(error) from None

    def _cannot(self, error: Exception) -> WaveSimError:
        return WaveSimError(f"cannot write to {self.path}: {getattr(error, 'strerror', None) or error}")

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, _t: type[BaseException] | None, _e: BaseException | None, _b: TracebackType | None) -> None:
        self._base.close()

    def note(self, name: str, value: str) -> None:
        """Store a named string about the campaign as a whole."""
        self._write("insert or replace into about values (?, ?)", (name, value))

    def about(self) -> dict[str, str]:
        """Return everything that :meth:`note` has stored."""
        return dict(self._read("select name, value from about"))

    def files(self, key: str) -> dict[str, str]:
        """Return the name and the SHA-256 of each file that determined a run; the result is empty if they were not
        recorded.
        """
        for (outcome,) in self._read("select outcome from runs where key = ?", (key,)):
            named = (f"files {json.loads(outcome).get('files')}",)
            for (value,) in self._read("select value from about where name = ?", named):
                return dict(json.loads(value))
        return {}

    def record_outcome(self, row: PlannedRun, attempts: int, outcome: Outcome) -> None:
        """Store the outcome of a run, replacing any earlier outcome."""
        values = (
            row.key,
            row.number,
            row.point,
            row.replicate,
            row.seed,
            json.dumps(row.factors),
            attempts,
            outcome["status"],
            json.dumps(outcome),
        )
        self._write("insert or replace into runs values (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)

    def _write(self, text: str, values: tuple[Any, ...]) -> None:
        try:
            with self._base:
                self._base.execute(text, values)
        except sqlite3.Error as error:
            raise self._cannot(error) from None

    def _read(self, query: str, values: tuple[Any, ...] = ()) -> list[Any]:
        try:
            return self._base.execute(query, values).fetchall()
        except sqlite3.Error as error:  # the campaign has only just begun, or the file is not a journal
            raise WaveSimError(f"no results in {self.path}: {error}") from None

    def states(self) -> dict[str, tuple[str, int]]:
        """Return the status and the number of attempts of all runs, by key."""
        return {k: (s, a) for k, s, a in self._read("select key, status, attempts from runs")}

    def table(self, keys: Iterable[str] | None = None) -> list[dict[str, Any]]:
        """Return one dictionary per run in the order of row numbers, limited to ``keys`` if given."""
        selected = None if keys is None else set(keys)
        found = []
        query = (
            "select key, row, point, replicate, seed, factors, attempts, status, outcome from runs order by row, rowid"
        )
        for key, row, point, replicate, seed, factors, attempts, status, outcome in self._read(query):
            if selected is None or key in selected:
                result = json.loads(outcome)
                found.append(
                    {
                        "row": row,
                        "point": point,
                        "replicate": replicate,
                        "seed": seed,
                        **json.loads(factors),
                        **result["metrics"],
                        "status": status,
                        "reason": result["reason"],
                        **({"success": result["success"]} if "success" in result else {}),
                        "attempts": attempts,
                        "wall": result["wall"],
                        "simulated": result["simulated"],
                        "host": result["host"],
                        "cpu": result["cpu"],
                        "hash": result["hash"],
                        "key": key,
                    }
                )
        return found
