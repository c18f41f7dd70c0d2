"""Commands in the ``wavesim campaign`` group: run one configuration many times, and evaluate the results."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wavesim_sdk.cli import json_option
from wavesim_sdk.errors import ConfigError, WaveSimError
from wavesim_sdk.terminal_text import echo, finite_json
from wavesim_world.cli_options import files_option

if TYPE_CHECKING:
    from wavesim_studies.campaign.plan import CampaignPlan
    from wavesim_studies.campaign.statistics import MetricDifference

_file = click.argument("file", type=click.Path(path_type=Path))


def file_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument for the campaign file, and the option that allows its configuration to use files in other
    folders.
    """
    return _file(files_option(command))


out_option = click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Folder in which the campaign's own folder is created.",
)
other_argument = click.argument("before", type=click.Path(path_type=Path))
RETRIES = ("failed", "timed out", "killed", "invalid")


class MetricRegressed(WaveSimError):
    """Raised when the gate fails because a metric regressed by more than its margin."""

    exit_code = 14


class GateUndecided(WaveSimError):
    """Raised when the gate is inconclusive and needs more runs."""

    exit_code = 15


class RunNotReproduced(WaveSimError):
    """Raised when a repeated run gives a different result."""

    exit_code = 16


class NoRunSucceeded(WaveSimError):
    """Raised when no run of a campaign has succeeded."""

    exit_code = 17


@click.group()
def campaign() -> None:
    """Run and compare many variants of a configuration."""


def _plan(file: Path, out: Path) -> CampaignPlan:
    from wavesim_studies.campaign.plan import CampaignPlan

    return CampaignPlan(file, out)


def _table(plan: CampaignPlan, folder: Path | None = None, quiet: bool = False) -> list[dict[str, Any]]:
    """Return the newest row of each planned run in the journal. Unless ``quiet``, warn about rows that were computed
    with other versions of the files. For an earlier campaign, given by its ``folder``, return all rows.
    """
    from wavesim_studies.campaign.journal import Journal

    with Journal(folder or plan.folder) as journal:
        table = journal.table()
    if folder is not None:
        return table
    rows, found = plan.rows, dict[int, dict[str, Any]]()
    for r in table:
        mine = rows[r["row"]] if r["row"] < len(rows) else None
        if mine is None or mine.seed != r["seed"] or any(r.get(k) != v for k, v in mine.factors.items()):
            continue
        if r["row"] not in found or found[r["row"]]["key"] != mine.key:  # otherwise keep the newest row
            found[r["row"]] = r
    table = [found[n] for n in sorted(found)]
    if not quiet and (said := _stale(plan, table)):
        echo(f"wavesim: {said}", err=True)
    return table


def _stale(plan: CampaignPlan, table: list[dict[str, Any]]) -> str:
    """Return a notice about rows that were not computed with the current files, or an empty string if there are no such
    rows.
    """
    old = [r for r in table if r["key"] != plan.rows[r["row"]].key]
    if not old:
        return ""
    return f"{len(old)} of {len(plan.rows)} rows were computed with other versions of the files ({_changed(plan, old[0]['key'])}); `run` repeats them"


def _changed(plan: CampaignPlan, key: str) -> str:
    """Name the files and settings that have changed since a run was executed."""
    from wavesim_studies.campaign.journal import Journal
    from wavesim_studies.campaign.sources import differences

    with Journal(plan.folder) as journal:
        files = journal.files(key)
    if not files:
        return "the files of the earlier run were not recorded"
    found = differences(files, plan.files) or ["values set by the factors"]
    return ", ".join(found[:8]) + (f", and {len(found) - 8} more" if len(found) > 8 else "")


def _export_finished(plan: CampaignPlan) -> list[dict[str, Any]]:
    """Return the table of finished runs, and write it next to the journal."""
    from wavesim_studies.campaign.table import write

    table = _table(plan)
    write(table, plan.folder / "table.csv", {})
    return table


