"""The tour of the README, line by line; its links and files exist."""

from __future__ import annotations

import re
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import wavesim
from tests.examples.pages import Block, Follower, at_desk, page_blocks
from wavesim_sdk.attach import SharedState
from wavesim_sdk.commander import Commander

WAIT_S = 90.0
END_S = 8  #: configured end of the run, which --duration 0 removes
#: commands of the tour that get any free port here
PORTS = {"viz": "viz --port 0", "configure": "configure --port 0", "4001": "0"}


def tour(root: Path) -> list[Block]:
    """The blocks from the first terminal on."""
    blocks = page_blocks(root, "README.md")
    return blocks[next(k for k, block in enumerate(blocks) if block.title) :]


class Reader:
    """What a reader sees and does between the blocks."""

    def __init__(self, follower: Follower, name: str) -> None:
        self.follower, self.name = follower, name

    def printed(self, terminal: str, pattern: str) -> str:
        """What a terminal has printed, as soon as the pattern is part of it."""
        process, path = self.follower.terminals[terminal]
        self.until(lambda: process.poll() is not None or re.search(pattern, path.read_text()) is not None)
        assert re.search(pattern, path.read_text()), f"{terminal} ended: {path.read_text()}"
        return path.read_text()

    def until(self, condition: Callable[[], bool]) -> None:
        limit = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < limit, "waited in vain"
            time.sleep(0.02)

    def waits_for_the_program(self) -> None:
        with Commander(self.name) as commander:
            self.until(lambda: commander.send("status").data["clients_total"] == 1)

    def sees_the_boat_move(self) -> None:
        lines = self.printed("terminal 3", r"speed over ground (0\.[2-9]|[1-9])").splitlines()
        assert lines[0].endswith("speed over ground 0.00 m/s"), "a boat at rest"
        seconds = [line.split()[0] for line in lines]
        assert len(set(seconds)) == len(seconds), "one line for each simulated second"

    def opens_the_page(self) -> None:
        """The address in terminal 4."""
        (url,) = re.findall(r"http://\S+", self.printed("terminal 4", r"http://\S+\s"))
        # like a browser, it keeps the token as a cookie
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with browser.open(url, timeout=30.0) as answer:
            assert b"<title>WaVeSim</title>" in answer.read()

    def sees_values(self, *sensors: str) -> None:
        shared = SharedState(self.name)
        self.until(lambda: all(shared.values(sensor)["sequence"].max() > 3 for sensor in sensors))

    def connects_a_plotter(self) -> None:
        port = int(self.printed("terminal 6", r":\d+\s").split(":")[-1])
        with socket.create_connection(("127.0.0.1", port), timeout=30.0) as line, line.makefile() as sentences:
            assert next(s for s in sentences if "HDT" in s).startswith("$IIHDT,")

    def controls_the_clock(self) -> None:
        """The commands in the text of step 1, then Ctrl-C in two terminals as step 7 says."""
        for command in (["pause"], ["step", "25"], ["speed", "0"], ["start"]):
            done = wavesim(*command, "-s", self.name)
            assert done.returncode == 0, (command, done.stderr)
        assert self.name in wavesim("servers").stdout
        assert SharedState(self.name).clock()["time_ns"] > END_S * 1e9, "the run lasts as long as the reader likes"
        lines = self.follower.terminals["terminal 3"][1]
        for terminal in ("terminal 3", "terminal 6"):
            self.follower.close(terminal)
        assert all(line.endswith(" m/s") for line in lines.read_text().splitlines()), "no traceback after Ctrl-C"


@pytest.mark.long
@pytest.mark.system
@pytest.mark.timeout(600)
def test_the_tour(root: Path, tmp_path: Path, name: str) -> None:
    """Steps 1 to 8, with real processes."""
    with at_desk(tmp_path, {"demo": name, **PORTS}) as follower:
        config = (root / "config.xml").read_text()
        for old, new in (("demo", name), ("9750", "0"), ("15 min", f"{END_S} s")):
            assert f'"{old}"' in config
            config = config.replace(f'"{old}"', f'"{new}"')
        (follower.folder / "config.xml").write_text(config)
        (follower.folder / "examples").symlink_to(root / "examples")
        reader = Reader(follower, name)
        actions: dict[str, Callable[[], None]] = {  # after the block that begins like this
            "python hello.py": reader.waits_for_the_program,
            "wavesim speed": reader.sees_the_boat_move,
            "wavesim viz": reader.opens_the_page,
            "wavesim emulate ctd": lambda: reader.sees_values("ctd"),
            "wavesim emulate all": lambda: reader.sees_values("ahrs", "speedlog"),
            "wavesim device": reader.connects_a_plotter,
            "wavesim fault": reader.controls_the_clock,
            "wavesim configure": reader.opens_the_page,
        }
        done = set()
        for block in tour(root):
            follower.follow([block])
            for start in filter(block.text.startswith, actions):
                actions[start]()
                done.add(start)
        assert done == actions.keys()
        folder = follower.folder / "runs" / "tour"
        for file in ("run.mcap", "tracks.png", "csv/acoustics.reception.csv", "csv/faults.csv"):
            assert (folder / file).is_file(), file


def test_links_and_files_exist(root: Path) -> None:
    for page in [root / "README.md", *(root / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} names {target}"


def test_no_machine_of_ours_is_named(root: Path) -> None:
    files = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True).stdout.split()
    for file in files:
        text = (root / file).read_text(errors="replace")
        assert not re.search(r"(?<![\w./])/(home|work|root|Users)/", text), file
