"""Commands and code of the documents. Tutorials are followed step by step. Every code block of the other pages is run,
read or parsed here, or listed in ``ELSEWHERE`` with a reason.
"""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
import trimesh
from lxml import etree
from scipy.io import wavfile

from tests.conftest import Server
from tests.examples.pages import Block, all_blocks, at_desk, differs, page_blocks
from tests.nursery import launch
from wavesim_sdk.cli_numbers import NumbersCommand, protect_negative_numbers
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.frame_rings import FrameReader
from wavesim_world.config import load
from wavesim_world.config.build import read_models

TUTORIALS = "docs/tutorials/"
#: tutorials, and the servers that they name
NAMES = {
    "vehicle": "firstdive",
    "sensor": "pond",
    "own-device": "basin",
    "trial": "lake",
    "study": "",
    "lake": "",
    "hil": "harbour",
    "modem": "net",
    "control": "dive",
    "ros": "pool",
    "navigation": "lbl",
}
#: tutorials that a test of their own follows, because their reader also acts on the page or needs a program that is not here
ON_THE_PAGE = {"hydrophones": "test_bearing.py", "rov": "test_rov_page.py", "ardupilot": "test_ardupilot_page.py"}
#: blocks that nothing here runs or reads: page and how the block begins -> why
ELSEWHERE = {
    ("docs/glossary.md", "above"): "a list of words; docs/glossary.py reads it",
    ("README.md", "900 s simulated"): "a picture of a table",
    ("docs/ocean.md", "[Temperature]"): "tests/sdk/test_sample_files.py reads it",
    ("docs/devices.md", "import wlsonar"): "tests/devices/test_waterlinked_sonar.py does the same",
    ("docs/decisions.md", "before  "): "routes of data; benchmarks/routes.py traces them",
    ("docs/models.md", "import json"): "tests/studies/test_linear_models.py runs it",
    ("docs/models.md", "m = load"): "needs MATLAB",
    ("README.md", "from contextlib"): "test_readme.py runs it",
    ("README.md", "from wavesim_sdk"): "test_readme.py runs it",
    ("README.md", "python "): "test_readme.py runs it",
    ("README.md", "server "): "test_readme.py compares it",
    ("README.md", "... s"): "test_readme.py compares it",
    ("docs/PROTOCOL.md", "client     "): "a drawing",
    ("docs/PROTOCOL.md", "emulator   "): "a drawing",
    ("docs/PROTOCOL.md", "key = 0001"): "tests/protocol opens what is sealed",
    ("docs/PROTOCOL.md", "HELLO 5756"): "written by docs/generate.py; tests/protocol reads the vectors",
    ("docs/PROTOCOL.md", "KEEPALIVE with"): "written by docs/generate.py; tests/protocol reads the vectors",
    ("docs/bridges/dune.md", "[Require lauv"): "DUNE's own configuration",
    ("docs/bridges/dune.md", "[Require auv"): "DUNE's own configuration",
    ("docs/bridges/dune.md", "[Navigation.AUV"): "DUNE's own configuration",
    ("docs/network.md", "wavesim keys"): "three lines for three places; tests/sdk runs the first",
    ("docs/hydrophones.md", "<acoustics>"): "tests/world/test_measured_channels.py reads the same",
    (
        "docs/hydrophones.md",
        "import numpy as np\nfrom wavesim import Broker",
    ): "tests/e2e/test_transmit.py plays a sound likewise",
    ("docs/hydrophones.md", "import h5py"): "tests/world/test_measured_channels.py runs it, with the extra package",
    ("docs/networks.md", "import library"): "test_mac.py does the same",
    ("docs/broker.md", "1110.62 m"): "test_broker_page.py compares it",
    ("docs/janus.md", "    0.0313 s"): "test_janus_page.py compares it",
    ("docs/LOG.md", "from wavesim"): "tests/sdk/test_log_tables.py runs it",
    ("docs/trials.md", "coverage run"): "tests/in_process/test_stopping.py runs coverage",
    ("docs/campaigns.md", "<campaign name"): "tests/studies/test_campaign.py reads it",
    (
        "docs/learning.md",
        "from stable_baselines3",
    ): "tests/judges/test_trainers.py does the same with the packages",
    ("docs/identify.md", "<trial"): "tests/data/test_identification.py reads the same map",
    ("docs/navigation.md", "<import"): "tests/studies/test_foreign_logs.py reads it",
    (
        "docs/exam.md",
        "import sys",
    ): "tests/studies/test_exam.py runs examples/exam/live_filter.py, which has the same form",
    ("docs/real-trials.md", "from pathlib"): "tests/studies/test_field_trials.py does the same with a simulated trial",
    ("docs/extending.md", '<term name="drogue"'): "test_extending.py puts it where it belongs",
    ("docs/extending.md", "<actuator name"): "test_extending.py puts it where it belongs",
}
IN_TRIALS = "docs/broker.md"  #: page whose programs tests/examples/test_broker_page.py runs, each in a trial
#: modules of a ROS 2 installation
ROS = {"rclpy.node", "nav_msgs.msg", "sensor_msgs.msg", "geometry_msgs.msg"}
#: programs of others in blocks of commands
FOREIGN = {"ardusub", "dask", "dune", "pAntler", "pip", "ros2", "export", "PX4_SIM_MODEL=none"}