@campaign.command()
@file_argument
@out_option
@click.option(
    "--workers", type=click.IntRange(0), default=0, help="Number of parallel runs; 0 (default) = as set in the file."
)
@click.option(
    "--retry",
    type=click.Choice(RETRIES),
    multiple=True,
    help="Rerun all runs that ended with this status. The option can be given more than once.",
)
@click.option("--quiet", is_flag=True, help="Do not show a progress bar.")
def run(file: Path, out: Path, workers: int, retry: tuple[str, ...], quiet: bool) -> None:
    """Run a campaign. Only outstanding runs are executed. After Ctrl-C, the finished runs and their table are kept, and
    the same command resumes the campaign.
    """
    from wavesim_studies.campaign.runner import run as go

    plan = _plan(file, out)
    try:
        states = go(plan, workers=workers, retried_statuses=retry, quiet=quiet)
    except KeyboardInterrupt:
        echo(
            f"{len(_export_finished(plan))} of {len(plan.rows)} runs are finished; run the same command again to "
            f"execute the rest\ntable     {plan.folder / 'table.csv'}"
        )
        raise
    table = _export_finished(plan)
    _update_report(plan, table)
    echo(_counted(states, len(plan.rows)))
    _reasons(table)
    done = [row for row in table if row["status"] == "ok"]
    if empty := [m.name for m in plan.metrics if done and all(row.get(m.name) is None for row in done)]:
        echo(f"wavesim: no run returned a value for {', '.join(empty)}", err=True)
    echo(f"table     {plan.folder / 'table.csv'}\nreport    {plan.folder / 'report.html'}")
    if table and not done:
        raise NoRunSucceeded("no run succeeded; see the reasons above and in the table")


def _counted(states: Counter[str], of: int) -> str:
    return (
        f"{sum(states.values())} of {of} runs: {', '.join(f'{n} {s}' for s, n in states.most_common()) or 'none yet'}"
    )


def _update_report(plan: CampaignPlan, table: list[dict[str, Any]]) -> None:
    """Write the report, unless the existing report already has this content: the charts and intervals take seconds to
    compute.
    """
    from wavesim_studies.campaign.plan import code_version

    content = json.dumps([plan.text, code_version(), table], sort_keys=True)
    mark = f"<!-- {hashlib.sha256(content.encode()).hexdigest()} -->\n"
    path = plan.folder / "report.html"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if path.read_text().endswith(mark):
            return
    from wavesim_studies.campaign.report import page

    _write(path, page(plan, table) + mark)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:
        raise WaveSimError(f"cannot write to {path}: {error.strerror}") from None


@campaign.command()
@file_argument
@out_option
@json_option
def status(file: Path, out: Path, as_json: bool) -> None:
    """Show the progress of a running or finished campaign."""
    plan = _plan(file, out)
    table = _table(plan)
    states = Counter(row["status"] for row in table)
    if as_json:
        current = sum(row["key"] == plan.rows[row["row"]].key for row in table)
        progress = {"runs": len(plan.rows), "done": len(table), "stale": len(table) - current, "states": states}
        echo(finite_json(progress))
        return
    echo(_counted(states, len(plan.rows)))
    _reasons(table)


def _reasons(table: list[dict[str, Any]]) -> None:
    """Print the most frequent reasons why runs failed."""
    for (state, reason), n in Counter((r["status"], r["reason"]) for r in table if r["reason"]).most_common(10):
        echo(f"{n:6} {state}: {reason}")


@campaign.command()
@file_argument
@out_option
@click.option(
    "--to", type=click.Path(path_type=Path), help="HTML file to write; default: report.html in the campaign's folder."
)
@click.option(
    "--table",
    "tables",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Write the table to this file (.csv or .parquet). Repeatable.",
)
@click.option("--against", type=click.Path(path_type=Path), help="Folder of an earlier campaign to compare with.")
@json_option
def report(
    file: Path, out: Path, to: Path | None, tables: tuple[Path, ...], against: Path | None, as_json: bool
) -> None:
    """Write the HTML report and the table of a campaign."""
    from wavesim_studies.campaign.report import page
    from wavesim_studies.campaign.table import write

    plan = _plan(file, out)
    table = _table(plan)
    for path in tables:
        write(table, path, {m.name: m.unit for m in plan.metrics})
        echo(f"table     {path}", err=as_json)
    to = to or plan.folder / "report.html"
    found = _differences(plan, against) if against else []
    _write(to, page(plan, table, found, str(against or "")))
    echo(finite_json(table) if as_json else f"report    {to}")


