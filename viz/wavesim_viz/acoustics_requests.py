"""Requests of a page for rays, transmission loss and sound-speed sections: validation, computation by the acoustics
process, and answers in the protocol of the page.
"""

from __future__ import annotations

from typing import Any, cast

from wavesim_viz.acoustics_process import AcousticsProcess
from wavesim_viz.live import SourceConfiguration
from wavesim_viz.page_acoustics import AcousticsKind, AcousticsRequest, FieldAnswer, RaysAnswer, SoundRay
from wavesim_viz.xml_trees import RequestFailed

MOST_DISTANCE = 1e6  #: maximum coordinate of a position, m
MOST_TIME = 1e9  #: maximum simulation time, s
THREE = 3
NO_CONFIGURATION = "the viewer does not have the configuration of this simulation, which defines the water; start it with --config FILE"


def _number(value: Any, name: str, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise RequestFailed(f"invalid {name}: expected a number from {low:g} to {high:g}")
    return float(value)


def _position(value: Any, name: str) -> tuple[float, float, float]:
    if not isinstance(value, list) or len(value) != THREE:
        raise RequestFailed(f"invalid {name}: expected [north, east, down]")
    north, east, down = (_number(v, name, -MOST_DISTANCE, MOST_DISTANCE) for v in value)
    return north, east, down


def parse_acoustics_request(body: Any) -> AcousticsRequest:
    """Check a request of a page. Raises RequestFailed if it is not valid."""
    if not isinstance(body, dict) or body.get("kind") not in ("rays", "loss", "section"):
        raise RequestFailed("invalid request: expected the kind 'rays', 'loss' or 'section'")
    return {
        "kind": cast("AcousticsKind", body["kind"]),
        "source": _position(body.get("source"), "source"),
        "receiver": _position(body.get("receiver"), "receiver"),
        "time": _number(body.get("time"), "time", 0.0, MOST_TIME),
        "frequency": _number(body.get("frequency"), "frequency", 1.0, 1e6),
        "depth": None if body.get("depth") is None else _number(body["depth"], "depth", 0.0, MOST_DISTANCE),
    }


async def answer_acoustics(
    process: AcousticsProcess, configuration: SourceConfiguration, wanted: AcousticsRequest
) -> RaysAnswer | FieldAnswer:
    """Return the answer to a request of a page. Raises RequestFailed with the reason if there is none."""
    if not configuration.text:
        raise RequestFailed(NO_CONFIGURATION)
    request: dict[str, Any] = {
        "config": configuration.text,
        "kind": wanted["kind"],
        "from": wanted["source"],
        "to": wanted["receiver"],
        "time": wanted["time"],
        "frequency": wanted["frequency"],
    }
    if wanted["kind"] == "loss" and wanted["depth"] is not None:
        request |= {"plane": "horizontal", "depth": wanted["depth"]}
    found = await process.ask(request)
    notes = [configuration.note] if configuration.note else []
    try:
        notes += found.get("notes", [])
        return _rays(found, notes) if wanted["kind"] == "rays" else _field(found, notes)
    except (KeyError, TypeError, ValueError) as error:
        raise RequestFailed(
            f"cannot read the answer of the acoustics process: {type(error).__name__} {error}"
        ) from None


def _rays(found: dict[str, Any], notes: list[str]) -> RaysAnswer:
    rays: list[SoundRay] = [
        {
            "time": r["time"],
            "loss": r["loss"],
            "surface": r["surface"],
            "bed": r["bottom"],
            "launch": r["launch_elevation"],
            "error": r["straight_line_error"],
            "blocked": r["blocked_by"],
            "followed": r["followed"],
            "points": [v for point in track for v in point],
        }
        for r, track in zip(found["arrivals"], found["rays"], strict=True)
    ]
    return {"rays": rays, "notes": notes}


def _field(found: dict[str, Any], notes: list[str]) -> FieldAnswer:
    horizontal = "north" in found
    return {
        "plane": "horizontal" if horizontal else "vertical",
        "unit": "dB" if "loss" in found else "m/s",
        "columns": found["east" if horizontal else "ranges"],
        "rows": found["north" if horizontal else "depths"],
        "values": found["loss"] if "loss" in found else found["speed"],
        "bed": [] if horizontal else found["bed"],
        "notes": notes,
    }
