"""Signals of a time span of a log: for a page of a replay, which looks ahead and back, and in the picture of a log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner

from tests.viz.browser import Viewer
from wavesim_sdk.tables import RECEPTION, SENT, STATE, Outcome, SignalKind
from wavesim_server.cli import log as log_group
from wavesim_server.logbook.writer import LogWriter
from wavesim_viz.logged_signals import MOST_RECEPTIONS_LISTED, signals_between
from wavesim_world.config import load

WORLD = """<wavesim name="net"><network port="0"/><fleet>{}</fleet></wavesim>"""
NODE = """<buoy name="n{0}" model="buoy" position="{1} 0 5 m"><transducer><modem address="{0}"/></transducer></buoy>"""
S = 1_000_000_000


def packets(count: int, receivers: int, every: float = 1.0) -> tuple[Any, Any]:
    """Packets of the node in row 0 to the node with address 2; those in the other rows hear them after 0.1 s per row."""
    sent, heard = np.zeros(count, SENT.dtype), np.zeros((count, receivers), RECEPTION.dtype)
    sent["id"] = heard["id"].T[:] = np.arange(1, count + 1)
    sent["kind"] = heard["kind"] = SignalKind.DATA
    sent["from_address"] = heard["from_address"] = 1
    sent["to_address"] = heard["to_address"] = 2
    sent["duration"] = heard["duration"] = 0.25
    sent["emission_ns"] = heard["emission_ns"].T[:] = np.round(np.arange(count) * every * S)
    heard["receiver"] = np.arange(1, receivers + 1)
    heard["arrival_ns"] = heard["emission_ns"] + heard["receiver"] * S // 10
    return sent, heard.ravel()


def times(listed: Any) -> tuple[list[float], list[float]]:
    return [s["time"] for s in listed["sent"]], [round(r["time"], 6) for r in listed["receptions"]]


def test_signals_of_a_time_span_are_those_on_their_way() -> None:
    sent, heard = packets(10, 2)
    assert times(signals_between(sent, heard, 2.9, 3.05)) == ([3.0], [3.1, 3.2]), "it arrives after the span"
    assert times(signals_between(sent, heard, 3.4, 3.5)) == ([3.0], [3.2]), "its end arrives within the span"
    assert times(signals_between(sent, heard, 3.5, 3.9)) == ([], [])
    assert signals_between(sent, heard, -1e9, 1e9)["missed"] == 0


def test_too_many_signals_are_thinned_with_all_their_receptions() -> None:
    sent, heard = packets(3 * MOST_RECEPTIONS_LISTED // 2, 2, 0.01)
    listed = signals_between(sent, heard, -1e9, 1e9)
    assert 0.5 * MOST_RECEPTIONS_LISTED < len(listed["receptions"]) <= MOST_RECEPTIONS_LISTED
    assert len(listed["receptions"]) == 2 * len(listed["sent"]) and len(listed["sent"]) + listed["missed"] == len(sent)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of three nodes: a packet each second, the second of which collides at the third node."""
    folder = tmp_path_factory.mktemp("net")
    (folder / "net.xml").write_text(WORLD.format("".join(NODE.format(k, 100 * k) for k in (1, 2, 3))))
    writer = LogWriter(folder / "run.mcap", load(folder / "net.xml"), 1)
    state = np.zeros(1, STATE.dtype)
    state["q_WB"][:, 0] = 1.0
    for row in range(3):
        writer.body(0, row, f"n{row + 1}", "buoy", "buoy", True)
        for t in range(11):
            writer.table(t * S, "state", [row], state.tobytes())
    sent, heard = packets(10, 2)
    heard["outcome"][(heard["id"] == 2) & (heard["receiver"] == 2)] = Outcome.COLLISION
    for s in sent:
        writer.record("/acoustics/sent", SENT, int(s["emission_ns"]), s.tobytes())
    for r in heard[np.argsort(heard["arrival_ns"])]:
        writer.record("/acoustics/reception", RECEPTION, int(r["arrival_ns"]), r.tobytes())
    writer.close()
    return folder / "run.mcap"


def test_a_replay_lists_signals_that_it_has_not_reached(run: Path) -> None:
    viewer = Viewer(run)
    try:
        with urlopen(f"{viewer.url.rstrip('/')}/signals?since=8.5&until=9.5") as answer:
            listed = json.load(answer)
        assert times(listed) == ([9.0], [9.1, 9.2]) and listed["sent"][0]["to_address"] == 2
        for wrong in ("", "?since=1", "?since=a&until=2", "?since=nan&until=2"):
            with pytest.raises(HTTPError) as refused:
                urlopen(f"{viewer.url.rstrip('/')}/signals{wrong}")
            assert refused.value.code == 400 and "since and until" in refused.value.read().decode()
    finally:
        viewer.end()


def bars(picture: Path) -> dict[str, int]:
    """The legend of a diagram: numbers of bars."""
    space = "{http://www.w3.org/2000/svg}"
    texts = ["".join(t.itertext()) for t in ElementTree.parse(picture).iter(f"{space}text")]
    counts = [t.rpartition(" ") for t in texts if t.rpartition(" ")[0] in ("received", "collision", "sent")]
    return {name: int(number) for name, _, number in counts}


def test_the_picture_of_a_log_contains_the_selected_signals(run: Path, tmp_path: Path) -> None:
    def draw(*options: str) -> dict[str, int]:
        out = tmp_path / "out.svg"
        done = CliRunner().invoke(log_group, ["network", str(run), "--picture", str(out), *options])
        assert done.exit_code == 0, done.output
        return bars(out)

    assert draw() == {"received": 19, "collision": 1, "sent": 10}
    assert draw("--since", "0.5", "--until", "1.5 s") == {"received": 1, "collision": 1, "sent": 1}
    assert draw("--node", "n3") == {"received": 9, "collision": 1, "sent": 10}
    assert draw("--addressed") == {"received": 10, "sent": 10}
    first = (tmp_path / "out.svg").read_bytes()
    draw("--addressed")
    assert (tmp_path / "out.svg").read_bytes() == first, "the same file each time"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--since", "3"], "--since has no effect without --picture"),
        (["--picture", "out.jpg"], "must end in .svg, .png, .pdf"),
        (["--picture", "out.svg", "--node", "n9"], "the log has no body 'n9'; it has n1, n2, n3"),
        (["--picture", "out.svg", "--since", "5", "--until", "4"], "must end after its begin, got 5 s to 4 s"),
        (
            ["--picture", "out.svg", "--since", "20", "--until", "30"],
            "no signals of this selection between 20 s and 30 s",
        ),
    ],
)
def test_a_wrong_selection_is_refused(run: Path, tmp_path: Path, options: list[str], message: str) -> None:
    options = [str(tmp_path / o) if o.startswith("out") else o for o in options]
    done = CliRunner().invoke(log_group, ["network", str(run), *options])
    assert done.exit_code and message in f"{done.output}{done.exception}"
    assert not list(tmp_path.iterdir())
