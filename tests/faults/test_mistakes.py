"""Mistakes of users: one clear message, the right exit code, no traceback, nothing left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.conftest import CLI, Server, new_wavesim, run_trial, wavesim
from wavesim_sdk.attach import SharedState
from wavesim_sdk.extras import COMMANDS
from wavesim_sdk.log import read
from wavesim_server.resources import AlreadyRunning, NameLock, remove_leftovers
from wavesim_world.config import LoadedConfig

pytestmark = pytest.mark.system
EMPTY = '<fleet><buoy name="b" model="buoy" position="0 0 5 m"/></fleet>'


def clear(done: subprocess.CompletedProcess[str], code: int, message: str) -> None:
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


@pytest.mark.parametrize("command", ["check", "serve", "trial"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('<wavesim><time stepp="1 ms"/></wavesim>', "c.xml:1: <time> has no key 'stepp'; did you mean 'step'?"),
        ('<wavesim>\n<time step="4"/></wavesim>', "c.xml:2: <time> step: '4' has no unit"),
        (
            '<wavesim><fleet><buoy name="a" model="bouy" position="0 0 0 m"/></fleet></wavesim>',
            "unknown model 'bouy'; did you mean 'buoy'?",
        ),
        ("<wavesim><time></wavesim>", "c.xml:1: not well-formed XML"),
        (
            '<!DOCTYPE w [<!ENTITY e SYSTEM "file:///etc/passwd">]><wavesim name="&e;"/>',
            "document types and entities are not allowed",
        ),
    ],
)
def test_bad_configuration(tmp_path: Path, command: str, text: str, message: str) -> None:
    (tmp_path / "c.xml").write_text(text)
    run = new_wavesim if "stepp" in text else wavesim  # each command once as a user starts it
    clear(run(command, tmp_path / "c.xml"), 2, message)


HULL = """<wavesim name="{name}"><time duration="1 s"/><models><model name="m" type="underwater"><cylinder length="2 m" radius="0.15 m"/><mass value="100 kg"/>
<inertia xx="5" yy="80" zz="81"/><added-mass diagonal="1 1 1 1 1 1"/><linear-drag diagonal="{drag} 90 100 30 40 50"/>{more}</model></models>
</wavesim>"""


@pytest.mark.parametrize("command", ["check", "serve", "trial"])
@pytest.mark.parametrize(
    ("drag", "more", "message"),
    [
        ("80", '<derivatives><derivative name="X_foo" value="1"/></derivatives>', "'X_foo'"),
        ("8e6", "", "is unstable"),
    ],
)
def test_a_model_that_cannot_be_simulated_is_refused_by_all_alike(
    tmp_path: Path, command: str, drag: str, more: str, message: str, name: str
) -> None:
    """Also by those that only look: nothing is found out later."""
    (tmp_path / "c.xml").write_text(HULL.format(name=name, drag=drag, more=more))
    done = wavesim(command, tmp_path / "c.xml", *(() if command == "check" else ("--port", "0")))
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    assert sum(message in line and "c.xml:1: " in line for line in done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.parametrize("command", ["check", "serve", "trial"])
@pytest.mark.parametrize(
    ("world", "name", "content", "message"),
    [
        ('<soundings file="d.ini"/>', "d.ini", "1 2 3\n4 5 nan\n", "d.ini:2: invalid sounding"),
        ('<soundings file="d.ini"/>', "d.ini", "", "d.ini: the file has fewer than three soundings"),
        (
            '<samples file="d.csv" latitude="0 deg" longitude="0 deg"/>',
            "d.csv",
            "latitude_degree,longitude_degree,depth_meter,sea_water_temperature_degC,sea_water_salinity_psu\n0,0,1,300,35\n",
            "d.csv:2: sea_water_temperature_degC is 300; use -5 to 45",
        ),
        ('<obstacles><mesh file="d.obj" position="0 0 5 m"/></obstacles>', "d.obj", "v 0 0 0\n", "d.obj: the mesh"),
    ],
)
def test_bad_data_files(tmp_path: Path, command: str, world: str, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    (tmp_path / "c.xml").write_text(f'<wavesim><time duration="1 s"/><world>{world}</world>{EMPTY}</wavesim>')
    clear(wavesim(command, tmp_path / "c.xml"), 2, message)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    clear(wavesim("serve", tmp_path / "none.xml"), 2, "cannot read the file: No such file or directory")
    clear(wavesim("log", "info", tmp_path / "none.mcap"), 6, "cannot read")
    clear(wavesim("plot", tmp_path / "none.mcap"), 6, "cannot read")


@pytest.mark.parametrize("command", ["start", "stop", "pause", "status", "shutdown"])
def test_no_server(command: str) -> None:
    clear(wavesim(command, "--server", "absent"), 3, "no server named 'absent' is running")


def test_an_emulator_without_a_server(config: Callable[..., LoadedConfig]) -> None:
    path = config(EMPTY.replace("<fleet>", "<fleet><sensors><ctd/></sensors>")).path
    clear(wavesim("emulate", "ctd", path, "--server", "absent"), 3, "no server named 'absent' is running; ")
    clear(wavesim("emulate", "cdt", path), 18, "unknown emulator 'cdt'; did you mean 'ctd'?")
    clear(
        wavesim("emulate", "cdt"), 18, "unknown emulator 'cdt'; did you mean 'ctd'?"
    )  # whatever there is of configurations
    binary = path.with_name("sea.conf")
    binary.write_bytes(b"\0")
    clear(wavesim("emulate", "ctd", binary), 2, "sea.conf:1: not well-formed XML")
    clear(wavesim("emulate", "ahrs", path), 18, "has a sensor of type 'ahrs'; allowed: ctd")


def test_a_program_without_a_server(root: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = root / "examples/onboard/usv.py"
    done = subprocess.run(
        [
            sys.executable,
            str(program),
            "--config",
            str(root / "config.xml"),
            "--vehicle",
            "jolner",
            "--port",
            str(port),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    clear(done, 5, f"no server answers at 127.0.0.1:{port}")


def test_two_servers_and_a_taken_port(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], name: str
) -> None:
    path = config(EMPTY).path
    server = serve(path)
    clear(
        wavesim("serve", path, "--name", name, "--port", "0"),
        7,
        f"a server named '{name}' is already running (process {server.process.pid})",
    )
    clear(
        wavesim("serve", path, "--name", name + "x", "--port", str(server.port)),
        8,
        f"cannot use UDP 127.0.0.1:{server.port}: Address already in use",
    )
    assert remove_leftovers(name + "x") == []
    assert server.status()["state"] == "stopped", "the first one did not notice"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_and_a_closed_terminal_end_a_server_cleanly(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], name: str, how: signal.Signals
) -> None:
    server = serve(config(EMPTY).path, "--start")
    server.process.send_signal(how)
    assert server.process.wait(60) == 0
    assert remove_leftovers(name) == []


def test_what_was_started_by_nohup_outlives_its_terminal(config: Callable[..., LoadedConfig], name: str) -> None:
    command = ["nohup", *CLI, "serve", str(config(EMPTY).path), "--name", name, "--port", "0"]
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        assert server.stderr is not None
        assert any(b"on UDP" in line for line in iter(server.stderr.readline, b""))
        server.send_signal(signal.SIGHUP)
        assert wavesim("start", "-s", name).returncode == 0
        state, begun = SharedState(name), time.monotonic()
        while time.monotonic() < begun + 0.5 or int(state.clock()["tick"]) < 10:  # many looks at what it was asked
            assert server.poll() is None and time.monotonic() < begun + 60.0
    finally:
        server.terminate()
        code = server.wait(60)
    assert code == 0 and remove_leftovers(name) == []


@pytest.mark.parametrize("after", ["starting", "simulated"])
def test_ctrl_c_in_a_trial(root: Path, tmp_path: Path, name: str, after: str) -> None:
    process = subprocess.Popen(
        [*CLI, "trial", str(root / "config.xml"), "--out", str(tmp_path), "--name", name, "--port", "0"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stderr is not None
    seen = b""
    while after.encode() not in seen:
        more = os.read(process.stderr.fileno(), 4096)
        assert more, seen
        seen += more
    time.sleep(0.3)  # somewhere inside that phase
    os.killpg(process.pid, signal.SIGINT)
    _, rest = process.communicate(timeout=100)  # a busy machine takes its time
    assert process.returncode == 130, rest
    assert b"Traceback" not in seen + rest and b"interrupted" in rest
    if after == "simulated":
        assert f"the log up to that point is {tmp_path / name / 'run.mcap'}" in rest.decode()
        assert read(tmp_path / name / "run.mcap").messages > 0
    assert remove_leftovers(name) == []
    left = subprocess.run(["pgrep", "-f", name], capture_output=True, text=True, check=False)
    assert left.stdout == ""


def test_a_program_that_fails_ends_the_trial_with_its_last_words(
    config: Callable[..., LoadedConfig], tmp_path: Path, name: str
) -> None:
    (tmp_path / "bad.py").write_text("raise SystemExit('my battery is empty')")
    path = config(
        '<time duration="1 s" pace="fast"/><fleet><vehicle name="a" model="lauv" position="0 0 5 m" client="required"><program run="bad.py"/></vehicle></fleet>'
    ).path
    clear(
        run_trial(path, tmp_path, name),
        10,
        "program-a exited with code 1 before the trial started: my battery is empty; all output: ",
    )


TYPO = """
import argparse
from wavesim_sdk.broker import Broker
parser = argparse.ArgumentParser()
parser.add_argument("--config"), parser.add_argument("--vehicle"), parser.add_argument("--port", type=int)
a = parser.parse_args()
with Broker(a.vehicle, ("127.0.0.1", a.port), lockstep=0.1) as broker:
    for step in broker.steps():
        if step.time > 0.25:
            broker.answer({"propellor": 1.0})
        broker.answer({"propeller": 1.0})
