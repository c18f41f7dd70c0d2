"""Report of a campaign: one self-contained page with embedded plots."""

from __future__ import annotations

import base64
import io
import math
import shlex
from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from wavesim_sdk.errors import ConfigError
from wavesim_studies.campaign import designs, statistics
from wavesim_studies.campaign.metrics import CampaignMetric
from wavesim_studies.campaign.plan import CampaignPlan
from wavesim_studies.campaign.run import OK
from wavesim_studies.campaign.statistics import MetricDifference, Table

STYLE = """body{font:15px/1.45 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#1b2733}
h1,h2{line-height:1.2}table{border-collapse:collapse;margin:.6rem 0}td,th{padding:.15rem .6rem;border-bottom:1px solid #d5dde5;text-align:right}
td:first-child,th:first-child,td:has(code){text-align:left}code{background:#eef2f6;padding:0 .25em;border-radius:3px}img{max-width:100%}
.bad{color:#b3261e}.wide{overflow-x:auto}summary{cursor:pointer}"""
_WORST = 5
INK, SHADE = "#1f5f8b", "#9cc3dd"


def page(plan: CampaignPlan, table: Table, differences: Sequence[MetricDifference] = (), other: str = "") -> str:
    """Return the page as HTML. ``differences`` are the differences from an earlier campaign named ``other``."""
    c = plan.campaign
    parts = [f"<h1>Campaign {escape(c.name)}</h1>", _summary(plan, table), _factors(plan)]
    if plan.metrics:
        parts += ["<h2>Metrics</h2>", _metrics(plan, table)]
    if differences:
        parts += [f"<h2>Compared with {escape(other)}</h2>", _differences(differences)]
    for metric in plan.metrics:
        parts.append(_metric(plan, table, metric))
    parts += [_troubles(plan, table), _machines(table), _all(plan, table)]
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(c.name)}</title><style>{STYLE}</style></head>'
        f"<body>{''.join(p for p in parts if p)}</body></html>\n"
    )


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else escape(str(value))


