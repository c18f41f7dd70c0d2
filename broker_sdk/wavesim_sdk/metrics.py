"""Export of a server's status in the Prometheus text format."""

from __future__ import annotations

from typing import Any

#: status numbers that are counters; all others are gauges
COUNTERS = (
    "tick",
    "ticks_late",
    "slipped_ns",
    "signals_sent",
    "receptions",
    "events_dropped",
    "sensors_late",
    "contacts_dropped",
    "paths_dropped",
    "queue_dropped",
    "commander_bad",
    "commander_unread",
)
#: for each mapping in the status, the name of its metric and of the label that contains the key
MAPS = {"drops": ("drops", "reason"), "acoustic_refused": ("acoustic_refused", "client")}


def prometheus_text(status: dict[str, Any]) -> str:
    """Return all numbers in a status as lines of the form ``wavesim_NAME{server="..."} VALUE``."""
    server = f'server="{status["name"]}"'
    lines: list[str] = []
    for key, value in status.items():
        if key in MAPS:
            name, label = MAPS[key]
            lines.append(f"# TYPE wavesim_{name}_total counter")
            lines += [f'wavesim_{name}_total{{{server},{label}="{k}"}} {v}' for k, v in sorted(value.items())]
        elif isinstance(value, int | float) and not isinstance(value, bool):
            name = f"wavesim_{key}_total" if key in COUNTERS else f"wavesim_{key}"
            lines += [f"# TYPE {name} {'counter' if key in COUNTERS else 'gauge'}", f"{name}{{{server}}} {value}"]
    lines.append("# TYPE wavesim_running gauge")
    lines.append(f"wavesim_running{{{server}}} {int(status['state'] == 'running')}")
    lines.append("# TYPE wavesim_round_trip_seconds gauge")
    for c in status["clients"]:
        lines.append(f'wavesim_round_trip_seconds{{{server},client="{c["name"]}"}} {c["rtt_ms"] * 1e-3:.6f}')
    lines.append("# TYPE wavesim_waited_seconds_total counter")
    for c in status["clients"]:
        lines.append(f'wavesim_waited_seconds_total{{{server},client="{c["name"]}"}} {c["waited_s"]:.3f}')
    return "\n".join(lines) + "\n"