def _differences(plan: CampaignPlan, before: Path) -> list[MetricDifference]:
    from wavesim_studies.campaign.statistics import compare

    return compare(_table(plan, before), _table(plan), [f.name for f in plan.campaign.factor], plan.metrics)


@campaign.command()
@file_argument
@other_argument
@out_option
@json_option
def compare(file: Path, before: Path, out: Path, as_json: bool) -> None:
    """Compare a campaign with an earlier one.

    BEFORE is the folder of a campaign with the same factors. Runs are compared in pairs, with 95 % confidence intervals.
    """
    _show(_differences(_plan(file, out), before), as_json)


def _show(found: list[MetricDifference], as_json: bool) -> None:
    if as_json:
        echo(finite_json([{**vars(d), "verdict": d.verdict} for d in found]))
        return
    echo(
        f"{'metric':20} {'pairs':>6} {'before':>10} {'after':>10} {'change':>10} {'95 % interval':>23} {'better':>7} {'p':>7}  verdict"
    )
    for d in found:
        span = f"{d.low:.4g} .. {d.high:.4g}"
        echo(
            f"{d.name:20} {d.pairs:6} {d.before:10.4g} {d.after:10.4g} {d.change:10.4g} {span:>23} {_share(d.share_better):>7} {d.p:7.4f}  {d.verdict}"
        )


def _share(value: float) -> str:
    return f"{100 * value:.0f}%" if value == value else "-"


@campaign.command()
@file_argument
@other_argument
@out_option
@json_option
def gate(file: Path, before: Path, out: Path, as_json: bool) -> None:
    """Check that no metric is worse than in an earlier campaign.

    BEFORE is the folder of the earlier campaign. The exit code is 14 if a metric is certainly worse by more than its
    margin. It is 15 if the result is inconclusive, or if the campaign has not been run with the current files.
    """
    plan = _plan(file, out)
    table = _table(plan, quiet=True)
    if stale := _stale(plan, table):
        raise GateUndecided(stale)
    if len(table) < len(plan.rows):
        raise GateUndecided(
            f"only {len(table)} of {len(plan.rows)} runs are finished; `run` executes the remaining runs"
        )
    found = _differences(plan, before)
    _show(found, as_json)
    judged: list[tuple[str, type[WaveSimError], str]] = [
        ("worse", MetricRegressed, "worse than allowed"),
        ("undecided", GateUndecided, "inconclusive"),
    ]
    for verdict, error, text in judged:
        if names := [d.name for d in found if d.verdict == verdict]:
            raise error(f"{text}: {', '.join(names)}")


@campaign.command()
@file_argument
@click.argument("row", type=click.IntRange(0))
@out_option
@json_option
def repeat(file: Path, row: int, out: Path, as_json: bool) -> None:
    """Repeat run ROW and check that its result is the same."""
    from wavesim_studies.campaign.run import execute_run, folder_of

    plan = _plan(file, out)
    if row >= len(plan.rows):
        raise ConfigError(f"run {row} does not exist: use 0 to {len(plan.rows) - 1}")
    asked = plan.rows[row]
    done = execute_run(plan, asked)
    table = _table(plan, quiet=True) if (plan.folder / "journal.sqlite").is_file() else []
    known = next((r for r in table if r["row"] == row), None)
    if as_json:
        echo(finite_json({"row": row, "factors": asked.factors, **done}))
    else:
        echo(
            f"run {row}: {', '.join(f'{k} = {v}' for k, v in asked.factors.items()) or 'no factors'}; seed {asked.seed}"
        )
        for name, value in done["metrics"].items():
            echo(f"{name:24} {'-' if value is None else f'{value:.6g}'}")
        echo(
            f"{done['status']}{': ' + done['reason'] if done['reason'] else ''}; content hash {done['hash'][:16] or '-'}"
        )
        if plan.base_configuration is not None:
            echo(f"file      {folder_of(plan, asked) / 'config.xml'}")
    if known is None or not known["hash"]:
        return
    other = "" if known["key"] == asked.key else _changed(plan, known["key"])
    if known["hash"] != done["hash"]:
        place = (
            f"; since then: {other}" if other else f", with the same files, on {known['cpu'] or 'another processor'}"
        )
        raise RunNotReproduced(f"run {row} of the campaign had the content hash {known['hash'][:16]}{place}")
    if other:
        echo(f"wavesim: same result, but from different files: {other}", err=True)