def html_table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Build an HTML table. Cells that begin with < are already HTML."""
    top = "".join(f"<th>{escape(h)}</th>" for h in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{v if isinstance(v, _SafeHtml) else _cell(v)}</td>" for v in row) + "</tr>"
        for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


class _SafeHtml(str):
    """Text that is already HTML, so that it needs no escaping."""


def _summary(plan: CampaignPlan, table: Table) -> str:
    c, states = plan.campaign, Counter(row["status"] for row in table)
    won = sum(map(statistics.succeeded, table))
    share, low, high = statistics.share_interval(won, len(table))
    said = ", ".join(f"{n} {s}" for s, n in states.most_common())
    started = f"{c.run.kind} runs of {plan.duration:g} s" if plan.loaded else "functions"
    lines = [
        f"{len(plan.rows)} runs: {len({r.point for r in plan.rows})} points ({c.design.kind}), {c.design.replicates} replicate{'s' if c.design.replicates > 1 else ''}; {started}; seed {c.seed}.",
        f"{len(table)} finished: {said or 'none'}.",
        f"Success {100 * share:.1f} % (95 % interval {100 * low:.1f} to {100 * high:.1f} %, Wilson): {escape(c.success.where if c.success else 'every run that completed')}."
        if table
        else "",
    ]
    again = f"<p>Repeat the campaign: <code>wavesim campaign run {escape(shlex.quote(plan.path.name))}</code></p>"
    return "".join(f"<p>{line}</p>" for line in lines if line) + again


def _factors(plan: CampaignPlan) -> str:
    rows = []
    for f in plan.campaign.factor:
        named = designs.values_of(f)
        if named:
            what = ", ".join(map(str, named))
        elif f.distribution == "normal":
            what = f"normal, {f.mean:g} +- {f.deviation:g}"
        else:
            what = f"{f.low:g} .. {f.high:g}, {f.distribution}"
        follow = "; ".join(f"{t.path} = {t.text}" for t in f.key) or "passed to the program"
        rows.append([f.name, what, follow])
    return "<h2>Factors</h2>" + html_table(["factor", "values", "affected keys"], rows) if rows else ""


def _metrics(plan: CampaignPlan, table: Table) -> str:
    rows = []
    for m in plan.metrics:
        v = statistics.column(table, m.name)
        good = v[np.isfinite(v)]
        mean, low, high = statistics.mean_interval(v)
        rest = (
            (float(np.median(good)), float(np.percentile(good, 95)), float(good.min()), float(good.max()))
            if len(good)
            else (math.nan,) * 4
        )
        rows.append([m.name, m.unit, m.better or "-", len(good), mean, _SafeHtml(f"{low:.4g} to {high:.4g}"), *rest])
    head = [
        "metric",
        "unit",
        "better",
        "runs",
        "mean",
        "95 % interval of the mean",
        "median",
        "95th percentile",
        "minimum",
        "maximum",
    ]
    return html_table(head, rows)


def _differences(found: Sequence[MetricDifference]) -> str:
    rows = [
        [
            d.name,
            d.unit,
            d.pairs,
            d.before,
            d.after,
            d.change,
            _SafeHtml(f"{d.low:.4g} to {d.high:.4g}"),
            f"{100 * d.share_better:.0f} %" if d.better else "-",
            d.worst,
            d.p,
            d.margin,
            d.verdict,
        ]
        for d in found
    ]
    head = [
        "metric",
        "unit",
        "pairs",
        "before",
        "after",
        "mean change",
        "95 % interval of the change",
        "better in",
        "worst change",
        "p (Holm)",
        "margin",
        "verdict",
    ]
    return html_table(head, rows)


def _metric(plan: CampaignPlan, table: Table, metric: CampaignMetric) -> str:
    values = statistics.column(table, metric.name)
    good = np.isfinite(values)
    if not good.any():
        return f"<h2>{escape(metric.name)}</h2><p>No run returned a value.</p>"
    parts = [
        f"<h2>{escape(metric.name)}</h2>",
        embedded_picture(_spread(values[good], metric)),
        _sensitivity(plan, values),
    ]
    factors = [f.name for f in plan.campaign.factor]
    if factors:
        parts.append(embedded_picture(_against(factors, table, values, metric)))
    order = [k for k in np.argsort(values) if good[k]]
    worst = (order if metric.better == "higher" else order[::-1])[:_WORST]
    rows = [
        [table[k]["row"], *(table[k].get(f) for f in factors), values[k], _command(plan, table[k]["row"])]
        for k in worst
    ]
    parts += [
        f"<p>The runs with the {'worst' if metric.better else 'largest'} values, and the command that repeats each:</p>",
        html_table(["run", *factors, _label(metric), ""], rows),
    ]
    return "".join(parts)


def _command(plan: CampaignPlan, row: int) -> _SafeHtml:
    return _SafeHtml(f"<code>wavesim campaign repeat {escape(shlex.quote(plan.path.name))} {row}</code>")


def _sensitivity(plan: CampaignPlan, values: Any) -> str:
    c = plan.campaign
    if c.design.kind != "sensitivity":
        return ""
    try:
        s = statistics.sensitivity(values, len(c.factor), c.design.points)
    except ConfigError as error:
        return f"<p>{escape(str(error))}</p>"
    rows = [
        [
            f.name,
            float(s["first"][k]),
            _SafeHtml("{:.3f} to {:.3f}".format(*s["first_interval"][k])),
            float(s["total"][k]),
            _SafeHtml("{:.3f} to {:.3f}".format(*s["total_interval"][k])),
        ]
        for k, f in enumerate(c.factor)
    ]
    return html_table(["factor", "first order", "95 % interval", "total", "95 % interval"], rows)


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure of this size in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def embedded_picture(figure: Any) -> str:
    """Return a figure as an HTML image that contains its data."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110)
    return f'<p><img alt="" src="data:image/png;base64,{base64.b64encode(out.getvalue()).decode()}"></p>'


