"""Threads share independent work of bodies; the results do not depend on their number."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from wavesim_sdk.errors import ConfigError, WaveSimError
from wavesim_server import Simulation, compiling, threads
from wavesim_server.cli import serve
from wavesim_server.engine import process
from wavesim_server.serve import ProcessArguments, default_options
from wavesim_world.config import LoadedConfig, library

WORLD = """<time step="4 ms"/><shared vehicles="64" signals="16"/>
<world><bed depth="40 m"/><current north="0.2 m/s" tide_amplitude="0.1 m/s"/><wind speed="8 m/s" gusts="5"/>{waves}
<obstacles><block position="30 -12 5 m" size="4 9 18 m"/></obstacles></world>
<acoustics ambient_noise="60 dB"/>
<fleet>{lines}
<vehicle name="tug" model="lauv" position="0 600 20 m" speed="1 m/s"/><vehicle name="towed" model="remus100" position="-12 600 20 m"/>
<buoy name="hanging" model="buoy" position="0 630 0 m"><mooring anchor="0 630 40 m" length="39 m" stiffness="200 N/m"/></buoy>
</fleet>"""
LINE = """<line name="tow" length="14 m" diameter="10 mm" mass="0.1 kg/m" stiffness="5 kN" segments="4">
<end body="tug" position="-1 0 0 m"/><end body="towed" position="0.8 0 0 m"/></line>"""


def digests(loaded: LoadedConfig, count: int) -> tuple[list[str], int]:
    """Of all that a run computes and tells, every hundred ticks; and how many slept in the end."""
    sim = Simulation(loaded, threads=count)
    sim.tick_executor.threads.min_bodies = 0
    sim.enter_residents()
    models = sorted(library())
    first = f"v{models.index('lauv')}"
    for k in range(45):
        model = models[k % len(models)]
        deep = loaded.model(model).type == "underwater"
        row = sim.enter(f"v{k}", model, (120.0 * (k % 9), 100.0 * (k // 9), 12.0 if deep else 0.0), (0.0, 0.0, 0.3 * k))
        sim.command(row, [{0: 0.5, 1: 0.05}.get(a.kind) for a in sim.fleet.actuators(row)])
    for k in range(3):  # they will sleep
        sim.push(sim.enter(f"lying {k}", "lauv", (-50.0, 4.0 * k, 39.85)), (0.0, 0.0, 100.0))
    found = []
    for k in range(9):
        lauv = sim.row_of(first if k < 5 else "tug")
        assert lauv is not None
        sim.ping(lauv, 25e3)
        if k == 5:
            sim.leave(lauv := sim.row_of(first) or 0)
            sim.fail(sim.row_of("tug") or 0, 0, "frozen", 0.3)
        sim.advance(100)
        outputs = [
            table.tobytes()
            for table in (*sim.take_signals(), sim.state(), sim.actuation(), sim.results.lines(), sim.results.effort())
        ]
        found.append(
            hashlib.sha256(
                b"".join([*outputs, sim.fleet.blocks.tobytes(), repr(sim.take_meetings()).encode()])
            ).hexdigest()
        )
    return found, int(sim.contacts.memory.sleep.asleep_count[0])


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("waves", "lines", "sleepers"),
    [("", "", 3), ('<waves height="1 m"/>', LINE, 0)],
    ids=["sleepers", "a line in waves"],
)
def test_the_same_bits_by_any_number_of_threads(
    config: Callable[..., LoadedConfig], monkeypatch: pytest.MonkeyPatch, waves: str, lines: str, sleepers: int
) -> None:
    """Fails with a body that is left out or looked at twice, a speed that a share does not tell, or anything of a tick out of its
    order."""
    monkeypatch.setattr(threads, "BLOCKS_AT_A_TIME", 2)  # three threads have some blocks each
    loaded = config(WORLD.format(waves=waves, lines=lines))
    one, asleep = digests(loaded, 1)
    assert asleep == sleepers and len(set(one)) == len(one)
    for count in (2, 3):
        assert digests(loaded, count) == (one, asleep), count


def test_the_engine_of_a_server_has_as_many_as_were_asked_for(
    config: Callable[..., LoadedConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails where the command line's word is lost on the way."""
    seen = []

    def refusing(loaded: LoadedConfig, seed: int, threads: int) -> None:
        seen.append(threads)
        raise ConfigError("enough")

    monkeypatch.setattr(process, "Simulation", refusing)
    options = default_options(config(""), None, None, "", None, None, threads=3)
    with pytest.raises(SystemExit):
        process.main(ProcessArguments(config(""), options, 0, 0, 0))
    assert seen == [3]


