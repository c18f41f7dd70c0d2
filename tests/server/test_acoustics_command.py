"""The command ``wavesim acoustics`` and its worker: tables, files, mistakes of users, and JSON lines."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from PIL import Image

from wavesim_sdk.cli import cli, load_commands
from wavesim_server.acoustics import loss_planes, propagation_pictures
from wavesim_server.acoustics.propagation_model import PropagationModel, arrivals
from wavesim_server.acoustics_worker import AcousticsWorker
from wavesim_server.cli_acoustics import acoustics, notes_text, table_text
from wavesim_world.config import load, load_text
from wavesim_world.config.named_files import named_files
from wavesim_world.ocean.sound_warnings import NodePlace

WORLD = """<wavesim><world><bed depth="60 m" slope_north="0.04"/></world>
<acoustics profile="gradient" gradient="-0.05 ">{inner}</acoustics>
<fleet><buoy name="buoy1" model="buoy" position="0 0 20 m"><transducer position="0 0 2 m"><modem frequency="24 kHz" bandwidth="4 kHz"/></transducer></buoy>
<vehicle name="auv1" model="lauv" position="800 100 30 m" client="optional"/></fleet></wavesim>"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "c.xml"
    path.write_text(WORLD.format(inner='<multipath order="2"/>'))
    return path


def run(*words: Any) -> Result:
    load_commands()
    return CliRunner().invoke(cli, ["acoustics", *map(str, words)])


def test_table_and_files(file: Path, tmp_path: Path) -> None:
    picture, table = tmp_path / "a.png", tmp_path / "a.csv"
    done = run(file, "--from", "buoy1", "--to", "auv1", "--png", picture, "--csv", table, "--loss", "vertical")
    assert done.exit_code == 0, done.output
    assert "buoy1 (north 0 m, east 0 m, depth 22 m)" in done.output, "the position of the transducer"
    assert "24000 Hz" in done.output, "the carrier of its modem"
    assert max(len(line) for line in done.stdout.splitlines()) <= 100
    rows = list(csv.DictReader(table.open()))
    marked = [line for line in done.stdout.splitlines() if line.startswith("*  ")]
    assert len(marked) == 1 and float(marked[0][2:].split()[0]) == pytest.approx(float(rows[0]["time"]), abs=1e-6)
    assert f"the straight-line error is {float(rows[0]['straight_line_error']):+.3f} m" in done.output
    with Image.open(picture) as image:
        assert len(image.convert("RGB").getcolors(1 << 20) or []) > 200, "rays, sound speed and loss are drawn"


def test_json_equals_the_library(file: Path) -> None:
    done = run(
        file, "--from", "0,0,20", "--to", "0.8 km,100,30 m", "--json", "--frequency", "12 kHz", "--time", "1 min"
    )
    found = json.loads(done.stdout)
    table = arrivals(load(file), (0.0, 0.0, 20.0), (800.0, 100.0, 30.0), 60.0, 12e3)
    assert found["frequency"] == 12e3 and found["time"] == 60.0
    assert [row["time"] for row in found["arrivals"]] == pytest.approx(table["time"], abs=1e-9)
    assert [row["launch_elevation"] for row in found["arrivals"]] == pytest.approx(
        [math.degrees(v) for v in table["launch_elevation"]], abs=1e-3
    )


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--from", "boy1", "--to", "auv1"), 2, "--from: unknown body 'boy1'; did you mean 'buoy1'? A position"),
        (("--from", "xyzzy", "--to", "auv1"), 2, "allowed: auv1, buoy1. A position has the form north,east,depth"),
        (("--from", "buoy1", "--to", "1,2"), 2, "--to: unknown body '1,2'"),
        (("--from", "buoy1", "--to", "1,2,3 kg"), 2, "--to: invalid depth: 'kg' is not a unit of length"),
        (("--from", "buoy1", "--to", "auv1,2,3"), 2, "--to: invalid north"),
        (("--from", "buoy1", "--to", "5,5,-2"), 2, "--to is 2 m above the surface"),
        (("--from", "buoy1", "--to", "5,5,500"), 2, "--to is 440 m below the bed"),
        (("--from", "buoy1", "--to", "-2000,0,1"), 2, "--to is on land, 20 m above the surface"),
        (("--from", "auv1", "--to", "auv1"), 2, "source and receiver are at the same position"),
        (("--from", "auv1"), 2, "both --from and --to are required"),
        (("--from", "buoy1", "--to", "auv1", "--loss", "vertical"), 2, "--loss requires --png"),
        (("--from", "buoy1", "--to", "auv1", "--range", "5 km"), 2, "--range has no effect without --loss"),
        (("--serve", "--from", "buoy1"), 2, "--from has no effect with --serve"),
        (
            ("--from", "buoy1", "--to", "auv1", "--csv", "/none/a.csv"),
            2,
            "cannot write /none/a.csv: the folder /none does not exist",
        ),
        (("--from", "buoy1", "--to", "auv1", "--csv", "/"), 2, "cannot write /: it is a folder"),
        (
            ("--from", "buoy1", "--to", "auv1", "--png", "/none/a.png"),
            2,
            "cannot write /none/a.png: the folder /none does not exist",
        ),
        (("--from", "buoy1", "--to", "auv1", "--png", "plain"), 2, "plain: the name has no ending; use one of"),
        (
            ("--from", "buoy1", "--to", "auv1", "--png", "a.png", "--loss", "horizontal", "--depth", "5000"),
            2,
            "the plane at a depth of 5000 m contains no water; use a depth from 0 to",
        ),
        (("--from", "buoy1", "--to", "auv1", "--png", "a.xyz"), 2, "a.xyz: cannot draw this format"),
    ],
)
def test_mistakes(file: Path, words: tuple[str, ...], code: int, message: str) -> None:
    done = run(*(() if "--serve" in words else (file,)), *words)
    assert done.exit_code == code and message in done.output, done.output
    assert "Traceback" not in done.output and done.stdout == "", "nothing is computed before the error"