def _label(metric: CampaignMetric) -> str:
    return metric.name + (f" ({metric.unit})" if metric.unit else "")


def _spread(values: Any, metric: CampaignMetric) -> Any:
    """Draw the histogram and the distribution function of a metric."""
    figure = new_figure(9.0, 2.9)
    bars, steps = figure.subplots(1, 2)
    bars.hist(values, bins=min(40, max(5, round(math.sqrt(len(values))) * 2)), color=SHADE, edgecolor=INK)
    bars.set(xlabel=_label(metric), ylabel="runs")
    steps.ecdf(values, color=INK)
    steps.axhline(0.95, color="0.7", linewidth=0.8)
    steps.set(xlabel=_label(metric), ylabel="fraction of runs below")
    return figure


def _against(factors: Sequence[str], table: Table, values: Any, metric: CampaignMetric) -> Any:
    """Plot the metric against each factor."""
    columns = min(3, len(factors))
    rows = -(-len(factors) // columns)
    figure = new_figure(3.1 * columns + 0.4, 2.8 * rows)
    for k, name in enumerate(factors):
        axes = figure.add_subplot(rows, columns, k + 1)
        given = [row.get(name) for row in table]
        levels = sorted(set(given), key=lambda v: (isinstance(v, str), v))
        if len(levels) <= 12 or any(isinstance(v, str) for v in given):
            groups = [values[[g == level for g in given]] for level in levels]
            axes.boxplot(
                [g[np.isfinite(g)] for g in groups],
                widths=0.5,
                medianprops={"color": INK},
                flierprops={"markersize": 3},
            )
            axes.set_xticks(range(1, len(levels) + 1), [f"{v:g}" if isinstance(v, float) else str(v) for v in levels])
        else:
            axes.plot(given, values, ".", color=INK, markersize=3, alpha=0.6)
        axes.set(xlabel=name, ylabel=_label(metric))
    return figure


def _troubles(plan: CampaignPlan, table: Table) -> str:
    bad = [row for row in table if row["status"] != OK]
    if not bad:
        return ""
    reasons = Counter((row["status"], row["reason"]) for row in bad)
    first = {(row["status"], row["reason"]): row["row"] for row in reversed(bad)}
    rows = [[s, r, n, _command(plan, first[s, r])] for (s, r), n in reasons.most_common()]
    return '<h2 class="bad">Runs that did not complete</h2>' + html_table(
        ["state", "reason", "runs", "repeat the first"], rows
    )


def _machines(table: Table) -> str:
    rows = []
    for host, cpu in sorted({(row["host"], row["cpu"]) for row in table}):
        mine = [row for row in table if (row["host"], row["cpu"]) == (host, cpu)]
        wall, simulated = statistics.column(mine, "wall"), float(statistics.column(mine, "simulated").sum())
        rows.append(
            [host, cpu, len(mine), float(wall.mean()), float(wall.max()), simulated / max(float(wall.sum()), 1e-9)]
        )
    return (
        "<h2>Machines</h2>"
        + html_table(
            ["host", "processor", "runs", "mean wall time (s)", "maximum wall time (s)", "times real time"], rows
        )
        if rows
        else ""
    )


def _all(plan: CampaignPlan, table: Table) -> str:
    names = [f.name for f in plan.campaign.factor] + [m.name for m in plan.metrics]
    rows = [
        [
            r["row"],
            r["replicate"],
            *(r.get(n) for n in names),
            r["status"],
            r["attempts"],
            r["wall"],
            r["hash"][:12],
            _command(plan, r["row"]),
        ]
        for r in table
    ]
    head = ["run", "replicate", *names, "state", "attempts", "wall time (s)", "hash", "repeat"]
    return f"<h2>All runs</h2><details><summary>{len(rows)} runs</summary>{html_table(head, rows)}</details>"