"""


@pytest.mark.parametrize("how", ["processes", "in process", "mixed"])
def test_a_program_that_fails_ends_the_trial_and_shows_its_line(
    config: Callable[..., LoadedConfig], tmp_path: Path, name: str, how: str
) -> None:
    """With the user's own line, although the error is raised in the SDK, and the place of all output."""
    (tmp_path / "typo.py").write_text(TYPO)
    (tmp_path / "good.py").write_text(TYPO.replace("propellor", "propeller"))
    other = ' own_process="yes"' if how == "mixed" else ""
    vehicle = (
        '<vehicle name="{0}" model="lauv" position="0 {1} 5 m" client="required"><program run="{2}"{3}/></vehicle>'
    )
    fleet = vehicle.format("a", 0, "typo.py", "") + vehicle.format("b", 50, "good.py", other)
    path = config(f'<time duration="9000 s" pace="fast"/><fleet>{fleet}</fleet>').path
    done = run_trial(path, tmp_path, name, *([] if how == "processes" else ["--in-process"]))
    assert done.returncode == 10 and "Traceback" not in done.stderr, done.stderr
    said = done.stderr.strip().splitlines()[-1]
    time_s = float(
        said.removeprefix("wavesim: program-a exited with code 1 after ").partition(" s and ended the trial")[0]
    )
    assert time_s == 0.3 if how == "in process" else 0.3 <= time_s < 600.0, said
    assert 'typo.py:10: broker.answer({"propellor": 1.0}): ' in said and "did you mean 'propeller'?" in said
    assert f"; all output: {tmp_path / name / 'program-a.txt'}; --keep-going continues" in said
    table = (tmp_path / name / "table.txt").read_text()
    assert "program-a ended early (code 1)\n          typo.py:10: broker.answer" in table
    assert "program-b ended" not in table and "onboard.py" not in table


