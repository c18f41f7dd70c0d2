"""The lock on the name of a server, the names of its shared objects, and their removal."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import posix_ipc
import pytest

from wavesim_sdk.attach import create_semaphores, remove_semaphores, simulation_tables
from wavesim_sdk.commander import Commander, CommanderQueue
from wavesim_sdk.errors import LogError
from wavesim_sdk.sensors import all_sensor_tables, sensor_table_of
from wavesim_sdk.shared_memory import SharedMemoryArea, segment_name
from wavesim_sdk.tables import CLOCK, VEHICLE_TABLES
from wavesim_server.resources import AlreadyRunning, NameLock, area_tables, remove_leftovers, ring_names
from wavesim_server.ring import Ring
from wavesim_server.serve import reserve_log_path
from wavesim_world.config import load

NAME = f"resources-test-{os.getpid()}"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


def test_one_at_a_time_and_the_second_learns_who_holds_it(folder: Path) -> None:
    first = NameLock("x")
    assert [p.name for p in folder.iterdir()] == [f"wavesim-{os.getuid()}-x.lock"]
    with pytest.raises(AlreadyRunning, match=rf"'x' is already running \(process {os.getpid()}\).*--name") as refused:
        NameLock("x")
    assert refused.value.exit_code == 7
    NameLock("y").release()
    first.release()
    assert list(folder.iterdir()) == []
    NameLock("x").release()


def test_a_lock_whose_holder_died_is_free_and_its_number_is_replaced(folder: Path) -> None:
    path = folder / f"wavesim-{os.getuid()}-x.lock"
    path.write_text("99999999 and more")
    lock = NameLock("x")
    assert path.read_text() == str(os.getpid())
    lock.release()


def test_who_holds_it_without_a_number_is_unknown(folder: Path) -> None:
    lock = NameLock("x")
    (folder / f"wavesim-{os.getuid()}-x.lock").write_text("")
    with pytest.raises(AlreadyRunning, match="process unknown"):
        NameLock("x")
    lock.release()


def test_a_file_that_was_removed_meanwhile_is_no_lock(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last holder removed it between our open and our lock: that lock would keep nobody out."""
    path = folder / f"wavesim-{os.getuid()}-x.lock"
    true = NameLock._is_current
    looked: list[bool] = []

    def is_current(lock: NameLock) -> bool:
        if not looked:
            path.unlink()
        elif len(looked) == 1:
            path.unlink()
            path.write_text("another's")
        looked.append(true(lock))
        return looked[-1]

    monkeypatch.setattr(NameLock, "_is_current", is_current)
    lock = NameLock("x")
    assert looked == [False, False, True] and path.read_text() == str(os.getpid())
    with pytest.raises(AlreadyRunning):
        NameLock("x")
    lock.release()


def test_no_log_is_written_over(tmp_path: Path) -> None:
    """Nor by two servers that start at once: a place is taken when it is found."""
    log = str(tmp_path / "run.mcap")
    assert [Path(reserve_log_path(log)).name for _ in range(3)] == ["run.mcap", "run-2.mcap", "run-3.mcap"]
    (tmp_path / "other.2.mcap").touch()  # a part of a log
    assert Path(reserve_log_path(str(tmp_path / "other.mcap"))).name == "other-2.mcap"
    assert reserve_log_path("/dev/null") == "/dev/null" and reserve_log_path("") == ""
    with pytest.raises(LogError, match="cannot write the log"):
        reserve_log_path(str(tmp_path / "run.mcap" / "inside.mcap"))


def test_without_a_folder_of_the_user_it_lies_in_the_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "t"))
    (tmp_path / "t").mkdir()
    lock = NameLock("x")
    assert [p.name for p in (tmp_path / "t").iterdir()] == [f"wavesim-{os.getuid()}-x.lock"]
    lock.release()


def test_a_killed_holder_frees_it() -> None:
    code = "import os; from wavesim_server.resources import NameLock; lock = NameLock('x'); os.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    NameLock("x").release()