def test_an_unreadable_configuration(tmp_path: Path) -> None:
    done = run(tmp_path / "none.xml", "--from", "a", "--to", "b")
    assert done.exit_code == 2 and "none.xml: cannot read the file" in done.output


def test_a_shadow(tmp_path: Path) -> None:
    """Without echoes, a downward-refracting profile has a shadow near the surface; the exit code is 20."""
    path = tmp_path / "c.xml"
    path.write_text(WORLD.format(inner=""))
    done = run(path, "--from", "0,0,2", "--to", "3000,0,2", "--png", tmp_path / "a.png")
    assert done.exit_code == 20 and "acoustic shadow: no path leads from north 0 m" in done.output
    assert (tmp_path / "a.png").exists()
    assert json.loads(run(path, "--from", "0,0,2", "--to", "3000,0,2", "--json").stdout)["arrivals"] == []


def test_blocked_paths(tmp_path: Path) -> None:
    """The range error belongs to the first path that is free; if there is none, the exit code is 20."""
    path, ends = tmp_path / "c.xml", ("--from", "0,0,30", "--to", "200,0,30")
    for depth, height, code in (30, 10, 0), (60, 120, 20):
        pier = f'<obstacles><pier position="100 0 {depth} m" radius="3 m" height="{height} m"/></obstacles>'
        text = WORLD.format(inner='<multipath order="1"/>').replace('slope_north="0.04"/>', f"/>{pier}")
        path.write_text(text.replace('"gradient" gradient="-0.05 "', '"constant"'))
        done = run(path, *ends)
        assert done.exit_code == code, done.output
        marks = [line[:2] for line in done.stdout.splitlines() if line[:2] in ("* ", "*-", " x", "*x")]
        if code:
            assert marks == [" x"] * 3 and "All paths are blocked" in done.output
            assert "all paths from north 0 m" in done.output and "are blocked by pier 1" in done.output
        else:
            assert marks[:2] == [" x", "* "] and "The first free path takes" in done.output
            rows = json.loads(run(path, *ends, "--json").stdout)["arrivals"]
            error = next(row for row in rows if not row["blocked_by"])["straight_line_error"]
            assert f"the straight-line error is {error:+.3f} m" in done.output and error > 1.0
            picture_title = propagation_pictures._rays_title(_table_of(path))
            assert f"straight-line error {error:+.2f} m" in picture_title


def _table_of(path: Path) -> Any:
    return arrivals(load(path), (0.0, 0.0, 30.0), (200.0, 0.0, 30.0), frequency=25e3)


def test_a_moving_surface_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "c.xml"
    for surface, noted in ("moving", True), ("flat", False):
        path.write_text(WORLD.format(inner=f'<multipath order="1" surface="{surface}"/>'))
        done = run(path, "--from", "0,0,20", "--to", "300,0,20")
        assert done.exit_code == 0 and ("note: the paths are those over the flat mean surface" in done.stderr) is noted
        answer = ask(AcousticsWorker(), kind="rays", config=str(path), **{"from": [0, 0, 20], "to": [300, 0, 20]})
        assert len(answer["notes"]) == noted


def test_points_beyond_the_volume_are_noted(root: Path) -> None:
    model = PropagationModel(load(root / "examples/trials/front.xml"))
    assert model.water.volume is not None
    until = float(model.water.volume.times[-1])
    inside, outside = NodePlace("a", np.array([0.0, 0.0, 30.0])), NodePlace("b", np.array([1e5, 0.0, 30.0]))
    assert model.notes([inside], until) == []
    late, far = model.notes([inside], until + 1.0), model.notes([inside, outside])
    assert len(late) == 1 and late[0].startswith(f"the <volume> ends at {until:g} s, but the emission is at")
    assert len(far) == 1 and "the <volume> does not contain all positions of 'b'" in far[0]


