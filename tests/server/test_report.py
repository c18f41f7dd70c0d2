"""The table of a trial reports what went wrong: frozen bodies, omissions, and lost participants."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from wavesim_sdk import metrics
from wavesim_sdk.errors import InvalidArgument
from wavesim_sdk.log import read, straight_line_errors
from wavesim_sdk.tables import CLOCK, RECEPTION, SENT, STATE, Outcome, SignalKind
from wavesim_server import cli
from wavesim_server.logbook import network_report, report
from wavesim_server.logbook.writer import HEALTH, LogWriter
from wavesim_server.trial import Diverged, Trial
from wavesim_world.config import LoadedConfig


@pytest.fixture
def loaded(config: Callable[..., LoadedConfig]) -> LoadedConfig:
    return config('<fleet><buoy name="b" model="buoy" position="0 0 5 m"/></fleet>')


def run(path: Path, loaded: LoadedConfig, frozen: bool, **counters: int) -> None:
    """A log of one second in which a body stays where it is."""
    writer = LogWriter(path, loaded, 5)
    clock = np.zeros(1, CLOCK.dtype)[0]
    writer.run(0, "running")
    writer.health(0, clock)
    for row, name in enumerate(("b", "c")):
        writer.body(0, row, name, "buoy", "buoy", True)
    for tick in range(11):
        writer.table(tick * 100_000_000, "state", [0, 1], bytes(2 * STATE.dtype.itemsize))
    if frozen:
        writer.frozen(250_000_000, ["c"])
    for name, count in counters.items():
        clock[name] = count
    writer.run(1_000_000_000, "ended")
    writer.health(1_000_000_000, clock)
    writer.close()


def test_a_run_without_trouble_says_nothing_of_it(tmp_path: Path, loaded: LoadedConfig) -> None:
    run(tmp_path / "a.mcap", loaded, frozen=False, ticks_late=7)
    table = report.trial_table(tmp_path / "a.mcap")
    assert table["complete"] and table["health"]["ticks_late"] == 7 and set(table["health"]) == set(HEALTH)
    assert not any("frozen_at_s" in v for v in table["vehicles"])
    text = report.table_text(table)
    assert "FROZEN" not in text and not any(t in text for t in report.TROUBLE_TEXTS.values())


def test_a_network_report_needs_packets(tmp_path: Path, loaded: LoadedConfig) -> None:
    run(tmp_path / "a.mcap", loaded, frozen=False)
    with pytest.raises(InvalidArgument, match="the log contains no data packets"):
        network_report.report_of_log(tmp_path / "a.mcap")


def test_the_headings_are_explained_below_the_table(tmp_path: Path, loaded: LoadedConfig) -> None:
    run(tmp_path / "a.mcap", loaded, frozen=False)
    table = report.trial_table(tmp_path / "a.mcap")
    lines = report.table_text(table).splitlines()
    assert "ranges: two-way" not in "\n".join(lines), "no vehicle has any"
    table["vehicles"][0] |= {
        "ranges": 1,
        "ranges_per_minute": 1.0,
        "range_error_rms_m": 0.1,
        "range_error_max_m": 0.2,
        "navigation_rms_m": 1.0,
        "navigation_max_m": 2.0,
        "dead_reckoning_end_m": 3.0,
    }
    text = report.table_text(table)
    head = text.splitlines()[2]
    without = [{k: x for k, x in v.items() if k != "dead_reckoning_end_m"} for v in table["vehicles"]]
    assert " 3.0 m" in text and "3.0 m" not in report.table_text({**table, "vehicles": without})
    below = text.partition("\n\ndistance: ")[2]
    for title in ("sent", "heard", "lost", "ranges", "/min", "error rms", "max", "nav rms", "nav max", "dead reck."):
        assert title in head and title in below, title


def test_contacts_stand_in_the_table(tmp_path: Path, loaded: LoadedConfig) -> None:
    writer = LogWriter(tmp_path / "a.mcap", loaded, 5)
    writer.body(0, 0, "b", "buoy", "buoy", True)
    writer.notice(500_000_000, "b", "left the fence 'f'")
    writer.notice(1_250_000_000, "b", "contact with the sea bed at 0.3 m/s")
    writer.notice(3_000_000_000, "b", "contact with block 1 at 1 m/s")
    writer.close()
    table = report.trial_table(tmp_path / "a.mcap")
    assert [c["time_s"] for c in table["vehicles"][0]["contacts"]] == [1.25, 3.0]
    assert (
        "b         contact with the sea bed at 0.3 m/s, after 1.250 s, and 1 more"
        in report.table_text(table).splitlines()
    )


def test_the_closest_approach_stands_in_the_table(tmp_path: Path, loaded: LoadedConfig) -> None:
    """Two that meet at 4 m/s with 3 m between their courses, seen once a second, nearest half way between."""
    writer = LogWriter(tmp_path / "a.mcap", loaded, 5)
    for row, name in enumerate(("one", "two", "float")):
        writer.body(0, row, name, "lauv", "buoy" if name == "float" else "underwater", True)
    for second in range(11):
        state = np.zeros(3, STATE.dtype)
        state["p_WB_W"][:2] = (2.0 * second, 0.0, 5.0), (18.0 - 2.0 * second, 3.0, 5.0)
        writer.table(second * 1_000_000_000, "state", [0, 1, 2], state.tobytes())
    writer.close()
    table = report.trial_table(tmp_path / "a.mcap")
    assert [v.get("closest") for v in table["vehicles"]] == [
        {"to": "two", "distance_m": 3.0, "time_s": 4.5},
        {"to": "one", "distance_m": 3.0, "time_s": 4.5},
        None,
    ]
    said = [line for line in report.table_text(table).splitlines() if "closest" in line]
    assert said == ["one       closest to two: 3.00 m after 4.5 s"]


def test_a_frozen_body_stands_in_the_table(tmp_path: Path, loaded: LoadedConfig) -> None:
    run(tmp_path / "a.mcap", loaded, frozen=True)
    table = report.trial_table(tmp_path / "a.mcap")
    assert [v.get("frozen_at_s") for v in table["vehicles"]] == [None, 0.25]
    assert [v["distance_m"] for v in table["vehicles"]] == [0.0, None], "where it was thrown is no distance"
    assert "c            FROZEN     0" in report.table_text(table)
    assert "c         FROZEN at 0.250 s: its state diverged (NaN or infinity)" in report.table_text(table).splitlines()


def test_a_trial_with_a_frozen_body_has_an_exit_code_of_its_own(
    tmp_path: Path, loaded: LoadedConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def logged(trial: Trial, plots: bool) -> str:
        trial.folder.mkdir(parents=True)
        run(trial.log, loaded, frozen=True)
        return trial._finish(plots, wall=1.0)

    monkeypatch.setattr(Trial, "run", logged)
    monkeypatch.setattr(cli.compiling, "ensure_compiled", lambda **_: None)
    arguments = [str(loaded.path), "--out", str(tmp_path), "--duration", "1", "--no-plots", "--quiet"]
    done = CliRunner().invoke(cli.trial, arguments)
    assert isinstance(done.exception, Diverged) and done.exception.exit_code == 13
    assert "c at 0.250 s" in str(done.exception) and "c         FROZEN" in done.stdout


@pytest.mark.parametrize("counter", sorted(report.TROUBLE_TEXTS))
def test_what_was_left_out_is_counted_in_the_table(tmp_path: Path, loaded: LoadedConfig, counter: str) -> None:
    run(tmp_path / "a.mcap", loaded, frozen=False, **{counter: 12})
    table = report.trial_table(tmp_path / "a.mcap")
    assert f"12 {report.TROUBLE_TEXTS[counter]}" in report.table_text(table).splitlines()


def test_lost_participants_stand_in_the_table(tmp_path: Path, loaded: LoadedConfig) -> None:
    run(tmp_path / "a.mcap", loaded, frozen=False)
    table = report.trial_table(tmp_path / "a.mcap") | {
        "ended_early": {"program-b": -9},
        "last_words": {"program-b": ["x", "y"]},
    }
    assert "program-b ended early (code -9)\n          x\n          y\n" in report.table_text(table)


def test_counters_of_the_machine_do_not_change_the_hash(tmp_path: Path, loaded: LoadedConfig) -> None:
    run(tmp_path / "a.mcap", loaded, frozen=False)
    run(tmp_path / "b.mcap", loaded, frozen=False, ticks_late=3, slipped_ns=10**9)
    run(tmp_path / "c.mcap", loaded, frozen=True)
    a, b, c = (read(tmp_path / f"{n}.mcap").content_hash for n in "abc")
    assert a == b != c


def test_contacts_left_out_are_a_counter_for_prometheus() -> None:
    status = {"name": "x", "state": "running", "clients": [], "contacts_dropped": 4, "drops": {}}
    assert 'wavesim_contacts_dropped_total{server="x"} 4' in metrics.prometheus_text(status).splitlines()


def test_what_is_no_number_is_null_in_json(tmp_path: Path, loaded: LoadedConfig) -> None:
    """A body that was thrown to no place has gone no distance that JSON could say."""
    writer = LogWriter(tmp_path / "a.mcap", loaded, 5)
    writer.body(0, 0, "b", "buoy", "buoy", True)
    for tick, place in enumerate((0.0, np.nan)):
        state = np.zeros(1, STATE.dtype)
        state["p_WB_W"] = place
        writer.table(tick * 100_000_000, "state", [0], state.tobytes())
    writer.close()
    table = report.trial_table(tmp_path / "a.mcap")
    assert np.isnan(table["vehicles"][0]["distance_m"])

    def refuse(constant: str) -> float:
        raise AssertionError(constant)

    assert json.loads(report.table_json(table), parse_constant=refuse)["vehicles"][0]["distance_m"] is None


def test_a_signal_that_comes_along_several_paths_is_one_delivery(tmp_path: Path, loaded: LoadedConfig) -> None:
    """Signal 1: its direct path is blocked, a bounce is heard, another is an echo. Signal 2: blocked, and too weak."""
    writer = LogWriter(tmp_path / "a.mcap", loaded, 5)
    for row, name in enumerate(("b", "c")):
        writer.body(0, row, name, "buoy", "buoy", True)
    sent, heard = np.zeros(2, SENT.dtype), np.zeros(5, RECEPTION.dtype)
    sent["id"], sent["kind"], sent["payload_bytes"] = [1, 2], SignalKind.DATA, 4
    sent["source"] = [1, 0]  # both have modems
    heard["id"], heard["receiver"], heard["source"] = [1, 1, 1, 2, 2], [0, 0, 0, 1, 1], [1, 1, 1, 0, 0]
    heard["kind"], heard["bottom"] = SignalKind.DATA, [0, 1, 2, 0, 1]
    heard["outcome"] = [Outcome.BLOCKED, Outcome.HEARD, Outcome.ECHO, Outcome.BLOCKED, Outcome.BELOW_THRESHOLD]
    heard["arrival_ns"] = [10, 20, 30, 40, 50]
    writer.signals(sent, heard)
    writer.close()
    table = report.trial_table(tmp_path / "a.mcap")
    assert [(v["heard"], v["lost"]) for v in table["vehicles"]] == [(1, {}), (0, {"blocked": 1})]
    packets = table["packets"]
    assert (packets["deliveries_possible"], packets["delivered"], packets["lost"]) == (2, 1, {"blocked": 1})


def exchanges(speed: float) -> tuple[np.ndarray, np.ndarray]:
    """Signals and receptions of two exchanges and one scheduled ping over 1500 m and 1530 m, in water of this speed."""
    sent, receptions = np.zeros(5, SENT.dtype), np.zeros(5, RECEPTION.dtype)
    legs = ((1, 0, 1, 0, 1500.0), (2, 1, 0, 1, 1530.0), (3, 0, 1, 0, 1500.0), (4, 1, 0, 3, 1530.0), (5, 1, 0, 0, 750.0))
    for k, (number, source, receiver, query, distance) in enumerate(legs):
        sent[k]["id"], sent[k]["source"], sent[k]["query"], sent[k]["request"] = number, source, query, 1 - k // 4
        r = receptions[k]
        r["id"], r["source"], r["receiver"], r["query"], r["distance"] = number, source, receiver, query, distance
        r["emission_ns"] = k * 3_000_000_000
        r["arrival_ns"] = r["emission_ns"] + round(distance / speed * 1e9)
        r["measured"] = 0.75 * (1500.0 + 1530.0) + 0.2 if query else np.nan
        r["one_way"] = np.nan if k < 4 else 750.0 * 1500.0 / speed + 0.5
    return sent, receptions


def test_the_straight_line_error_is_that_of_the_water(tmp_path: Path, loaded: LoadedConfig) -> None:
    """Instruments assume 1500 m/s, but sound travels at 1490 m/s. Errors of the instrument do not count."""
    sent, receptions = exchanges(1490.0)
    exact = receptions["distance"] * (1500.0 / 1490.0 - 1.0)
    assert np.abs(straight_line_errors(receptions, 1500.0) - exact).max() < 1e-6, "times are whole nanoseconds"
    assert np.abs(straight_line_errors(exchanges(1500.0)[1], 1500.0)).max() < 1e-6
    mean = 0.5 * (exact[0] + exact[1])
    assert report.exchange_errors(receptions, 1500.0) == pytest.approx([mean, mean], abs=1e-6)
    assert np.isnan(report.exchange_errors(receptions[1:], 1500.0)[0]), "the query is not in the log"
    writer = LogWriter(tmp_path / "a.mcap", loaded, 5)
    for row, name in enumerate(("a", "b")):
        writer.body(0, row, name, "lauv", "underwater", True)
    for second in range(2):
        writer.table(second * 1_000_000_000, "state", [0, 1], bytes(2 * STATE.dtype.itemsize))
    writer.signals(sent, receptions)
    writer.close()
    log = read(tmp_path / "a.mcap")
    assert log.sound_speed == 1500.0
    shown = log.table("/acoustics/reception")
    assert shown["straight_line_error"] == pytest.approx(exact, abs=1e-6) and shown.units["straight_line_error"] == "m"
    a = report.trial_table(log)["vehicles"][0]
    assert a["range_straight_line_error_mean_m"] == a["range_straight_line_error_max_m"] == round(mean, 4)
    assert a["one_way_straight_line_error_mean_m"] == round(exact[4], 4)
    text = report.table_text(report.trial_table(log))
    assert f"due to the speed and path of sound: mean +{mean:.3f} m, max {mean:.3f} m" in text
    assert f"one-way ranges due to the speed and path of sound: mean +{exact[4]:.3f} m" in text
    log.metadata.pop("sound_speed")  # a log of an older version
    assert not any("straight_line" in key for v in report.trial_table(log)["vehicles"] for key in v)
    assert "straight_line_error" not in log.table("/acoustics/reception").columns


def test_no_line_about_water_that_is_as_assumed(tmp_path: Path, loaded: LoadedConfig) -> None:
    writer = LogWriter(tmp_path / "a.mcap", loaded, 5)
    writer.body(0, 0, "a", "lauv", "underwater", True)
    writer.signals(*exchanges(1500.0))
    writer.close()
    table = report.trial_table(tmp_path / "a.mcap")
    assert table["vehicles"][0]["range_straight_line_error_max_m"] == 0.0
    assert "path of sound" not in report.table_text(table)