def test_a_campaign_names_the_line_of_the_program(config: Callable[..., LoadedConfig], tmp_path: Path) -> None:
    (tmp_path / "typo.py").write_text(TYPO)
    config(
        '<time duration="9000 s" pace="fast"/><fleet><vehicle name="a" model="lauv" position="0 0 5 m" client="required"><program run="typo.py"/></vehicle></fleet>'
    ).path.rename(tmp_path / "base.xml")
    (tmp_path / "c.xml").write_text(
        '<campaign name="c" config="base.xml"><design kind="grid"/><run kind="trial"/><metric name="distance"/></campaign>'
    )
    done = wavesim("campaign", "run", tmp_path / "c.xml", "--out", tmp_path / "runs", "--quiet")
    assert done.returncode == 17, done.stderr
    assert (
        "ParticipantFailed: program-a exited with code 1 after 0.300 s and ended the trial: typo.py:10: " in done.stdout
    )
    assert Path(done.stdout.partition("all output: ")[2].partition(";")[0]).is_file()


def test_a_program_that_fails_in_mid_trial_stands_in_the_table(
    config: Callable[..., LoadedConfig], tmp_path: Path, name: str
) -> None:
    """With --keep-going the trial goes on to its end, which is no success; what the program printed last is in the table."""
    (tmp_path / "bad.py").write_text(
        "import sys\nfrom wavesim_sdk.broker import Broker\nprint('ready ' * 9999)\n"
        "with Broker('a', ('127.0.0.1', int(sys.argv[sys.argv.index('--port') + 1])), lockstep=0.1) as broker:\n"
        "    for _ in broker.steps():\n        raise SystemExit('my battery is empty\\nand so am I')\n"
    )
    path = config(
        '<time duration="2 s" pace="fast"/><fleet><vehicle name="a" model="lauv" position="0 0 5 m" client="required"><program run="bad.py"/></vehicle></fleet>'
    ).path
    done = run_trial(path, tmp_path, name, "--keep-going")
    assert done.returncode == 12 and "program-a ended early (code 1)" in done.stderr, done.stderr
    lines = (tmp_path / name / "table.txt").read_text().splitlines()
    at = lines.index("program-a ended early (code 1)")
    assert [t.strip() for t in lines[at + 2 : at + 4]] == ["my battery is empty", "and so am I"]
    assert max(map(len, lines)) < 250 and lines[0].startswith("2 s simulated"), lines