def test_the_colour_bar_has_no_offset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure

    offsets: list[str] = []

    def save(figure: Figure, *_: Any, **__: Any) -> None:
        figure.canvas.draw()
        offsets.extend(axes.yaxis.get_offset_text().get_text() for axes in figure.axes)

    monkeypatch.setattr(Figure, "savefig", save)
    model = PropagationModel(load_text('<wavesim><world><bed depth="100 m"/></world></wavesim>'))
    view = propagation_pictures.View(np.array([0.0, 0.0, 20.0]), np.array([300.0, 0.0, 20.0]), 0.0, 25e3)
    propagation_pictures.draw(model, view, tmp_path / "a.png")
    assert offsets == ["", ""]


def test_notes_and_help(file: Path) -> None:
    assert "--serve" in CliRunner().invoke(acoustics, ["--help"]).output
    from wavesim_server.acoustics.propagation_model import ARRIVAL

    table = np.zeros(2, ARRIVAL)
    table["blocked_by"] = ["", "pier 1"]
    table["time"] = 99.0
    assert "x blocked by pier 1: 1 path" in notes_text(table) and "- ignored by" in notes_text(table)
    assert table_text(table).splitlines()[2].startswith("*- ") and table_text(table).splitlines()[3].startswith(" x ")


def ask(worker: AcousticsWorker, **request: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(worker.answer(json.dumps(request)))
    assert answer["id"] == request.get("id")
    return answer


def test_worker(file: Path) -> None:
    worker = AcousticsWorker()
    common: dict[str, Any] = {"config": str(file), "from": [0, 0, 20], "to": [800, 100, 30]}
    rays = ask(worker, id=1, kind="rays", **common)
    assert len(rays["arrivals"]) == len(rays["rays"]) > 1
    assert rays["distance"] == pytest.approx(math.dist(common["from"], common["to"]), abs=1e-4)
    for ray in rays["rays"]:
        assert ray[0] == pytest.approx([0, 0, 20], abs=0.02) and ray[-1] == pytest.approx([800, 100, 30], abs=0.02)
    loss = ask(worker, id="x", kind="loss", shape=[20, 30], **common)
    assert (len(loss["loss"]), len(loss["loss"][0])) == (len(loss["depths"]), len(loss["ranges"])) == (20, 30)
    assert loss["bearing"] == pytest.approx(math.degrees(math.atan2(100, 800)), abs=1e-5)
    assert loss["loss"][-1][0] is None, "below the bed"
    level = ask(worker, id=2, kind="loss", plane="horizontal", depth=10, range=500, shape=[5, 7], **common)
    assert (len(level["north"]), len(level["east"])) == (5, 7) and level["depth"] == 10
    section = ask(worker, id=None, kind="section", shape=[4, 6], **common)
    assert section["speed"][0] == pytest.approx([1500.0] * 6) and len(section["bed"]) == 6
    text = ask(worker, id=3, kind="rays", **(common | {"config": file.read_text()}))
    assert text["arrivals"] == rays["arrivals"]


@pytest.mark.parametrize("as_text", [False, True])
def test_worker_sees_changes_of_the_files(tmp_path: Path, as_text: bool) -> None:
    whole, sound, models = tmp_path / "c.xml", tmp_path / "sound.txt", tmp_path / "models.xml"
    text = (
        '<wavesim><world><bed depth="60 m"/></world><acoustics profile="file" file="sound.txt"/>'
        '<models><include file="models.xml"/></models></wavesim>'
    )
    whole.write_text(text)
    models.write_text("<models/>")
    sound.write_text("0 1500\n60 1500\n")
    given = {"config": text, "folder": str(tmp_path)} if as_text else {"config": str(whole)}
    assert set(named_files(tmp_path / "c.xml", text if as_text else None)) == {
        models,
        sound,
        *([] if as_text else [whole]),
    }
    worker = AcousticsWorker()
    asked: dict[str, Any] = {"kind": "section", "from": [0, 0, 20], "to": [800, 0, 30], "shape": [2, 2], **given}
    assert ask(worker, **asked)["speed"][0] == pytest.approx([1500.0, 1500.0])
    kept = worker._model
    ask(worker, **asked)
    assert worker._model is kept, "nothing has changed"
    sound.write_text("0 1450\n60 1450\n \n")
    assert ask(worker, **asked)["speed"][0] == pytest.approx([1450.0, 1450.0])
    models.write_text("<models/")
    assert "models.xml" in ask(worker, **asked)["error"]
    models.unlink()
    assert "models.xml" in ask(worker, **asked)["error"]
    models.write_text("<models/>")
    assert ask(worker, **asked)["speed"][0] == pytest.approx([1450.0, 1450.0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "loss", "plane": "horizontal", "depth": -1}, "a plane cannot be 1 m above the surface"),
        ({"kind": "loss", "plane": "horizontal", "depth": 5000}, "the plane at a depth of 5000 m contains no water"),
        ({"kind": ["rays"]}, "unknown kind '['rays']'"),
        ({"dept": 3}, "unknown member 'dept'; did you mean 'depth'?"),
        ({"from": [0, 0, 10**400]}, "`from` must be a list of three numbers"),
        ({"to": [2e6, 0, 20]}, "from -1e+06 to 1e+06"),
        ({"time": 10**400}, "`time` must be a finite number"),
        ({"config": "a\0b"}, "`config` contains a NUL character"),
        ({"folder": "a\0b"}, "`folder` contains a NUL character"),
        ({"config": "\ud800"}, "`config` contains half of a surrogate pair"),
        ({"kind": "\ud800"}, "unknown kind"),
        ({"kind": "lost"}, "unknown kind 'lost'; did you mean 'loss'?"),
        ({"config": "none.xml"}, "none.xml: cannot read the file"),
        ({"config": "<wavesim><x/></wavesim>"}, "x"),
        ({"config": 3}, "`config` must be"),
        ({"from": [0, 0]}, "`from` must be a list of three numbers"),
        ({"from": [0, 0, float("nan")]}, "`from` must be a list of three numbers"),
        ({"from": [0, 0, 300]}, "the source is 240 m below the bed"),
        ({"to": [0, 0, 20]}, "source and receiver are at the same position"),
        ({"time": "now"}, "`time` must be a finite number"),
        ({"frequency": 0}, "frequency 0 Hz is out of range"),
        ({"kind": "loss", "shape": [1, 5000]}, "`shape` must be a list of two integers"),
        ({"kind": "loss", "plane": "diagonal"}, "unknown plane 'diagonal'"),
        ({"kind": "loss", "range": 1e9}, "`range` must be from 1 to 1e+06 m"),
        ({"kind": "loss", "coherent": 1}, "`coherent` must be true or false"),
    ],
)
def test_mistakes_in_requests(file: Path, change: dict[str, Any], message: str) -> None:
    request: dict[str, Any] = {"id": 7, "config": str(file), "kind": "rays", "from": [0, 0, 20], "to": [800, 100, 30]}
    answer = json.loads(AcousticsWorker().answer(json.dumps(request | change)))
    assert set(answer) == {"id", "error"} and answer["id"] == 7 and message in answer["error"]


