"""Reports of fits and predictions: tables of text, data for JSON, figures, and a page with all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from wavesim_sdk.errors import LogError
from wavesim_studies.campaign.report import INK, STYLE, embedded_picture, html_table, new_figure
from wavesim_studies.identification import recorded_trials as rt
from wavesim_studies.identification.coefficients import ModelCoefficients
from wavesim_studies.identification.model_fit import FitResult
from wavesim_studies.identification.prediction import TrialPrediction
from wavesim_studies.identification.uncertainty import unexplained

FAR = 3.0  #: number of the prior's standard deviations that count as a contradiction between log and source


def fit_rows(result: FitResult) -> list[dict[str, Any]]:
    """Return a row for each unknown: start, fitted value, standard deviation, 95 % interval and remark."""
    rows = []
    for k, u in enumerate(result.unknowns):
        low, high = result.interval(k)
        remark = "" if result.uncertainty.informed(k) else "not informed by the logs"
        x = float(result.solution.x[k])
        if not remark and u.kind == "coefficient" and abs(x) > FAR:
            remark = f"{abs(x):.1f} standard deviations from its prior ({u.reason})"
        log = "" if u.log < 0 else result.problem.trials[u.log].name
        rows.append(
            {"path": u.path, "log": log, "start": u.start, "value": result.value(k), "sd": result.sd(k), "low": low,
             "high": high, "unit": u.unit, "kind": u.kind, "informed": result.uncertainty.informed(k), "remark": remark}
        )  # fmt: skip
    return rows


def advice(result: FitResult) -> list[str]:
    """Return sentences about what the logs cannot tell, and about residuals that the model does not explain."""
    names = [u.path for u in result.unknowns]
    found = [
        f"these logs cannot tell {names[j]} from {names[i]} (correlation {c:.3f}): add a manoeuvre at a second speed, which "
        "`wavesim identify plan` proposes"
        for i, j, c in result.uncertainty.pairs()
    ]
    if not result.solution.converged:
        found.append("the fit did not converge; give better starts (PATH=START) or fewer unknowns")
    return found + unexplained(result.problem, result.solution)


def fit_data(result: FitResult, profiles: dict[str, list[float]], signs: list[str]) -> dict[str, Any]:
    """Return the result of a fit as data for JSON."""
    channels = {
        name: {"noise": c.noise, "unit": rt.unit_of(name), "values": c.count, "correlation_time": c.correlation_time,
               "whiteness_p": c.whiteness, "outliers": c.outliers}
        for name, c in result.uncertainty.channels.items()
    }  # fmt: skip
    logs = [
        {"name": t.name, "seconds": t.seconds, "sha256": t.digest, "licence": t.licence} for t in result.problem.trials
    ]
    return {
        "model": result.problem.model.name, "logs": logs, "unknowns": fit_rows(result), "channels": channels,
        "profiles": profiles, "remarks": [*signs, *advice(result)], "converged": result.solution.converged,
        "segments": len(result.problem.segments),
    }  # fmt: skip


def fit_lines(result: FitResult, profiles: dict[str, list[float]], signs: Sequence[str]) -> list[str]:
    """Return the result of a fit as lines of text."""
    width = max([len(_label(r)) for r in fit_rows(result)], default=10)
    lines = [f"{'unknown':{width}} {'start':>11} {'fitted':>11} {'+-':>9}   95 % interval"]
    for r in fit_rows(result):
        remark = f"   {r['remark']}" if r["remark"] else ""
        lines.append(
            f"{_label(r):{width}} {r['start']:11.5g} {r['value']:11.5g} {r['sd']:9.2g}   {r['low']:.5g} to {r['high']:.5g}{remark}"
        )
    lines.append("")
    for name, c in result.uncertainty.channels.items():
        lines.append(
            f"{name:12} {c.count:6} values, residuals {c.noise:.3g} {rt.unit_of(name)}, correlation time "
            f"{c.correlation_time:.1f} values, {100.0 * c.outliers:.1f} % outliers"
        )
    for path, rises in profiles.items():
        lines.append(
            f"profile of {path}: the cost rises by {rises[0]:.2f} and {rises[1]:.2f} at -2 and +2 deviations (linear: 4)"
        )
    return lines + [f"note: {text}" for text in (*signs, *advice(result))]


def _label(row: dict[str, Any]) -> str:
    unit = f" ({row['unit']})" if row["unit"] else ""
    return f"{row['path']}{unit}{' of ' + row['log'] if row['log'] else ''}"


def prediction_data(p: TrialPrediction) -> dict[str, Any]:
    """Return a prediction as data for JSON."""
    errors = {
        name: {
            "unit": rt.unit_of(name),
            "rms": e.rms,
            "variation": e.variation,
            "explained": e.explained,
            "mean": e.mean,
        }
        for name, e in p.errors.items()
    }
    distances = {f"{h:g}": d for h, d in p.distances.items()}
    return {
        "log": p.trial.name, "seconds": p.trial.seconds, "start_seconds": p.start_seconds, "errors": errors,
        "distance_m": distances, "length_m": p.length,
    }  # fmt: skip


def prediction_lines(p: TrialPrediction, role: str) -> list[str]:
    """Return a prediction as lines of text. ``role`` states what the trial is to the model."""
    lines = [
        f"{p.trial.name}: {p.trial.seconds:.1f} s, {role}; the first {p.start_seconds:g} s give the start state, the rest is predicted"
    ]
    for name, e in p.errors.items():
        lines.append(
            f"  {name:12} rms {e.rms:8.4g} {rt.unit_of(name):6} of {e.variation:.4g} ({100.0 * e.explained:.1f} % of the variance), "
            f"mean {e.mean:.3g}"
        )
    for h, d in p.distances.items():
        lines.append(f"  {d:.2f} m from the track after {h:g} s")
    if p.length:
        lines.append(f"  the measured track is {p.length:.1f} m long")
    return lines


# ------------------------------------------------------------------ figures and page


def figure_of(p: TrialPrediction, title: str = "") -> Any:
    """Return a figure of a prediction: the track, and the measured and predicted values of each channel."""
    names = [n for n in p.values if n not in ("north", "east")]
    mapped = {"north", "east"} <= p.values.keys()
    rows = max(len(names), 1)
    figure = new_figure(10.5 if mapped else 7.0, 1.6 + 1.55 * rows)
    grid = figure.add_gridspec(rows, 2 if mapped else 1, width_ratios=[1.0, 1.5] if mapped else [1.0])
    first = None
    for k, name in enumerate(names):
        axis = figure.add_subplot(grid[k, -1], sharex=first)
        first = first or axis
        t, measured, made = p.values[name]
        factor, unit = (
            (180.0 / math.pi, rt.unit_of(name).replace("rad", "deg"))
            if "rad" in rt.unit_of(name)
            else (1.0, rt.unit_of(name))
        )
        axis.plot(t, factor * measured, color="0.65", linewidth=1.8, label="measured")
        axis.plot(t, factor * made, color=INK, linewidth=1.2, label="predicted")
        axis.axvspan(p.begin, p.begin + p.start_seconds, color="0.92", zorder=0)
        axis.set_ylabel(f"{name.replace('_', ' ')}\n({unit})")
        axis.grid(alpha=0.25)
        if k < rows - 1:
            axis.tick_params(labelbottom=False)
        else:
            axis.set_xlabel("time (s); shaded: used for the start state")
        if k == 0:
            axis.legend(loc="upper right", fontsize=8)
    if mapped:
        axis = figure.add_subplot(grid[:, 0])
        (_, north, _), (_, east, _) = p.values["north"], p.values["east"]
        axis.plot(east, north, color="0.65", linewidth=2.5, label="measured")
        inside = p.time <= p.trial.end
        track = [p.channel(c)[inside] for c in ("east", "north")]
        axis.plot(*track, color=INK, linewidth=1.3, label="predicted")
        axis.plot(track[0][:1], track[1][:1], "o", color=INK, markersize=5)
        axis.set_aspect("equal", adjustable="datalim")
        axis.set(xlabel="east (m)", ylabel="north (m)")
        axis.grid(alpha=0.25)
        axis.legend(fontsize=8)
    if title:
        figure.suptitle(title)
    return figure


def save_figure(figure: Any, out: Path) -> None:
    """Write a figure. Raise LogError if it cannot be written."""
    try:
        figure.savefig(out, dpi=110)
    except OSError as error:
        raise LogError(f"cannot write {out}: {error.strerror}") from None


def page(
    title: str, result: FitResult | None, predictions: Sequence[tuple[TrialPrediction, str]], remarks: Sequence[str]
) -> str:
    """Return a page with the coefficients, the data, the predictions and their figures as HTML."""
    parts = [f"<h1>{escape(title)}</h1>"]
    if result is not None:
        shipped = ModelCoefficients(result.problem.model)
        parts.append("<h2>Coefficients</h2>")
        rows = [
            [_label(r), shipped.value(r["path"]) if r["kind"] == "coefficient" else None, r["value"], r["sd"], r["low"],
             r["high"], r["remark"]]
            for r in fit_rows(result)
        ]  # fmt: skip
        parts.append(html_table(["unknown", "model", "value", "+-", "95 % from", "to", "remark"], rows))
        parts.append("<h2>Data</h2>")
        rows = [
            [t.name, t.seconds, ", ".join(t.channels), t.licence or "-", t.digest[:12]] for t in result.problem.trials
        ]
        parts.append(html_table(["log", "s", "measurements", "licence", "SHA-256"], rows))
    if remarks:
        parts.append("<h2>Remarks</h2><ul>" + "".join(f"<li>{escape(r)}</li>" for r in remarks) + "</ul>")
    for p, role in predictions:
        parts.append(f"<h2>{escape(p.trial.name)}</h2><p>{escape(role)}. The first {p.start_seconds:g} s give the start state; "
                     "the rest is predicted.</p>")  # fmt: skip
        rows = [
            [n, rt.unit_of(n), e.rms, e.variation, f"{100.0 * e.explained:.1f} %", e.mean] for n, e in p.errors.items()
        ]
        parts.append(html_table(["measurement", "unit", "rms error", "variation", "explained", "mean error"], rows))
        if p.distances:
            rows = [[float(h), d] for h, d in p.distances.items()]
            parts.append(html_table(["s after the start", "m from the track"], rows))
        parts.append(embedded_picture(figure_of(p)))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style></head>'
        f"<body>{''.join(parts)}</body></html>\n"
    )