def test_a_program_that_hangs_in_mid_trial_stands_in_the_table(
    config: Callable[..., LoadedConfig], tmp_path: Path, name: str
) -> None:
    """The trial waits for it as long as the configuration says, goes on to its end without it, and is no success."""
    (tmp_path / "stuck.py").write_text(
        "import sys, threading\nfrom wavesim_sdk.broker import Broker\n"
        "with Broker('a', ('127.0.0.1', int(sys.argv[sys.argv.index('--port') + 1])), lockstep=0.1) as broker:\n"
        "    for step in broker.steps():\n        broker.answer({'propeller': 1.0})\n"
        "        if step.time > 0.5:\n            threading.Event().wait()\n"
    )
    path = config(
        '<time duration="2 s" pace="fast"/><network lockstep_timeout="0.4 s" keepalive_timeout="0.5 s" keepalive_period="0.1 s"/><fleet>'
        '<vehicle name="a" model="lauv" position="0 0 5 m" client="required"><program run="stuck.py"/></vehicle></fleet>'
    ).path
    done = run_trial(path, tmp_path, name)
    said = "'a' did not answer its step within 0.4 s, at 0.6 s"
    assert done.returncode == 12 and f"the trial is incomplete: {said}" in done.stderr, done.stderr
    table = (tmp_path / name / "table.txt").read_text()
    assert table.startswith("2 s simulated") and said in table


