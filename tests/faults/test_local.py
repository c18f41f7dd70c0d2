"""Other users of the machine, and foreign configurations: our files are not overwritten, and not read for others."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CLI, wavesim
from wavesim_sdk.commander import Commander
from wavesim_sdk.errors import ConfigError, WaveSimError
from wavesim_sdk.shared_memory import segment_name
from wavesim_server.dynamics.hull_mesh import hull_of
from wavesim_server.environment.exposure import read_operators
from wavesim_server.resources import NameLock, remove_leftovers
from wavesim_server.serve import default_options
from wavesim_world import data_files
from wavesim_world.config import LoadedConfig, allow_files, load
from wavesim_world.config.standalone_xml import load_standalone
from wavesim_world.file_access import FILES_VARIABLE, allowed_folders

FLEET = '<fleet><vehicle name="v" model="lauv" position="0 0 9 m" client="optional">{0}</vehicle></fleet>'


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "runtime"
    folder.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    return folder


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_lock_follows_no_link(runtime: Path, tmp_path: Path, link: Callable[[Path, Path], None]) -> None:
    """In a folder where everybody may write, somebody else may have put it there: what it leads to was overwritten."""
    precious = tmp_path / "precious"
    precious.write_text("mine")
    link(precious, runtime / f"wavesim-{os.getuid()}-x.lock")
    with pytest.raises(WaveSimError, match="the lock"):
        NameLock("x")
    assert precious.read_text() == "mine"


def test_a_lock_is_a_file_of_this_user(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(runtime / f"wavesim-{os.getuid()}-x.lock")
    with pytest.raises(WaveSimError, match="belongs to another user or is not a regular file"):
        NameLock("x")
    monkeypatch.setattr(os, "getuid", lambda: 4242)  # to whom the file that is made then does not belong
    with pytest.raises(WaveSimError, match="belongs to another user or is not a regular file"):
        NameLock("x")


def test_a_lock_is_nobody_elses(runtime: Path) -> None:
    (runtime / f"wavesim-{os.getuid()}-x.lock").mkdir()
    with pytest.raises(WaveSimError, match="cannot create the lock file"):
        NameLock("x")
    lock = NameLock("y")
    assert (runtime / f"wavesim-{os.getuid()}-y.lock").stat().st_mode & 0o777 == 0o600
    lock.release()


@pytest.mark.parametrize("name", ["a/b", "-x", "", ".", "a.b", "*", "a b", "x" * 65, "\u6c34", "a\0b", "../x"])
def test_what_is_no_name_of_a_server(name: str) -> None:
    for use in (NameLock, Commander, remove_leftovers, lambda n: segment_name(n, "vehicles")):
        with pytest.raises(ConfigError, match="invalid server name"):
            use(name)


def test_a_bad_name_is_one_line(config: Callable[..., LoadedConfig]) -> None:
    for arguments in (["serve", config(FLEET.format("")).path, "--name", "a/b"], ["status", "-s", "a/b"]):
        done = wavesim(*arguments)
        assert done.returncode == 2 and "invalid server name 'a/b'" in done.stderr and "Traceback" not in done.stderr


MODEL = """<models><model name="m" type="buoy"><sphere diameter="0.1 m"/><mass value="1000 kg"/>
<inertia xx="1" yy="1" zz="1"/><buoyancy volume="1 m3"/>{}<added-mass diagonal="0 0 0 0 0 0"/>
<linear-drag diagonal="0 0 0 0 0 0"/><quadratic-drag diagonal="0 0 0 0 0 0"/></model></models>"""
AROUND = 'latitude="1 deg" longitude="1 deg"'
NAMED = [  # every key that names a file to read, and the ending of such files
    ('<world><soundings file="{0}"/></world>', ".txt"),
    (f'<world><volume file="{{0}}" {AROUND}/></world>', ".csv"),
    (f'<world><samples file="{{0}}" {AROUND} radius="9 m"/></world>', ".csv"),
    ('<world><obstacles><mesh file="{0}" position="0 0 5 m"/></obstacles></world>', ".obj"),
    ('<acoustics profile="file" file="{0}"/>', ".txt"),
    ('<network keys="{0}"/>', ".txt"),
    (MODEL.format('<hull file="{0}"/>'), ".stl"),
    (MODEL.format('<rao file="{0}"/>'), ".csv"),
]


def check(path: Path) -> None:
    loaded = load(path)
    data_files.check(loaded)
    for model in loaded.models.values():
        hull_of(model)
        if model.rao is not None:
            read_operators(model, model.rao)


@pytest.mark.parametrize("where", ["absolute", "above", "link"])
@pytest.mark.parametrize(("inner", "ending"), NAMED, ids=range(len(NAMED)))
def test_a_configuration_names_no_file_outside_of_its_folder(
    tmp_path: Path, inner: str, ending: str, where: str
) -> None:
    """Unless the user allows it; and then a message does not show what is in the file."""
    secret = tmp_path / f"secret{ending}"
    secret.write_text("the hidden word\n")
    secret.chmod(0o600)
    folder = tmp_path / "foreign"
    folder.mkdir()
    (folder / f"link{ending}").symlink_to(secret)
    name = {"absolute": str(secret), "above": f"../secret{ending}", "link": f"link{ending}"}[where]
    (folder / "c.xml").write_text(f"<wavesim>{inner.format(name)}</wavesim>")
    with pytest.raises(ConfigError, match="is outside") as refused:
        check(folder / "c.xml")
    assert "hidden" not in str(refused.value)
    with allow_files(tmp_path), pytest.raises(WaveSimError) as refused:  # now it is read, and it is none
        check(folder / "c.xml")
    assert "is outside" not in str(refused.value) and "hidden" not in str(refused.value)


@pytest.mark.parametrize("how", ["option", "variable"])
def test_the_user_allows_a_folder(tmp_path: Path, how: str) -> None:
    (tmp_path / "bed.txt").write_text("0 0 9\n0 9 9\n9 0 9\n")
    (folder := tmp_path / "foreign").mkdir()
    (folder / "c.xml").write_text(f"<wavesim>{NAMED[0][0].format('../bed.txt')}</wavesim>")
    refused = wavesim("check", folder / "c.xml", cwd=tmp_path)
    assert refused.returncode == 2 and "allow access to the file's folder: --files ." in refused.stderr
    if how == "option":
        done = wavesim("check", "foreign/c.xml", "--files", ".", cwd=tmp_path)
    else:
        done = wavesim("check", "foreign/c.xml", cwd=tmp_path, env=os.environ | {FILES_VARIABLE: "absent:."})
    assert done.returncode == 0, done.stderr


def test_the_former_key_is_refused_with_the_option_that_replaces_it(tmp_path: Path) -> None:
    (tmp_path / "c.xml").write_text('<wavesim files="/"/>')
    with pytest.raises(ConfigError, match=r"c\.xml:1: .*cannot grant itself .*--files FOLDER or WAVESIM_FILES"):
        load(tmp_path / "c.xml")
    assert load_standalone('<wavesim files="/"/>')[0].config.name == "wavesim", "a log of a former release"


def test_allowed_folders_end_with_the_block_and_keep_their_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(FILES_VARIABLE, "a")
    with allow_files("b"):
        monkeypatch.chdir("/")
        assert allowed_folders() == (tmp_path / "a", tmp_path / "b")
    assert os.environ[FILES_VARIABLE] == "a"
    with pytest.raises(ConfigError, match="must not contain ':'"), allow_files("a:b"):
        pass


def test_a_configuration_starts_no_program_and_writes_no_log_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "foreign"
    folder.mkdir()
    (tmp_path / "x.py").write_text("raise SystemExit(77)")
    for element in ('<program run="../x.py"/>', '<device run="../x.py"/>'):
        body = FLEET.format(element).replace("optional", "required")
        (folder / "c.xml").write_text(f'<wavesim name="local{os.getpid()}"><time duration="1 s"/>{body}</wavesim>')
        done = wavesim("trial", folder / "c.xml", "--port", "0", "--no-plots", "--out", tmp_path / "out")
        assert done.returncode == 2 and "'../x.py' is outside" in done.stderr and "Traceback" not in done.stderr
    for file, good in ((str(tmp_path.parent / "a.mcap"), False), ("../a.mcap", False), ("runs/a.mcap", True)):
        (folder / "c.xml").write_text(f'<wavesim><log file="{file}"/></wavesim>')
        if good:
            assert default_options(load(folder / "c.xml"), None, None, None, None, None).log == str(tmp_path / file)
            continue
        with pytest.raises(ConfigError, match="outside the working folder"):
            default_options(load(folder / "c.xml"), None, None, None, None, None)
        assert default_options(load(folder / "c.xml"), None, None, file, None, None).log, "the user's own word counts"


def test_keys_are_not_added_to_a_file_that_others_read(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    assert wavesim("keys", path).returncode == 0 and path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    before = path.read_text()
    done = wavesim("keys", path)
    assert done.returncode == 2 and "other users may read this key file" in done.stderr and path.read_text() == before


@pytest.mark.parametrize(
    "most", [6, 8, 10, 12]
)  # what does not get one: supervisor, its start of others, the rings, the front's loop
def test_too_few_descriptors_are_one_line(config: Callable[..., LoadedConfig], name: str, most: int) -> None:
    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

    done = wavesim("serve", config(FLEET.format("")).path, "--name", name, "--port", "0", preexec_fn=few)
    assert done.returncode != 0 and "Traceback" not in done.stderr and "Too many open files" in done.stderr, done.stderr
    assert remove_leftovers(name) == []


def test_shared_memory_that_nobody_may_write_is_one_line(config: Callable[..., LoadedConfig], name: str) -> None:
    path = config(FLEET.format("")).path
    inside = [
        "unshare",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        'mount -t tmpfs -o ro none /dev/shm && exec "$@"',
        "-",
    ]
    if shutil.which("unshare") is None or subprocess.run([*inside, "true"], capture_output=True).returncode:
        pytest.skip("needs a mount namespace of its own")
    common = [str(path), "--name", name, "--port", "0"]
    for command in (
        ["serve", *common],
        ["trial", *common, "--duration", "1", "--no-plots", "--out", str(path.parent / "out")],
    ):
        done = subprocess.run([*inside, *CLI, *command], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
        assert "cannot create the server's shared memory (/dev/shm): " in done.stderr
        assert "Read-only file system" in done.stderr.splitlines()[-1]