@pytest.fixture
def everything() -> Iterator[list[str]]:
    """All that a server shares; the names in the order in which `remove_leftovers` finds them."""
    areas = [segment_name(NAME, a) for a in ("simulation", "vehicles")]
    for area in areas:
        SharedMemoryArea.create(area, [(CLOCK, 1)])
    for ring in ring_names(NAME):
        Ring.create(ring, 4096)
    create_semaphores(NAME, all_sensor_tables())
    queue = CommanderQueue(NAME)
    code = f"import os; from wavesim_sdk.commander import Commander; c = Commander({NAME!r}); print(c._reply.name); os._exit(0)"
    left = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    semaphores = [
        f"/wavesim.{NAME}.claim",
        *(f"/wavesim.{NAME}.{s}.{w}" for s in all_sensor_tables() for w in ("due", "done")),
    ]
    yield [*areas, *ring_names(NAME), *semaphores, queue.name, left]
    remove_leftovers(NAME)


def test_everything_goes_and_is_named(everything: list[str]) -> None:
    assert remove_leftovers(NAME) == everything
    assert remove_leftovers(NAME) == []
    assert list(Path("/dev/shm").glob(f"*wavesim.{NAME}.*")) == []
    with pytest.raises(posix_ipc.ExistentialError):
        posix_ipc.MessageQueue(f"/wavesim.{NAME}.commander")


def test_a_part_of_it_goes_too(everything: list[str]) -> None:
    remove_semaphores(NAME, all_sensor_tables())
    posix_ipc.unlink_shared_memory(everything[0])
    posix_ipc.unlink_shared_memory(everything[3])
    left = [n for n in everything[1:] if n != everything[3] and not n.endswith((".claim", ".due", ".done"))]
    assert remove_leftovers(NAME) == left


def test_what_is_anothers_stays(everything: list[str]) -> None:
    other = CommanderQueue(NAME + "x")
    with Commander(NAME + "x") as client:
        dead = subprocess.run(
            [
                sys.executable,
                "-c",
                f"import os; from wavesim_sdk.commander import Commander; Commander({NAME + 'x'!r}); os._exit(0)",
            ],
            check=True,
        )
        assert dead.returncode == 0
        assert remove_leftovers(NAME) == everything
        assert len(list(Path("/dev/shm").glob(f"wavesim.{NAME}x.reply.*"))) == 2
        assert client._reply.name
    other.close()
    assert len(remove_leftovers(NAME + "x")) == 1


def test_the_rings_have_one_name_for_each_direction() -> None:
    assert ring_names("x") == ("/wavesim.x.commands", "/wavesim.x.events")


MODEL = """<wavesim><shared vehicles="{vehicles}" signals="7"/><models><model name="m" type="buoy">
<sphere diameter="1 m"/><mass value="1 kg"/><inertia xx="1" yy="1" zz="1"/><added-mass diagonal="1 1 1 1 1 1"/>
<linear-drag diagonal="1 1 1 1 1 1"/></model></models><fleet>{fleet}</fleet></wavesim>"""


@pytest.mark.parametrize(
    ("sensors", "instruments"), [("", 1), ('<sensors><ctd/><ahrs name="a"/><ahrs name="b"/></sensors>', 3)]
)
def test_every_table_has_its_rows(tmp_path: Path, sensors: str, instruments: int) -> None:
    path = tmp_path / "c.xml"
    fleet = f'<buoy name="b" model="m" position="0 0 0 m">{sensors}</buoy>'
    path.write_text(MODEL.format(vehicles=1, fleet=fleet))
    tables = area_tables(load(path))
    assert tables["simulation"] == simulation_tables(1, 7) and list(tables) == ["simulation", "vehicles"]
    rows = {t.name: n for t, n in tables["vehicles"]}
    expected = {t.name: 1 for t in VEHICLE_TABLES} | {"instruments": instruments}
    assert rows == expected | ({"ahrs": 2, "ctd": 1} if sensors else {})
    assert {t.name: t for t, _ in tables["vehicles"]} == {t.name: t for t in VEHICLE_TABLES} | {
        n: sensor_table_of(n) for n in rows.keys() - expected.keys()
    }


def test_rows_of_bodies_are_those_of_the_configuration(tmp_path: Path) -> None:
    path = tmp_path / "c.xml"
    path.write_text(MODEL.format(vehicles=5, fleet='<buoy name="b" model="m" position="0 0 0 m"/>'))
    tables = area_tables(load(path))
    assert {n for t, n in tables["vehicles"] if t.name in ("state", "identity")} == {5}
    assert {t.name: n for t, n in tables["simulation"]}["clients"] == 5
