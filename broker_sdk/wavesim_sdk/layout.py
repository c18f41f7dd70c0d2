"""The layout of all shared-memory tables, the hash that shows whether two releases have the same layout, and the
document that describes the layout.
"""

from __future__ import annotations

import hashlib

from wavesim_sdk.front_tables import FRONT_TABLES
from wavesim_sdk.mailbox_tables import RECORDS
from wavesim_sdk.sensors import SENSORS
from wavesim_sdk.tables import LAYOUT_VERSION, SIMULATION_TABLES, VEHICLE_TABLES


def layout_hash() -> str:
    """Return a hash of the names, types and units of the columns in all built-in tables. Each segment's header contains
    it.
    """
    tables = (*SIMULATION_TABLES, *VEHICLE_TABLES, *SENSORS.values())
    layout = [
        (t.name, t.writer, [(f.name, f.type, f.unit, f.shape, f.hidden) for f in t.fields]) for t in tables
    ]  # without the texts, because a reworded text does not change the layout
    return hashlib.sha256(repr((LAYOUT_VERSION, layout)).encode()).hexdigest()[:16]


def tables_markdown() -> str:
    """Return the generated part of docs/SHARED_MEMORY.md."""
    lines: list[str] = []
    for title, group in (
        ("Area *simulation*", SIMULATION_TABLES),
        ("Area *vehicles*", VEHICLE_TABLES),
        ("Area *vehicles*: sensor types (only those that the configuration uses)", tuple(SENSORS.values())),
        ("Records of the segment *fronts*", FRONT_TABLES),
        ("Records of the mailbox", RECORDS),
    ):
        lines += [f"## {title}", ""]
        for t in group:
            sensor = t.writer.removeprefix("emulator ")
            writer = {"front": "front end"}.get(t.writer, t.writer) if sensor == t.writer else f"`{sensor}` emulator"
            lines += [f"### {t.name}", "", f"{t.doc} Written by the {writer}. {t.dtype.itemsize} bytes per row.", ""]
            lines += ["| column | type | unit | meaning |", "|---|---|---|---|"]
            for f in t.fields:
                shape = f" x {f.shape[0]}" if f.shape else ""
                lines.append(f"| `{f.name}` | {f.type}{shape} | {f.unit} | {'*Hidden.* ' if f.hidden else ''}{f.doc} |")
            lines.append("")
    return "\n".join(lines)
