"""Space-time diagram of the signals of a log: one lane for each node, packets as bars, and lines to their receivers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Record
from wavesim_sdk.errors import ConfigError, InvalidArgument
from wavesim_sdk.log import Log
from wavesim_sdk.logged_signals import signals_within
from wavesim_sdk.tables import RECEPTION, SENT, Outcome
from wavesim_server.logbook.network_report import addresses_of_log

FORMATS = (".svg", ".png", ".pdf")
#: outcomes that are not drawn, because such a receiver could not notice the signal
INAUDIBLE = (Outcome.FADED, Outcome.OUT_OF_BAND, Outcome.ECHO)
MOST_RECEPTIONS = 20_000  #: maximum number of receptions in a diagram
WIDTH, LANE, MARGIN = 12.0, 0.24, 1.1  #: inches
SENT_HALF, HEARD_HALF = 0.36, 0.2  #: half heights of bars, in lanes
_GOOD, _BAD, _INK, _FAINT = "#0a7f71", "#c92a3a", "#22313f", "#cfdce6"
#: colours of outcomes, as on the page of the viewer; all others are red
COLOURS = {
    Outcome.HEARD: _GOOD,
    Outcome.COLLISION: "#b07600",
    Outcome.TRANSMITTING: "#7a3fc0",
    Outcome.RECHARGING: "#7a3fc0",
    Outcome.BELOW_THRESHOLD: "#56697a",
    Outcome.FOREIGN: "#56697a",
    Outcome.BLOCKED: "#a04a12",
    Outcome.SHADOW: "#a04a12",
}


@dataclass(frozen=True)
class DiagramSelection:
    """Signals of a diagram: between two times (s; None: those of the log), and of one node ("" = all)."""

    since: float | None = None
    until: float | None = None
    node: str = ""
    addressed: bool = False  #: only receptions at the nodes to which signals are addressed


def check_format(path: Path) -> None:
    """Check the ending of a file name. Raises ConfigError if no picture can be written in this format."""
    if path.suffix.lower() not in FORMATS:
        raise ConfigError(f"the name of a picture must end in {', '.join(FORMATS)}", str(path))


def selected_signals(log: Log, selection: DiagramSelection) -> tuple[Record, Record, float, float]:
    """Return the signals and the receptions of a selection, and the times (s) at which the diagram begins and ends.

    Raises InvalidArgument if the selection contains no signals or too many.
    """
    since = 0.0 if selection.since is None else selection.since
    until = log.end_ns * 1e-9 if selection.until is None else selection.until
    if not until > since:
        raise InvalidArgument(f"the diagram must end after its begin, got {since:g} s to {until:g} s")
    sent, heard = signals_within(
        log.get("/acoustics/sent", SENT).records, log.get("/acoustics/reception", RECEPTION).records, since, until
    )
    heard = heard[~np.isin(heard["outcome"], INAUDIBLE)]
    if selection.node:
        rows = [row for row, body in log.bodies.items() if body["name"] == selection.node]
        if not rows:
            known = ", ".join(sorted(body["name"] for body in log.bodies.values()))
            raise InvalidArgument(f"the log has no body '{selection.node}'; it has {known}")
        heard = heard[np.isin(heard["source"], rows) | np.isin(heard["receiver"], rows)]
        sent = sent[np.isin(sent["source"], rows) | np.isin(sent["id"], heard["id"])]
    if selection.addressed:
        modems = sent[sent["from_address"] != 0]
        addresses = addresses_of_log(log) | dict(
            zip(modems["source"].tolist(), modems["from_address"].tolist(), strict=True)
        )
        own = np.array([addresses.get(int(row), -1) for row in heard["receiver"]], np.int64)
        heard = heard[(heard["to_address"] == 0) | (heard["to_address"] == own)]
    if not len(sent) and not len(heard):
        raise InvalidArgument(f"the log contains no signals of this selection between {since:g} s and {until:g} s")
    if len(heard) > MOST_RECEPTIONS:
        raise InvalidArgument(
            f"{len(heard)} receptions are too many for a diagram ({MOST_RECEPTIONS}): select a shorter time or a node"
        )
    return sent, heard, since, until


def draw_diagram(log: Log, path: Path, selection: DiagramSelection) -> None:
    """Write a diagram of the signals of a log. The ending of ``path`` selects the format.

    Raises ConfigError if the file cannot be written, and the errors of :func:`selected_signals`.
    """
    check_format(path)
    sent, heard, since, until = selected_signals(log, selection)
    import matplotlib as mpl
    from matplotlib.collections import LineCollection, PolyCollection
    from matplotlib.figure import Figure

    names = {row: body["name"] for row, body in log.bodies.items()}
    kinds = {row: body["type"] == "buoy" for row, body in log.bodies.items()}
    rows = sorted(
        {int(r) for r in sent["source"]} | {int(r) for r in heard["source"]} | {int(r) for r in heard["receiver"]},
        key=lambda row: (kinds.get(row, False), row),
    )
    lane = {row: k for k, row in enumerate(rows)}
    figure = Figure(figsize=(WIDTH, min(MARGIN + LANE * max(len(rows), 4), 60.0)), layout="constrained")
    axes = figure.subplots()
    axes.set_axisbelow(True)
    axes.grid(color=_FAINT, lw=0.6)
    begin, arrive = heard["emission_ns"] * 1e-9, heard["arrival_ns"] * 1e-9
    from_lane, to_lane = _lanes(heard["source"], lane), _lanes(heard["receiver"], lane)
    for outcome in np.unique(heard["outcome"]):
        of = heard["outcome"] == outcome
        kind = Outcome(int(outcome))
        colour, received = COLOURS.get(kind, _BAD), kind == Outcome.HEARD
        ends = np.stack([np.column_stack([begin, from_lane]), np.column_stack([arrive, to_lane])], axis=1)[of]
        axes.add_collection(
            LineCollection(
                list(ends), colors=colour, linewidths=0.7, alpha=0.6, linestyles="solid" if received else "dashed"
            )
        )
        bars = _bars(arrive[of], heard["duration"][of], to_lane[of], HEARD_HALF)
        label = "received" if received else kind.name.lower().replace("_", " ")
        axes.add_collection(
            PolyCollection(bars, facecolors=colour, edgecolors="none", label=f"{label} {int(of.sum())}")
        )
    for left, of in ((False, sent["outcome"] == 0), (True, sent["outcome"] != 0)):
        bars = _bars(sent["emission_ns"][of] * 1e-9, sent["duration"][of], _lanes(sent["source"][of], lane), SENT_HALF)
        look: dict[str, Any] = {"facecolors": "none", "edgecolors": _BAD} if left else {"facecolors": _INK}
        if len(bars):
            label = "not sent" if left else "sent"
            axes.add_collection(PolyCollection(bars, linewidths=0.7, label=f"{label} {len(bars)}", **look))
    axes.set_xlim(since, until)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_yticks(range(len(rows)), [names.get(row, str(row)) for row in rows], fontsize=8)
    axes.set_xlabel("time (s)")
    figure.legend(loc="outside upper right", ncols=8, fontsize=8, frameon=False)
    try:
        with mpl.rc_context({"svg.hashsalt": "wavesim", "svg.fonttype": "none"}):
            figure.savefig(path, dpi=120, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)
    except OSError as error:
        raise ConfigError(f"cannot write the picture: {error.strerror}", str(path)) from None


def _lanes(rows: Any, lane: dict[int, int]) -> Any:
    return np.array([lane[int(row)] for row in rows], float)


def _bars(begin: Any, duration: Any, lanes: Any, half: float) -> Any:
    """Return the corners (n, 4, 2) of bars."""
    x = np.stack([begin, begin + duration, begin + duration, begin], axis=1)
    y = np.stack([lanes - half, lanes - half, lanes + half, lanes + half], axis=1)
    return np.stack([x, y], axis=2)