def of_others(root: Path) -> list[Block]:
    """The blocks of all pages but the tutorials."""
    return [b for b in all_blocks(root) if not b.page.startswith(TUTORIALS)]


def listed(block: Block) -> tuple[str, str] | None:
    return next((key for key in ELSEWHERE if key[0] == block.page and block.text.startswith(key[1])), None)


def is_commands(block: Block) -> bool:
    """Commands alone, of ours, of make, or of programs that are not ours."""
    lines = block.text.replace("\\\n", " ").splitlines()  # a command may continue on the next line
    first = {line.split()[0] for line in lines if line.strip()}
    return block.language in ("", "sh") and first <= {"wavesim", "make", *FOREIGN}


def is_xml(block: Block) -> bool:
    return block.language == "xml" or block.text.startswith("<")


def test_no_block_is_left_out(root: Path) -> None:
    blocks, seen = of_others(root), set()
    for block in blocks:
        if key := listed(block):
            seen.add(key)
        else:
            known = block.language in ("python", "toml") or is_commands(block) or is_xml(block) or is_rules(block)
            assert known, f"nobody runs or reads this block: {block}"
    assert seen == ELSEWHERE.keys(), "a block that is listed is there no more"
    assert len(blocks) > 50


def is_rules(block: Block) -> bool:
    """Rules of alarms."""
    return block.page == "docs/viewer.md" and not is_commands(block)


# ------------------------------------------------------------------ tutorials


@pytest.mark.long
@pytest.mark.system
@pytest.mark.timeout(600)
@pytest.mark.parametrize("tutorial", NAMES)
def test_tutorials_are_true(root: Path, tmp_path: Path, name: str, tutorial: str) -> None:
    """Every file, command and cell, in order; what is shown is what comes."""
    with ros_variables(root, tmp_path / "ros") if tutorial == "ros" else nullcontext({}) as variables:
        follow(root, tmp_path, name, tutorial, variables)


@contextmanager
def ros_variables(root: Path, folder: Path) -> Iterator[dict[str, str]]:
    """A DDS domain of its own, and a stand-in for rclpy."""
    pytest.importorskip("cyclonedds")
    from tests.bridges import ros2
    from tests.examples.ros import rclpy_standin

    rclpy_standin.install(folder)
    for domain in ros2.domains():
        path = os.pathsep.join([str(folder), str(root), os.environ.get("PYTHONPATH", "")])
        yield {"ROS_DOMAIN_ID": str(domain), "PYTHONPATH": path}


def follow(root: Path, tmp_path: Path, name: str, tutorial: str, variables: dict[str, str]) -> None:
    word = NAMES[tutorial]
    blocks = page_blocks(root, f"{TUTORIALS}{tutorial}.md")
    assert {b.language for b in blocks} <= {"sh", "python", "text", "xml", "toml"} and len(blocks) > 5
    with at_desk(tmp_path, {word: name} if word else {}, variables) as follower:
        follower.follow(blocks)


def test_each_tutorial_is_followed(root: Path) -> None:
    pages = {path.stem for path in (root / TUTORIALS).glob("*.md")}
    assert pages - {"index"} == NAMES.keys() | ON_THE_PAGE.keys()
    assert all((root / "tests/examples" / test).is_file() for test in ON_THE_PAGE.values())


@pytest.mark.parametrize(
    ("shown", "found"),
    [("1.50 m", "1.45 m"), ("way 3", "ways 3"), ("a\nb", "a\nc\nb"), ("3 of 4", "3 of 5"), ("x", "")],
)
def test_what_is_shown_and_does_not_come(shown: str, found: str) -> None:
    assert differs(shown, found)
    assert not differs(shown, shown) and not differs("...", found)


