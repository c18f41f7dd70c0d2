"""Report on a recorded trial and its simulation: lines of text, values for scripts, and a picture."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.errors import LogError
from wavesim_studies.field_trials.clock_solution import Survey
from wavesim_studies.field_trials.medium_fit import MediumFit
from wavesim_studies.field_trials.trial_comparison import Analysis, ResidualBin, ShareBin

RECORDED, SIMULATED, GPS = "#1f5fa8", "#d1662a", "#777777"  #: colours of the picture


@dataclass(frozen=True)
class TrialReport:
    """Everything that was found."""

    survey: Survey
    recorded: Analysis
    simulated: list[Analysis]
    medium: MediumFit
    residuals: list[ResidualBin]
    shares: list[ShareBin]
    yaps: tuple[float, float] | None  #: median distances in m of the track of yaps from the fixes and from ours

    def values(self) -> dict[str, Any]:
        """Return the report as values for scripts."""
        held_out = 1e3 * self.recorded.held_out()
        return {
            "recorded": self.recorded.summary(),
            "held_out_ms": dict(zip(self.recorded.trial.names, held_out.round(3).tolist(), strict=True)),
            "simulated": [s.summary() for s in self.simulated],
            "medium": asdict(self.medium),
            "residuals": [
                asdict(r)
                | {"quantiles": (1e3 * r.quantiles).round(3).tolist(), "agrees": r.agrees}
                | {"difference_ms": round(1e3 * r.difference, 3)}
                for r in self.residuals
            ],
            "shares": [asdict(s) | {"agrees": s.agrees} for s in self.shares],
            "yaps": self.yaps,
        }

    def lines(self) -> list[str]:
        """Return the report as lines of text."""
        found, held_out = self.recorded.summary(), 1e3 * self.recorded.held_out()
        lines = [
            f"sound speed {found['sound_speed']:.1f} m/s; residuals of fixed tags {found['fixed_residual_ms']:.2f} ms, of the "
            f"towed tag {found['towed_residual_ms']:.2f} ms ({found['pings']:.0f} pings)",
            f"towed tag to GPS: median {found['median_to_gps']:.2f} m, rms {found['rms_to_gps']:.2f} m; with "
            f"{found['clock_shift_s']:+.2f} s added to the clock {found['median_to_gps_shifted']:.2f} m",
            f"arrivals at receivers left out: median error {np.median(held_out):.2f} ms, worst receiver "
            f"{self.recorded.trial.names[int(np.argmax(held_out))]} {held_out.max():.2f} ms; "
            f"{int((held_out <= 0.6).sum())} of {len(held_out)} within 0.6 ms",
        ]
        if self.yaps is not None:
            lines.append(f"yaps, same pings: median {self.yaps[0]:.2f} m to GPS, {self.yaps[1]:.2f} m to this track")
        m = self.medium
        lines.append(
            f"fitted to the fixed tags: margin {m.margin:.1f} dB, extra loss {1e3 * m.extra_loss:.1f} dB/km, "
            f"drop-out {m.drop_out:.3f}, timing noise {1e3 * m.timing_noise:.2f} ms, late {m.late_share:.3f}, "
            f"survey error {m.survey_error:.2f} m"
        )
        for k, other in enumerate(self.simulated):
            s = other.summary()
            lines.append(
                f"simulation {k + 1}: sound speed {s['sound_speed']:.1f} m/s, residuals {s['fixed_residual_ms']:.2f} and "
                f"{s['towed_residual_ms']:.2f} ms, {s['pings']:.0f} pings, median {s['median_to_gps']:.2f} m to GPS"
            )
        if not self.simulated:
            return lines
        lines += [
            "",
            f"{'residuals, m':14}{'recorded':>9}{'p':>8}{'plain p':>9}{'5 % .. 95 %, ms':>18}{'simulated, ms':>18}"
            f"{'differ by, ms':>15}",
        ]
        for r in self.residuals:
            (a, b), verdict = 1e3 * r.quantiles, "agrees" if r.agrees else "differs"
            lines.append(
                f"{f'{r.low:.0f} to {r.high:.0f}':14}{r.recorded:9d}{r.probability:8.3f}{r.plain:9.3f}"
                f"{f'{a[0]:+.2f} .. {a[-1]:+.2f}':>18}{f'{b[0]:+.2f} .. {b[-1]:+.2f}':>18}"
                f"{1e3 * r.difference:15.2f}  {verdict}"
            )
        lines += ["", f"{'shares, m':14}{'chances':>9}{'recorded':>10}{'95 % interval':>18}{'simulated':>11}"]
        for c in self.shares:
            verdict = "agrees" if c.agrees else "differs"
            lines.append(
                f"{f'{c.low:.0f} to {c.high:.0f}':14}{c.opportunities:9d}{c.recorded:10.3f}"
                f"{f'{c.interval[0]:.3f} .. {c.interval[1]:.3f}':>18}{c.simulated:11.3f}  {verdict}"
            )
        return lines


def draw(report: TrialReport, out: Path) -> None:
    """Draw the tracks, the clocks, the residuals and the shares of detections."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 8.6), layout="constrained")
    charts = figure.subplots(2, 2)
    _draw_map(report, charts[0, 0])
    _draw_clocks(report, charts[0, 1])
    _draw_residuals(report, charts[1, 0])
    _draw_shares(report, charts[1, 1])
    for chart in charts.flat:
        chart.grid(visible=True, alpha=0.25)
    try:
        figure.savefig(out, dpi=100)
    except OSError as error:
        raise LogError(f"cannot write {out}: {error.strerror}") from None


