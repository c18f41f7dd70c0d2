"""The acoustics process of a viewer: it is started on the first request, restarted when it dies, and ended with the viewer."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiohttp import ClientTimeout
from aiohttp.test_utils import TestClient, TestServer

from tests.conftest import ROOT
from tests.viz.protocol import faults
from tests.viz.stage import Stage
from wavesim_sdk.tables import STATE
from wavesim_server.logbook.writer import LogWriter
from wavesim_viz.acoustics_process import MOST_WAITING, AcousticsProcess
from wavesim_viz.acoustics_requests import NO_CONFIGURATION, parse_acoustics_request
from wavesim_viz.live import SourceConfiguration
from wavesim_viz.page_acoustics import FieldAnswer, RaysAnswer
from wavesim_viz.replay import ReplaySource
from wavesim_viz.web import ACOUSTICS, AccessPolicy, make_app
from wavesim_viz.xml_trees import RequestFailed
from wavesim_world.config import LoadedConfig, load
from wavesim_world.config.load import load_text
from wavesim_world.config.standalone_xml import load_standalone, omitted_water

STAND_IN = (sys.executable, str(ROOT / "tests/viz/acoustics_stand_in.py"))
PAIR = {"from": [0.0, 0.0, 5.0], "to": [300.0, 400.0, 12.0], "time": 3.0}
ASKED = {
    "kind": "rays",
    "source": PAIR["from"],
    "receiver": PAIR["to"],
    "time": 3.0,
    "frequency": 25e3,
    "depth": None,
}


def run(test: Callable[[AcousticsProcess], Awaitable[None]], **options: Any) -> None:
    async def whole() -> None:
        worker = AcousticsProcess(options.pop("command", STAND_IN), **options)
        try:
            await test(worker)
        finally:
            await worker.close()

    asyncio.run(whole())


def rays(config: str = "") -> dict[str, Any]:
    return {"config": config, "kind": "rays", **PAIR}


def is_running(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def test_it_starts_with_the_first_request_and_ends_with_the_viewer() -> None:
    async def test(worker: AcousticsProcess) -> None:
        assert worker.pid is None
        first = await worker.ask(rays())
        pid = worker.pid
        assert pid is not None and len(first["arrivals"]) == 4
        assert os.getpriority(os.PRIO_PROCESS, pid) > os.getpriority(os.PRIO_PROCESS, 0)
        await worker.ask(rays())
        assert worker.pid == pid
        await worker.close()
        assert worker.pid is None and not is_running(pid)

    run(test)


def test_a_process_that_was_killed_is_replaced() -> None:
    async def test(worker: AcousticsProcess) -> None:
        await worker.ask(rays())
        pid = worker.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        assert len((await worker.ask(rays()))["arrivals"]) == 4  # even if its end has not been noticed yet
        assert worker.pid not in (None, pid)

    run(test)


def test_a_request_that_ends_the_process_fails_with_its_last_words() -> None:
    async def test(worker: AcousticsProcess) -> None:
        with pytest.raises(RequestFailed, match=r"^the acoustics process ended: out of memory$"):
            await worker.ask(rays("die"))
        assert (await worker.ask(rays()))["arrivals"]
        with pytest.raises(RequestFailed, match="the acoustics process ended"):
            await worker.ask(rays("babble"))
        with pytest.raises(RequestFailed, match=r"^the acoustics process ended: its answer is not a JSON object$"):
            await worker.ask(rays("list"))
        assert worker.pid is None
        with pytest.raises(RequestFailed, match=r"^the source is 3 m above the surface$"):
            await worker.ask(rays("refuse"))

    run(test)


def test_a_process_that_hangs_is_ended() -> None:
    async def test(worker: AcousticsProcess) -> None:
        await worker.ask(rays())
        pid = worker.pid
        assert pid is not None
        worker.answer_s = 0.5
        with pytest.raises(RequestFailed, match=r"did not answer within 0\.5 s"):
            await worker.ask(rays("hang"))
        worker.answer_s = 60.0
        assert not is_running(pid) and (await worker.ask(rays()))["arrivals"]

    run(test)


def test_a_process_that_cannot_be_started() -> None:
    async def test(worker: AcousticsProcess) -> None:
        with pytest.raises(RequestFailed, match="cannot start the acoustics process: No such file"):
            await worker.ask(rays())

    run(test, command=("/no/such/program",))


def test_an_idle_process_ends() -> None:
    async def test(worker: AcousticsProcess) -> None:
        await worker.ask(rays())
        async with asyncio.timeout(10):
            while worker.pid is not None:
                await asyncio.sleep(0.01)
        assert (await worker.ask(rays()))["arrivals"]

    run(test, idle_s=0.1)


def test_requests_do_not_pile_up() -> None:
    async def test(worker: AcousticsProcess) -> None:
        many = [asyncio.create_task(worker.ask(rays())) for _ in range(MOST_WAITING)]
        await asyncio.sleep(0)
        with pytest.raises(RequestFailed, match="other pages"):
            await worker.ask(rays())
        assert all(answer["arrivals"] for answer in await asyncio.gather(*many))

    run(test)


def test_it_ends_when_the_viewer_is_killed() -> None:
    """Its input ends then."""
    code = (
        "import asyncio, sys, time\n"
        "from wavesim_viz.acoustics_process import AcousticsProcess\n"
        "async def main():\n"
        f"    w = AcousticsProcess({STAND_IN!r})\n"
        f"    await w.ask({rays()!r})\n"
        "    print(w.pid, flush=True)\n"
        "    await asyncio.sleep(3600)\n"
        "asyncio.run(main())\n"
    )
    viewer = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert viewer.stdout is not None
    pid = int(viewer.stdout.readline())
    viewer.kill()
    viewer.wait()
    viewer.stdout.close()
    deadline = time.monotonic() + 20.0
    while is_running(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"kind": "light"}, "expected the kind"),
        ({"source": [0, 0]}, "invalid source"),
        ({"receiver": [0, 0, 1e9]}, "invalid receiver"),
        ({"receiver": [0, 0, True]}, "invalid receiver"),
        ({"time": float("nan")}, "invalid time"),
        ({"time": None}, "invalid time"),
        ({"frequency": 0.0}, "invalid frequency"),
        ({"depth": -1.0}, "invalid depth"),
    ],
)
def test_requests_are_checked(change: dict[str, Any], text: str) -> None:
    assert parse_acoustics_request(ASKED)["source"] == (0.0, 0.0, 5.0)
    with pytest.raises(RequestFailed, match=text):
        parse_acoustics_request({**ASKED, **change})


def test_a_page_receives_answers_as_the_protocol_declares_them(tmp_path: Any) -> None:
    async def whole() -> None:
        source = Stage("water.xml")
        access = AccessPolicy.make("127.0.0.1", 1, False)
        app = make_app(source, 20.0, access, tmp_path, make_process=lambda: AcousticsProcess(STAND_IN))
        async with TestClient(TestServer(app)) as client:
            access.names = {f"127.0.0.1:{client.port}"}
            headers = {"Origin": f"http://127.0.0.1:{client.port}"}

            async def post(**change: Any) -> tuple[int, Any]:
                answer = await client.post("/acoustics", json={**ASKED, **change}, headers=headers)
                return answer.status, await answer.json()

            status, found = await post()
            assert status == 200 and not list(faults(found, RaysAnswer)) and found["notes"] == ["a note"]
            first = found["rays"][0]
            assert first["time"] == pytest.approx(500.049 / 1500.0, rel=1e-6) and first["launch"] == pytest.approx(
                0.802, abs=1e-3
            )
            assert first["points"][:3] == [0.0, 0.0, 5.0] and first["points"][-3:] == pytest.approx(
                [300.0, 400.0, 12.0]
            )
            for change in ({"kind": "section"}, {"kind": "loss"}, {"kind": "loss", "depth": 7.0}):
                status, found = await post(**change)
                assert status == 200 and not list(faults(found, FieldAnswer))
                assert len(found["values"]) == len(found["rows"]) and len(found["values"][0]) == len(found["columns"])
            assert found["plane"] == "horizontal" and found["bed"] == []
            assert await post(kind="light") == (
                400,
                {"error": "invalid request: expected the kind 'rays', 'loss' or 'section'"},
            )
            source.described["file"] = "hang"
            with pytest.raises(TimeoutError):
                await client.post("/acoustics", json=ASKED, headers=headers, timeout=ClientTimeout(1.0))
            worker = app[ACOUSTICS]["rays"]
            async with asyncio.timeout(20):
                while worker.pid is not None:  # no request is waiting any longer
                    await asyncio.sleep(0.01)
            source.described["file"] = "refuse"
            assert await post() == (400, {"error": "the source is 3 m above the surface"})
            source.described["file"] = ""
            assert await post() == (400, {"error": NO_CONFIGURATION})
            foreign = await client.post("/acoustics", json=ASKED, headers={"Origin": "http://evil.example"})
            assert foreign.status == 403

    asyncio.run(whole())


def test_a_log_states_which_files_its_configuration_lacks(config: Callable[..., LoadedConfig], tmp_path: Path) -> None:
    (tmp_path / "bed.xyz").write_text("0 0 20\n0 100 20\n100 0 21\n100 100 22\n")
    fleet = '<fleet><vehicle name="a" model="lauv" position="10 10 5 m"/></fleet>'
    whole = config(f'<world><soundings file="bed.xyz"/></world>{fleet}')
    water = '<world><volume file="bed.xyz" latitude="0 deg" longitude="0 deg"/></world><acoustics profile="volume" refinement="3" sound_speed="1494 m/s"/>'
    for loaded, lacking in (
        (config(fleet), ""),
        (whole, "the log does not contain the files of <soundings>"),
        (config(water + fleet), "the log does not contain the files of <volume>"),
    ):
        path = tmp_path / f"{len(lacking)}.mcap"
        writer = LogWriter(path, loaded, 1)
        writer.body(0, 0, "a", "lauv", "underwater", True)
        writer.table(0, "state", [0], np.zeros(1, STATE.dtype).tobytes())
        writer.close()
        shown = ReplaySource(path).configuration()
        assert shown.note.startswith(lacking) and bool(shown.note) == bool(lacking)
        assert load_text(shown.text).config.fleet.vehicle[0].name == "a"
    given = ReplaySource(path, config=whole.path).configuration()
    assert given == SourceConfiguration(str(whole.path))
    front, _ = load_standalone((ROOT / "examples/trials/front.xml").read_text())
    assert front.config.acoustics == replace(
        load(ROOT / "examples/trials/front.xml").config.acoustics, profile="constant"
    )
    text = '<wavesim><world><volume file="b"/></world><acoustics profile="file" file="c"/></wavesim>'
    assert omitted_water(text) == ("<volume>", "<acoustics>")