def test_lines_that_are_not_requests(file: Path) -> None:
    assert "not valid JSON" in json.loads(AcousticsWorker().answer("nonsense"))["error"]
    assert "must be a JSON object" in json.loads(AcousticsWorker().answer("[1]"))["error"]
    request = json.dumps(
        {"id": 1, "config": str(file), "kind": "section", "from": [0, 0, 1], "to": [9, 9, 1], "shape": [2, 2]}
    )
    done = CliRunner().invoke(acoustics, ["--serve"], input=f"{request}\n\nnonsense\n")
    assert [set(json.loads(line)) >= {"id"} for line in done.stdout.splitlines()] == [True, True]
    assert done.exit_code == 0


@pytest.mark.parametrize(
    ("line", "number", "message"),
    [
        (b'{"id":NaN}', None, "cannot answer the request"),
        (b'{"id":4,"kind":' + b"[" * 100_000 + b"]" * 100_000 + b"}", None, "too many levels"),
        (b'{"id":4,"time":' + b"9" * 5000 + b"}", None, "cannot answer the request"),
        (b'{"id":"\xff"}', None, "the request is not valid JSON"),
        (b'{"id":"\\ud800"}', "\ud800", "unknown kind"),
    ],
)
def test_lines_that_no_program_should_write(line: bytes, number: Any, message: str) -> None:
    done = CliRunner().invoke(acoustics, ["--serve"], input=line + b"\nnonsense\n")
    first, second = (json.loads(text) for text in done.stdout.splitlines())
    assert first["id"] == number and message in first["error"] and "not valid JSON" in second["error"]


def test_a_closed_input(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from wavesim_server import cli_acoustics

    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdin", None)
        cli_acoustics.acoustics.main(["--serve"], standalone_mode=False)


def test_the_default_range_ends_at_the_maximum(file: Path) -> None:
    asked: list[float] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(loss_planes, "vertical_plane", lambda *words: asked.append(words[3]) or 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ask(AcousticsWorker(), kind="loss", config=str(file), **{"from": [0, 0, 20], "to": [0, 1e6, 20]})
    assert asked == [loss_planes.MAX_RANGE]