def _draw_map(report: TrialReport, chart: Any) -> None:
    clocks, track, gps = report.recorded.clocks, report.recorded.track, report.recorded.trial.gps
    chart.plot(gps[:, 1], gps[:, 2], color=GPS, lw=1.0, label="GPS of the towing boat")
    chart.plot(*track.position.T, color=RECORDED, lw=1.0, marker=".", ms=4, label="towed tag, from arrivals")
    if report.simulated:
        chart.plot(*report.simulated[0].track.position.T, color=SIMULATED, lw=0, marker=".", ms=3, label="simulated")
    held = report.survey.held
    for rows, fill, label in (
        (held, "black", f"receiver, survey to {report.survey.held_deviation:.1f} m"),
        (~held, "none", f"receiver, survey to {report.survey.deviation:.1f} m"),
    ):
        places = clocks.positions[rows]
        chart.plot(places[:, 0], places[:, 1], lw=0, marker="^", ms=6, mfc=fill, mec="black", label=label)
    chart.set(xlabel="east (m)", ylabel="north (m)", aspect="equal", title="Tracks")
    chart.legend(fontsize=7, loc="best")


def _draw_clocks(report: TrialReport, chart: Any) -> None:
    clocks = report.recorded.clocks
    time = np.linspace(clocks.middle - clocks.half, clocks.middle + clocks.half, 200)
    names = report.recorded.trial.names
    shown = np.array([clocks.reading(np.full(len(time), n), time) for n in range(len(names))])
    shown -= shown[:, :1]
    for line in shown:
        chart.plot(time / 3600.0, line, lw=1.0, color=RECORDED)
    height, least = -np.inf, 0.024 * float(np.ptp(shown))  # labels of equal drifts would cover each other
    for n in np.argsort(shown[:, -1]):
        height = max(height + least, float(shown[n, -1]))
        drift = 1e6 * clocks.offset_and_drift(int(n), clocks.middle)[0][1]
        chart.annotate(
            f"{names[n]}  {drift:+.1f} ppm",
            (time[-1] / 3600.0, shown[n, -1]),
            (1.05 * time[-1] / 3600.0, height),
            fontsize=6,
            va="center",
            arrowprops={"arrowstyle": "-", "lw": 0.4, "color": GPS},
        )
    chart.set(xlabel="time (h)", ylabel="clock minus the keeper's, from the start (s)", title="Clocks of the receivers")
    chart.set_xlim(right=1.28 * time[-1] / 3600.0)


def _draw_residuals(report: TrialReport, chart: Any) -> None:
    for analysis, colour, label, side in (
        (report.recorded, RECORDED, "recorded", -0.35),
        (report.simulated[0] if report.simulated else None, SIMULATED, "simulated", 0.35),
    ):
        if analysis is None:
            continue
        bins = [(r.low, r.high) for r in report.residuals] or [(50.0 * k, 50.0 * k + 50.0) for k in range(5)]
        distance, residual = analysis.track.distance, 1e3 * analysis.track.residual
        parts = [residual[(distance >= low) & (distance < high)] for low, high in bins]
        centres = [0.5 * (low + high) + 20.0 * side for low, high in bins]
        boxes = chart.boxplot(parts, positions=centres, widths=11.0, whis=(5, 95), showfliers=False, manage_ticks=False)
        for part in ("boxes", "whiskers", "caps", "medians"):
            for line in boxes[part]:
                line.set_color(colour)
        chart.plot([], [], color=colour, label=label)
    chart.set(
        xlabel="distance (m)", ylabel="arrival residual (ms)", title="Towed tag: residuals (box 50 %, whiskers 90 %)"
    )
    chart.legend(fontsize=8)


def _draw_shares(report: TrialReport, chart: Any) -> None:
    if report.shares:
        middle = np.array([0.5 * (s.low + s.high) for s in report.shares])
        value = np.array([s.recorded for s in report.shares])
        low, high = np.array([s.interval for s in report.shares]).T
        chart.errorbar(
            middle,
            value,
            [value - low, high - value],
            color=RECORDED,
            lw=0,
            elinewidth=1.2,
            marker="o",
            ms=4,
            capsize=3,
            label="towed tag, recorded (95 %)",
        )
        chart.plot(
            middle,
            [s.simulated for s in report.shares],
            color=SIMULATED,
            lw=0,
            marker="x",
            label="towed tag, simulated",
        )
    distance = np.linspace(1.0, 300.0, 300)
    chart.plot(distance, report.medium.share(distance), color=GPS, lw=1.0, label="fitted to the fixed tags")
    chart.set(xlabel="distance (m)", ylabel="share of detections", ylim=(0.0, 1.03), title="Shares of detections")
    chart.legend(fontsize=8, loc="lower left")