# ------------------------------------------------------------------ commands


def test_commands_of_the_documents(root: Path) -> None:
    commands = {c.name: c for entry in entry_points(group="wavesim.commands") for c in entry.load()()}
    whole = click.Group("wavesim", commands={str(k): c for k, c in commands.items()})
    (phony,) = re.findall(r"^\.PHONY: (.*)$", (root / "Makefile").read_text(), re.MULTILINE)
    targets = set(phony.split())
    seen = 0
    for block in all_blocks(root):
        if block.language not in ("", "sh"):
            continue
        for target in re.findall(r"^make ([\w-]+)", block.text, re.MULTILINE):
            assert target in targets, f"{block}: there is no target {target}"
        for line in re.findall(r"(?:^|&& )wavesim (.*)", block.text, re.MULTILINE):
            words = shlex.split(re.split(r"\s#|\s{3,}|&&|[|>] |\.\.\.", line)[0].rstrip(" \\"))
            at: click.Command = whole
            while isinstance(at, click.Group) and words:
                found = at.get_command(click.Context(at), words[0])
                assert found is not None, f"{block.page}: there is no command '{words[0]}' in: wavesim {line}"
                at, words = found, words[1:]
            context = click.Context(at, info_name=at.name)
            try:
                _, left, _ = at.make_parser(context).parse_args(
                    protect_negative_numbers(words) if isinstance(at, NumbersCommand) else words
                )
            except click.UsageError as error:
                pytest.fail(f"{block.page}: wavesim {line}: {error.message}")
            assert not left or context.ignore_unknown_options or at.ignore_unknown_options, (
                f"{block.page}: {line}: {left}"
            )
            seen += 1
    assert seen > 60


# ------------------------------------------------------------------ programs


def programs(root: Path, *pages: str) -> list[Block]:
    """Those that are run here: of these pages, or of all but those that need a server."""
    found = [b for b in of_others(root) if b.language == "python" and not listed(b)]
    return [b for b in found if (b.page in pages if pages else b.page not in {*LIVE, IN_TRIALS})]