def test_an_unwritable_folder(config: Callable[..., LoadedConfig], tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    path = config('<time duration="1 s"/>' + EMPTY).path
    clear(wavesim("trial", path, "--out", tmp_path / "file", "--name", name, "--port", "0"), 1, "cannot write to")
    done = wavesim("serve", path, "--name", name, "--port", "0", "--log", tmp_path / "file" / "x.mcap")
    assert done.returncode == 6 and "cannot write the log" in done.stderr and "Traceback" not in done.stderr


def test_help_teaches() -> None:
    said = wavesim("--help").stdout
    assert "trial" in said
    offered = {c.name: c for entry in entry_points(group="wavesim.commands") for c in entry.load()()}
    assert {"serve", "trial", "emulate", "log", "plot", "check", "mailbox", "step"} <= set(offered)
    for name, command in offered.items():
        assert f"  {name} " in said
        assert len(CliRunner().invoke(command, ["--help"]).stdout) > 150, name
    assert wavesim("strat").returncode == 2


def test_a_command_of_a_package_that_is_not_installed_names_what_installs_it(tmp_path: Path) -> None:
    offered = {e.name: {str(c.name) for c in e.load()()} for e in entry_points(group="wavesim.commands")}
    assert set(COMMANDS) == {name for package, names in offered.items() if package != "sdk" for name in names}
    assert {name for name, needs in COMMANDS.items() if needs == "wavesim[studies]"} == offered["studies"]
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.metadata as m\nall_ = m.entry_points\n"
        "m.entry_points = lambda **w: [e for e in all_(**w) if 'wavesim_sdk' in e.value]\n"
    )
    env = os.environ | {"PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    for name, needs in (("campaign", "wavesim[studies]"), ("nav", "wavesim[studies]"), ("trial", "wavesim")):
        clear(wavesim(name, "x", env=env), 19, f"the command '{name}' is not installed: run pip install '{needs}'")
    assert "No such command 'campain'" in wavesim("campain", env=env).stderr


def test_ctrl_c_while_a_server_starts(config: Callable[..., LoadedConfig], name: str) -> None:
    path = config(EMPTY).path
    process = subprocess.Popen([*CLI, "serve", str(path), "--name", name, "--port", "0"], stderr=subprocess.PIPE)
    shared = Path("/dev/shm") / f"wavesim.{name}.simulation"
    limit = time.monotonic() + 60.0
    while not shared.exists():
        assert time.monotonic() < limit
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=90)
    assert b"Traceback" not in error
    assert process.returncode in (0, 130)
    assert remove_leftovers(name) == []


def test_ctrl_c_while_the_commands_are_loaded() -> None:
    """As the installed command begins, from the first of its imports on."""
    first = (
        "import sys; from wavesim_sdk import console\nclass Tell:\n    def find_spec(self, *_):\n"
        "        sys.meta_path.remove(self); print(flush=True)\nsys.meta_path.insert(0, Tell()); console.main()"
    )
    for wait in (0.0, 0.02, 0.1, 0.2):
        process = subprocess.Popen(
            [sys.executable, "-c", first, "check", "absent.xml"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        assert process.stdout is not None
        process.stdout.readline()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(wait)  # somewhere in there
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
        assert (process.returncode, error) == (130, "wavesim: interrupted\n") or "absent.xml" in error, error
        assert "Traceback" not in error


def test_the_lock_on_a_name_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    first = NameLock("x")
    with pytest.raises(AlreadyRunning, match=f"process {os.getpid()}"):
        NameLock("x")
    first.release()
    NameLock("x").release()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["serve", "trial"])
def test_a_machine_that_reorders_stores_gets_one_line(
    config: Callable[..., LoadedConfig], name: str, tmp_path: Path, command: str
) -> None:
    """`setarch` lets the system call itself another machine."""
    path = config('<time duration="1 s"/>' + EMPTY).path
    out = ["--out", str(tmp_path)] if command == "trial" else []
    done = subprocess.run(
        ["setarch", "i686", *CLI, command, str(path), "--name", name, "--port", "0", *out],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    clear(
        done,
        3,
        "shared memory requires an x86-64 processor, which preserves the order of memory writes; this processor is 'i686'",
    )