def test_a_server_of_several_threads_has_their_kernels_before_it_starts(
    config: Callable[..., LoadedConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails where the engine would compile them, without reporting why it takes so long."""
    seen = []

    def refusing(threads: int, hydrophones: bool) -> None:
        seen.append((threads, hydrophones))
        raise ConfigError("enough")

    monkeypatch.setattr(compiling, "ensure_compiled", refusing)
    refused = CliRunner().invoke(serve, [str(config("").path), "--threads", "3"]).exception
    assert isinstance(refused, ConfigError)
    assert seen == [(3, False)]


def test_kernels_of_several_threads_are_compiled_once_and_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for Python notes what it is asked to run, and leaves the records of the compiler."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    records = {count: compiling.completion_record(count) for count in (1, 2)}
    records[1].path.parent.mkdir(parents=True)
    source = tmp_path / "kernel.py"
    source.write_text("a kernel")
    for count, record in records.items():
        record.write([str(source)])
        record.path.rename(tmp_path / f"record{count}")
    program = tmp_path / "program"
    copies = [f"cp {tmp_path}/record{count} {record.path}" for count, record in records.items()]
    program.write_text(
        f"#!/bin/sh\necho $* >> {tmp_path}/asked\n[ $(cat {tmp_path}/code) = 0 ] || exit 1\n"
        f"{copies[0]}\n[ $3 = 1 ] || {copies[1]}\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    said: list[str] = []
    (tmp_path / "code").write_text("1")
    with pytest.raises(WaveSimError, match="could not be compiled"):
        compiling.ensure_compiled(said.append)
    (tmp_path / "code").write_text("0")
    for count in (1, 1, 2, 3):
        compiling.ensure_compiled(said.append, count)
    asked = [line.split()[-2:] for line in (tmp_path / "asked").read_text().splitlines()]
    assert asked == [["wavesim_server.compiling", count] for count in ("1", "1", "2")]
    assert ["multi-threaded" in text for text in said] == [False, False, True]
    for record in records.values():
        record.path.unlink()
    compiling.ensure_compiled(said.append, 2)
    assert all(record.is_current() for record in records.values())
    said.clear()
    source.write_text("another kernel")
    compiling.ensure_compiled(said.append, 2)
    assert said == ["compiling the kernels (once, about a minute)"]


def test_only_a_changed_kernel_is_announced_as_a_compilation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program also starts when another module of the same packages has changed, because of the constants in it."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    record = compiling.completion_record(1)
    record.path.parent.mkdir(parents=True)
    record.write([str(Path(threads.__file__))])
    assert record.is_current()
    known = json.loads(record.path.read_text())
    assert str(Path(compiling.__file__)) in known["imports"]
    known["imports"][str(Path(compiling.__file__))] = "another"
    record.path.write_text(json.dumps(known))
    assert not record.is_current() and record.has_current_functions()
    known["installed"]["extensions"] = ["a term of another package"]
    record.path.write_text(json.dumps(known))
    assert not record.has_current_functions()


def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "cache"))
    said: list[str] = []
    compiling.ensure_compiled(said.append)
    assert said == [
        f"cannot store kernels in {tmp_path}/file/cache, so each process compiles its own; set NUMBA_CACHE_DIR"
    ]