def run(block: Block, names: dict[str, Any]) -> None:
    """A program of a page, with the names that it takes as given."""
    code = compile(block.text, block.page, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if code.co_flags & inspect.CO_COROUTINE:
        asyncio.run(eval(code, names))
    else:
        exec(code, names)


def test_programs_find_what_they_import(root: Path) -> None:
    blocks = all_blocks(root)
    files = {(b.page, Path(b.title).stem) for b in blocks if b.title.endswith(".py")}  # that the page itself writes
    for block in blocks:
        if block.language != "python" or listed(block):
            continue
        for node in ast.walk(
            compile(block.text, block.page, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        ):
            if isinstance(node, ast.ImportFrom) and node.module and node.module != "vehicles":  # of `wavesim stubs`
                if (block.page, node.module) in files or node.module in ROS:
                    continue
                module = importlib.import_module(node.module)
                for name in node.names:
                    known = hasattr(module, name.name) or importlib.util.find_spec(f"{node.module}.{name.name}")
                    assert known, f"{block}: {node.module} has no {name.name}"


def voyage() -> dict[str, Any]:
    """What docs/navigation.md takes as given: where it starts, the samples of instruments, a folder with tables of another
    program, and an estimate.
    """
    from tests.studies.test_foreign_logs import tables
    from tests.studies.voyage import Voyage, logged

    o, rng = Voyage(40.0, 50.0), np.random.default_rng(1)
    slow = Voyage(40.0, 10.0)
    kept = tempfile.TemporaryDirectory()
    folder = tables(logged(slow), Path(kept.name) / "sea")
    k = slow.every(0.2)
    return {
        "p": o.p[0],
        "v": o.v[0],
        "q_WB": o.q[0],
        "imu": o.imu,
        "kept": kept,
        "folder": folder,
        "t": slow.t,
        "angles": slow.angles(slow.t)[0],
        "rates": slow.w,
        "t_dvl": slow.t[k],
        "v_dvl": slow.along(k, (0.4, 0.0, 0.1)),
        "p_true": o.p,
        "q_true": o.q,
        "p_estimated": o.p + 0.3 * rng.standard_normal(o.p.shape),
        "q_estimated": o.q,
        "covariance": np.tile(0.09 * np.eye(2), (len(o.p), 1, 1)),
    }


GIVEN: dict[str, Callable[[], dict[str, Any]]] = {  #: names that a page's programs take as given
    "docs/ocean.md": lambda: {
        "p_W": np.array([[0.0, 0.0, 5.0], [10.0, 0.0, 20.0]]),
        "time_s": 3.0,
        "north": 5.0,
        "east": -5.0,
        "origins": np.array([[0.0, 0.0, 5.0]]),
        "directions": np.array([[0.0, 0.0, 1.0]]),
    },
    "docs/navigation.md": voyage,
}


def test_programs_run(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    blocks = programs(root)
    assert {b.page for b in blocks} >= GIVEN.keys() | {"docs/models.md", "docs/studies.md", "docs/learning.md"}
    for block in blocks:
        run(block, GIVEN.get(block.page, dict)())


# ------------------------------------------------------------------ programs beside a server

SEA = """<time step="10 ms" duration="6 s" pace="fast"/><world latitude="41.18 deg" longitude="-8.70 deg"><bed depth="12 m"/></world>
<network><grant to="referee" role="observer" rights="fault fence" others="yes"/></network>
<fleet>
  <vehicle name="lauv" model="lauv" position="0 0 1 m"><sensors><ctd/><gps rate="5 Hz" position="0 0 -3 m"/></sensors></vehicle>
  <vehicle name="auv" model="lauv" position="0 9 6 m"><sensors>
    <sonar name="side" preset="starfish-450" range="20 m" rate="10 Hz" bins="400"/>
    <camera name="eye" rate="5 Hz" width="80" height="60" depth="yes"/></sensors></vehicle>
  <vehicle name="jolner" model="jolner" position="0 20 0 m"/>
</fleet>"""
#: pages whose programs need a server -> how many they are
LIVE = {
    "docs/SHARED_MEMORY.md": 1,
    "docs/network.md": 2,
    "docs/sonars.md": 2,
    "docs/camera.md": 1,
    "docs/missions.md": 1,
}


@pytest.fixture
def emulators(config: Callable[..., Any], serve: Callable[..., Server], name: str) -> Iterator[Server]:
    """A server that stands still after a fifth of a second, and all emulators of its fleet, whose kernels are compiled."""
    path = config(SEA).path
    server = serve(path)
    watched = launch("emulate", "all", path, "-s", name, stderr=subprocess.PIPE)
    try:
        assert watched.stderr is not None
        for _ in range(5):  # how many there are, and each
            watched.stderr.readline()
        server.send("step", ticks=20)
        eyes = [FrameReader.open(name, "auv", eye) for eye in ("side", "eye")]
        limit = time.monotonic() + 100.0
        while any(eye.rings.done[eye.ring] == 0 for eye in eyes):
            assert time.monotonic() < limit, [int(eye.rings.done[eye.ring]) for eye in eyes]
            time.sleep(0.02)
        yield server
    finally:
        watched.terminate()
        watched.wait(20)
        assert watched.stderr is not None
        watched.stderr.close()


@pytest.mark.system
@pytest.mark.timeout(300)
def test_programs_beside_a_server_run(
    root: Path, emulators: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two that go on until the run ends, and four that look at what is there then."""
    name, port = emulators.name, emulators.port
    monkeypatch.setenv("WAVESIM_SERVER", name)
    found = programs(root, *LIVE)
    assert {page: sum(b.page == page for b in found) for page in LIVE} == LIVE
    blocks = [b._replace(text=b.text.replace('"demo"', repr(name)).replace("9750", str(port))) for b in found]
    during = [b for b in blocks if "Broker(" in b.text]
    after = [b for b in blocks if b not in during]
    failed: list[BaseException] = []
    names: list[dict[str, Any]] = [{} for _ in during]

    def go(block: Block, given: dict[str, Any]) -> None:
        try:
            run(block, given)
        except BaseException as error:  # reported by the test
            failed.append(error)

    threads = [threading.Thread(target=go, args=(b, n)) for b, n in zip(during, names, strict=True)]
    for thread in threads:
        thread.start()
    emulators.wait(lambda s: bool(failed) or s["clients_total"] == len(during))
    assert not failed, failed
    emulators.send("start")
    for thread in threads:
        thread.join(120)
    assert not failed and not any(t.is_alive() for t in threads), failed
    assert any(n["frame"].samples.size for n in names if "frame" in n), "frames came over the network"
    given: dict[str, Any] = {}
    for block in sorted(after, key=lambda b: b.page == "docs/network.md"):
        if block.page == "docs/camera.md":
            given["frame"] = FrameReader.open(name, "auv", "eye").next()
            assert given["frame"].depth is not None
        run(block, given)
    assert "frame" in given and given["reader"].last_read > 3
    output = capsys.readouterr().out
    assert re.search(r"^0\.71\d* -0\.15\d*$", output, re.MULTILINE), "the GPS receiver's program, in rad"
    assert "' of 'jolner' starting at" in output and "b'lauv'" in output


# ------------------------------------------------------------------ configurations

#: a model to which a block adds an element
MODEL = """<models><model name="m" type="surface"><box length="4 m" width="1 m" height="1 m"/><mass value="900 kg"/>
  <inertia xx="200" yy="800" zz="800"/><buoyancy volume="0.9 m3"/>
  <added-mass diagonal="50 400 400 10 200 200"/>{}</model></models>"""
FLEET = '<fleet><vehicle name="v" model="lauv" position="0 0 5 m">{}</vehicle></fleet>'


def test_pieces_of_configurations_are_read(root: Path, tmp_path: Path) -> None:
    """By the real reader: those of the world and the server as they stand, those of a model or a vehicle by their instruments."""
    seen = 0
    trimesh.creation.box().export(tmp_path / "wreck.stl")
    item = {"type": "SimpleItem", "command": 16, "frame": 1, "params": [0, 0, 0, None, 50, 10, 0]}
    (tmp_path / "survey.plan").write_text(json.dumps({"fileType": "Plan", "mission": {"items": [item]}}))
    shutil.copy(root / "examples/trials/front-water.csv", tmp_path)
    (tmp_path / "line.csv").write_text("x,y,z\n-0.5,0,0\n0.5,0,0\n")
    for name in ("temperature_0", "temperature_1", "salinity_0"):
        (tmp_path / f"{name}.ini").touch()
    wavfile.write(tmp_path / "call.wav", 96_000, np.sin(1.6 * np.arange(4800)).astype(np.float32))  # 24 kHz
    for block in of_others(root):
        if not is_xml(block) or listed(block):
            continue
        whole = etree.fromstring(f"<page>{block.text.replace(' ...>', '>')}</page>")
        parts = {
            str(e.tag): etree.tostring(e, encoding="unicode", with_tail=False) for e in whole if isinstance(e.tag, str)
        }
        for tag in parts:
            if tag == "cross-flow":
                (tmp_path / "models.xml").write_text(MODEL.format(parts[tag]))
                assert read_models(tmp_path / "models.xml")["m"].cross_flow
                continue
            if tag == "transducer":
                bodies = (
                    f'<buoy name="b{k}" model="buoy" position="0 {9 * k} 20 m">{etree.tostring(e, encoding="unicode", with_tail=False)}</buoy>'
                    for k, e in enumerate(whole.iterfind(tag))
                )
                inner = f"<fleet>{''.join(bodies)}</fleet>"
            elif tag in ("world", "network", "acoustics"):  # a volume of sound needs the world beside it
                inner = parts.get("world", "") * (tag == "acoustics") + parts[tag] + FLEET.format("")
            elif tag == "fleet" and whole.find("fleet//sensors") is None:
                inner = parts[tag]
            elif tag in ("vehicle", "buoy") and whole.find(f"{tag}[@position]") is not None:
                inner = f"<fleet>{parts[tag]}</fleet>"
            else:
                sensors = whole.find(f"{tag}//sensors")
                assert sensors is not None, f"{block}: nobody reads this block of <{tag}>"
                inner = FLEET.format(etree.tostring(sensors, encoding="unicode", with_tail=False))
            path = tmp_path / "piece.xml"
            path.write_text(f"<wavesim>{inner}</wavesim>")
            try:
                load(path)
            except ConfigError as error:
                pytest.fail(f"{block}: {error}")
            seen += 1
    assert seen >= 5


def test_rules_and_registrations_are_read(root: Path, tmp_path: Path) -> None:
    from wavesim_viz.alarms import AlarmRules

    for block in of_others(root):
        if is_rules(block):
            (tmp_path / "rules.toml").write_text(block.text)
            AlarmRules.read(tmp_path / "rules.toml")
        elif block.language == "toml":
            (groups,) = tomllib.loads(block.text)["project"].values()
            for group, lines in groups.items():
                assert entry_points(group="wavesim.emulators") and group.startswith("wavesim.") and lines
