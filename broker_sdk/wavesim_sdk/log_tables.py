"""Log tables as columns, for pandas, xarray, polars and Arrow."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.arrays import Array, Floats, Ints, Record
from wavesim_sdk.errors import UnknownName
from wavesim_sdk.extras import check_installed
from wavesim_sdk.names import suggest_name
from wavesim_sdk.tables import RECEPTION, SENT, STATE, Field, Outcome, SignalKind

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    import xarray

__all__ = ["LogTable", "Series", "straight_line_errors"]


@dataclass
class Series:
    """All messages on one topic, with their times (ns) and their records."""

    time_ns: Ints
    records: Record
    type: str = ""  #: name of the table that declares the columns of the records


class LoggedBodies(Protocol):
    """The contents of a log that are needed to convert topics to columns: its metadata, the texts about its bodies, the
    name of the body in each row, and the sound speed that instruments assume.
    """

    metadata: dict[str, str]
    json: dict[str, list[tuple[int, dict[str, Any]]]]

    @property
    def sound_speed(self) -> float:
        """Sound speed in m/s that instruments assume; NaN if the log does not state it."""

    def names_at(self, rows: Any, time_ns: Any) -> list[str]:
        """Return the names of the bodies in these rows at these times."""


IMPORT_NOTES = "import_notes"  #: metadata key of imported logs: JSON list of the notes of the conversion
UNKNOWN_TRUTH = "unknown_truth"  #: metadata key of logs whose true states lack the attitude or the depth
#: column suffixes by array length, for the axes of a vector and the components of a quaternion; arrays of other lengths
#: have indices
_AXES = {3: ("x", "y", "z"), 4: ("w", "x", "y", "z")}
_ENUM_COLUMNS: dict[str, type[IntEnum]] = {"outcome": Outcome, "kind": SignalKind}
_SENT = "sent"  #: text that replaces the outcome HEARD (received) in rows for sent signals
_STRAIGHT_LINE_ERROR = "straight_line_error"
_NODE_COLUMNS = ("source", "receiver", "query_source")


def known_states(metadata: Mapping[str, str], records: Record) -> Record:
    """Return the records of the ``state`` table, with NaN in place of values that are unknown in an imported log.

    An imported log contains measured or assumed values in these places, because a replay needs a state.
    """
    unknown = metadata.get(UNKNOWN_TRUTH, "").split()
    if unknown:
        records = records.copy()
        if "depth" in unknown:
            records["p_WB_W"][:, 2] = np.nan
        if "attitude" in unknown:  # vectors in B follow from the attitude
            for name in ("q_WB", "v_WB_B", "w_WB_B", "v_FB_B"):
                records[name] = np.nan
    return records


def straight_line_errors(receptions: Record, sound_speed: float) -> Floats:
    """Return the straight-line error of each reception in m: assumed sound speed times true travel time, minus the true
    distance from the sender at emission to the receiver at arrival.

    The error is due to the assumed sound speed and the curved path only; it does not include noise or clock errors.
    """
    travel = (receptions["arrival_ns"] - receptions["emission_ns"]) * 1e-9
    return np.asarray(sound_speed * travel - receptions["distance"])


def topic_columns(log: LoggedBodies, topic: str, series: Series) -> dict[str, list[Any]]:
    """Return the columns of a topic by name.

    The columns contain words instead of codes, and the names of nodes and actuators. Euler angles are added to
    quaternions, and the straight-line error is added to receptions. Unknown true states of imported logs are NaN.
    """
    found: dict[str, list[Any]] = {"time_ns": series.time_ns.tolist()}
    body = topic.partition("/actuation/")[2]
    records = known_states(log.metadata, series.records) if series.type == STATE.name else series.records
    for name in records.dtype.names or ():
        values = records[name]
        if series.type in (SENT.name, RECEPTION.name) and name in _ENUM_COLUMNS:
            words = {int(w): w.name.lower() for w in _ENUM_COLUMNS[name]}
            if (series.type, name) == (SENT.name, "outcome"):
                words[Outcome.HEARD] = _SENT
            found[name] = [words.get(v, v) for v in values.tolist()]
        elif series.type in (SENT.name, RECEPTION.name) and name in _NODE_COLUMNS:
            found[name] = log.names_at(values, series.time_ns)
        elif name == "payload":
            lengths = series.records["payload_bytes"].tolist()
            found[name] = [bytes(v).ljust(n, b"\0")[:n].hex() for v, n in zip(values.tolist(), lengths, strict=True)]
        elif values.dtype.kind == "S":
            found[name] = [bytes(v).decode("utf-8", "replace") for v in values.tolist()]
        elif values.ndim == 1:
            found["measured_ns" if name == "time_ns" else name] = values.tolist()
        else:
            for label, column in zip(_labels(log, body, values.shape[1]), values.T, strict=False):
                found[f"{name}_{label}"] = column.tolist()
        if name == "q_WB":
            for label, column in zip(("roll", "pitch", "heading"), frames.euler(values).T, strict=True):
                found[label] = column.tolist()
    if series.type == RECEPTION.name and log.sound_speed == log.sound_speed:
        found[_STRAIGHT_LINE_ERROR] = straight_line_errors(series.records, log.sound_speed).tolist()
    return found


def _labels(log: LoggedBodies, body: str, count: int) -> list[str]:
    if not body:
        return list(_AXES.get(count, ())) or [str(k) for k in range(count)]
    came = [b for _, b in log.json.get("/bodies", []) if b["name"] == body and b.get("present")]
    return [a["name"] for a in came[-1].get("actuators", [])] if came else []


def arrays_and_units(
    log: LoggedBodies, topic: str, series: Series, fields: Sequence[Field]
) -> tuple[dict[str, Array], dict[str, str]]:
    """Return the columns of :func:`topic_columns` as arrays, and their units."""
    found = {
        k: np.array(v, object if v and isinstance(v[0], str) else None)
        for k, v in topic_columns(log, topic, series).items()
    }
    known = {f.name: f.unit for f in fields}
    units = {"time_ns": "ns", "measured_ns": "ns", "roll": "rad", "pitch": "rad", "heading": "rad"}
    units[_STRAIGHT_LINE_ERROR] = "m"
    longest = sorted(known, key=len, reverse=True)
    for name in found:
        of = next((f for f in longest if name == f or name.startswith(f"{f}_")), "")
        units.setdefault(name, known.get(of, ""))
    return found, {k: units[k] for k in found if units[k]}


def text_columns(messages: Sequence[tuple[int, Mapping[str, Any]]]) -> dict[str, Array]:
    """Return the columns of a text topic: ``time_ns``, and one for each key. Lists and objects are given as JSON."""
    keys = dict.fromkeys(key for _, message in messages for key in message)
    found: dict[str, Array] = {"time_ns": np.array([t for t, _ in messages], np.int64)}
    for key in keys:
        cells = [message.get(key) for _, message in messages]
        plain = [json.dumps(c) if isinstance(c, list | dict) else c for c in cells]
        found["measured_ns" if key == "time_ns" else key] = np.array(plain, object)
    return found


class LogTable:
    """One log topic as columns of equal length: ``table["v_WB_B_x"]`` is an array.

    A vector has one column for each axis of the frame that its name states, as in the exported CSV files. ``columns``
    contains all arrays by name; ``units`` contains the units of the columns that have one.
    """

    def __init__(self, topic: str, columns: dict[str, Array], units: Mapping[str, str]) -> None:
        self.topic, self.columns, self.units = topic, columns, dict(units)

    def __len__(self) -> int:
        return len(self.columns["time_ns"])

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __getitem__(self, name: str) -> Array:
        if name not in self.columns:
            raise UnknownName(f"'{self.topic}' has no column '{name}'{suggest_name(name, self.columns)}")
        return self.columns[name]

    def __repr__(self) -> str:
        return f"<LogTable {self.topic}: {len(self)} rows; {', '.join(self._heads())}>"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self._heads())
        rows = zip(*(column[:10] for column in self.columns.values()), strict=True)
        cells = "".join("<tr>" + "".join(f"<td>{html.escape(str(c))}</td>" for c in row) + "</tr>" for row in rows)
        return f"<p>{html.escape(self.topic)}: {len(self)} rows</p><table><tr>{head}</tr>{cells}</table>"

    def _heads(self) -> list[str]:
        return [f"{name} ({self.units[name]})" if name in self.units else name for name in self.columns]

    def to_pandas(self) -> pandas.DataFrame:
        """Return a DataFrame; ``frame.attrs["units"]`` contains the units. Raises MissingPackage if pandas is not
        installed.
        """
        check_installed("pandas")
        import pandas

        frame = pandas.DataFrame(self.columns)
        frame.attrs["units"] = self.units
        return frame

    def to_polars(self) -> polars.DataFrame:
        """Return a polars DataFrame, which does not keep units. Raises MissingPackage if polars is not installed."""
        check_installed("polars")
        import polars

        return polars.DataFrame({n: c.tolist() if c.dtype == object else c for n, c in self.columns.items()})

    def to_xarray(self) -> xarray.Dataset:
        """Return a Dataset along ``time_ns``; each variable has its unit in ``attrs["units"]``. Raises MissingPackage
        if xarray is not installed.
        """
        check_installed("xarray")
        import xarray

        attributes = {name: {"units": self.units[name]} if name in self.units else {} for name in self.columns}
        found = {n: ("time_ns", c, attributes[n]) for n, c in self.columns.items()}
        time = found.pop("time_ns")
        return xarray.Dataset(found, {"time_ns": time}, {"topic": self.topic})

    def to_arrow(self) -> pyarrow.Table:
        """Return an Arrow table; the metadata of each field contains its unit. Raises MissingPackage if pyarrow is not
        installed.
        """
        check_installed("pyarrow")
        import pyarrow

        made = {n: pyarrow.array(c.tolist() if c.dtype == object else c) for n, c in self.columns.items()}
        metadata = {n: {"unit": self.units[n]} if n in self.units else None for n in made}
        return pyarrow.table(
            made, pyarrow.schema([pyarrow.field(n, a.type, metadata=metadata[n]) for n, a in made.items()])
        )

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the table to any library that reads Arrow's C stream interface."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)
