"""Frames of a Lab, and data sets made of them and of logs, judged by the tools of COCO."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pycocotools import mask as coco_masks
from pycocotools.coco import COCO

from tests.conftest import wavesim
from tests.emulators.bench import Bench
from wavesim_emulators.sonar.camera import CameraEmulator
from wavesim_emulators.sonar.emulator import SonarEmulator
from wavesim_sdk import log as logs
from wavesim_sdk.errors import ConfigError, InvalidArgument, LogError, UnknownName
from wavesim_sdk.frame_rings import FrameReader, FrameRings, remove_rings
from wavesim_sdk.imaging_frames import FRAME, ImagingFrame
from wavesim_sdk.tables import STATE
from wavesim_server import Lab
from wavesim_server.frame_datasets import CocoDataset, FrameDataset, SceneOrigin, add_log, make_dataset
from wavesim_server.logbook.datasets import write_tum
from wavesim_server.logbook.pictures import png, run_lengths
from wavesim_server.logbook.writer import LogWriter
from wavesim_world.sonars.frame_sizes import create_rings

PERIOD = 50  #: ticks
SCENE = """<wavesim name="scene"><world><bed depth="12 m"/><obstacles>
<block category="cube" position="{x} 1 11.5 m" size="1 1 1 m"/><pier position="8 -1 11 m" radius="0.3 m" height="2 m"/></obstacles></world>
<shared vehicles="4"/><fleet><vehicle name="other" model="lauv" position="9 3 10 m"/>
<vehicle name="auv" model="lauv" position="0 0 9 m"><sensors>
<sonar name="eye" preset="m750d-low" range="15 m" beams="64" bins="150" rate="5 Hz" tilt="12 deg" truth="yes"/>
<camera name="cam" rate="5 Hz" width="48" height="36" truth="yes" depth="yes" range="15 m" attitude="0 -15 0 deg"/>{more}</sensors></vehicle>
</fleet></wavesim>"""
SIDE = '<sonar name="side" preset="starfish-450" range="20 m" bins="100" rate="10 Hz" truth="yes"/>'
PING = '<sonar name="ping" preset="ping360" range="15 m" bins="60" rate="40 Hz" sector="90 deg" truth="yes"/>'


def scene_text(x: float = 10.0, more: str = "") -> str:
    return SCENE.format(x=x, more=more)


def one_scene(random: np.random.Generator, seed: int) -> Iterator[ImagingFrame]:
    lab = Lab(scene_text(round(random.uniform(7.0, 13.0), 3)))
    for shot in range(2):
        lab.set_pose(lab.row("auv"), (0.0, random.uniform(-2.0, 2.0), 9.0))
        yield lab.frame("auv", "eye", 2 * seed + shot)
        yield lab.frame("auv", "cam", 2 * seed + shot)


@pytest.mark.parametrize(("name", "emulator"), [("eye", SonarEmulator), ("cam", CameraEmulator)])
def test_a_lab_has_the_frames_of_the_emulator_process(name: str, emulator: Any) -> None:
    """Bit for bit: those of its rates, and that of an instant."""
    lab = Lab(scene_text(), seed=3, imaging=True)
    server = f"lab-{name}-{os.getpid()}"
    create_rings(lab.loaded, server)
    try:
        bench = Bench(lab.loaded, emulator, bodies=0, seed=3, period=PERIOD)
        for row, body in enumerate(("other", "auv")):
            bench.enter(row, body)
        bench.emulator.open(server)
        rings = FrameRings.attach(server)
        reader = FrameReader(rings, rings.ring_index(emulator.sensor, 0))

        def emulated(tick: int) -> ImagingFrame | None:
            bench.state[:2] = lab.state()[:2]
            bench.at(tick)
            return reader.next()

        lab.commands({"auv": {"propeller": 8.0}})
        emulated(0)
        lab.advance(0)
        lab.take_frames()
        for _ in range(3):
            lab.advance(PERIOD)
            (frame,) = lab.take_frames("auv", name)
            again = emulated(lab.tick)
            assert again is not None and again.data == frame.data
        assert lab.take_frames() == []
        instant = lab.frame("auv", name)
        assert instant.data != frame.data or name == "cam"
        remove_rings(server)
        create_rings(lab.loaded, server)
        bench.replace()
        bench.emulator.open(server)
        fresh = FrameReader(FrameRings.attach(server), reader.ring)
        bench.at(lab.tick)
        first = fresh.next()
        assert first is not None and first.data == instant.data, "a process that begins at this tick"
        assert lab.frame("auv", name, seed=4).payload != instant.payload
        assert lab.frame("auv", name, seed=3).payload == instant.payload
    finally:
        remove_rings(server)


def test_a_snapshot_and_a_reset_repeat_the_frames() -> None:
    lab = Lab(scene_text(), imaging=True)
    lab.run(0.4)
    snapshot = lab.snapshot()
    first = lab.take_frames()
    lab.run(0.4)
    later = [f.record["number"] for f in lab.take_frames()]
    lab.restore(snapshot)
    lab.run(0.4)
    assert [f.record["number"] for f in lab.take_frames()] == later
    lab.reset()
    lab.run(0.4)
    assert [f.data for f in lab.take_frames()] == [f.data for f in first] and len(first) == 5


def test_mistakes_have_one_clear_message(tmp_path: Path) -> None:
    lab = Lab(scene_text())
    with pytest.raises(InvalidArgument, match=r"create it with Lab\(..., imaging=True\)"):
        lab.take_frames()
    with pytest.raises(
        UnknownName, match="'auv' has no sonar, camera, lidar or hydrophone named 'eyes'; available: eye, cam"
    ):
        lab.frame("auv", "eyes")
    lab.set_pose(lab.row("auv"), (0.0, 0.0, -3.0))
    with pytest.raises(InvalidArgument, match="the sonar 'eye' of 'auv' is not under water"):
        lab.frame("auv", "eye")
    with pytest.raises(LogError, match="unknown format 'voc'; use coco, png, numpy"):
        make_dataset(one_scene, tmp_path, 1, "voc")

    def blind(random: Any, seed: int) -> Iterator[ImagingFrame]:
        yield Lab(scene_text().replace('truth="yes"', "")).frame("auv", "eye")

    with pytest.raises(LogError, match="the frames of 'eye' on 'auv' have no labels; set truth=\"yes\""):
        make_dataset(blind, tmp_path / "blind", 1)
    make_dataset(one_scene, tmp_path / "a", 1)
    with pytest.raises(LogError, match="is not the index of a data set of this format"):
        make_dataset(one_scene, tmp_path / "a", 1, "numpy")

    def wrong(random: Any, seed: int) -> Iterator[ImagingFrame]:
        yield Lab("<wavesim><world><bad/></world></wavesim>").frame("auv", "eye")

    with pytest.raises(ConfigError) as refused:
        make_dataset(wrong, tmp_path / "b", [41])
    assert refused.value.__notes__ == ["in the scene with seed 41"]


def test_frames_of_an_unknown_source_are_refused_and_none_is_lost() -> None:
    lab = Lab(scene_text(), imaging=True)
    lab.run(0.2)
    for name, instrument, said in (
        ("auv", "eey", "'auv' has no sonar, camera, lidar or hydrophone named 'eey'; available: eye, cam"),
        ("", "eey", "no body has a sonar, camera, lidar or hydrophone named 'eey'; available: eye, cam"),
        ("avu", "", "unknown body 'avu'; did you mean 'auv'"),
    ):
        with pytest.raises(UnknownName, match=said):
            lab.take_frames(name, instrument)
    assert sorted(f.name for f in lab.take_frames("auv")) == ["cam", "cam", "eye"]
    assert lab.take_frames("other") == [], "this vehicle has no camera"
    lab.run(0.2)
    lab.leave(lab.row("auv"))
    assert [f.name for f in lab.take_frames("auv", "eye")] == ["eye"], "the frames of a body that has left"


def written(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*.*") if p.parent != folder)


@pytest.mark.parametrize("format_", ["png", "numpy", "coco"])
def test_a_replaced_scene_leaves_no_files(tmp_path: Path, format_: str) -> None:
    """Also in a new process, and if the scene has fewer frames; other scenes keep their files."""

    def of(frames: int) -> Any:
        lab = Lab(scene_text())
        return lambda random, seed: (lab.frame("auv", "cam") for _ in range(frames))

    make_dataset(of(1), tmp_path / "expected", [0, 1], format_)
    make_dataset(of(2), tmp_path / "made", [0, 0, 1], format_)
    assert len(written(tmp_path / "made")) > len(written(tmp_path / "expected"))
    # the second scene of this lab has frames with other numbers
    make_dataset(of(1), tmp_path / "made", [0, 1], format_)
    assert written(tmp_path / "made") == written(tmp_path / "expected")


def test_an_unknown_label_has_a_name(tmp_path: Path) -> None:
    """A log of another program may have labels that its metadata does not name."""
    frame = Lab(scene_text()).frame("auv", "eye")
    assert frame.names is not None
    bare = dataclasses.replace(frame, names=type(frame.names)(frame.names.materials, {0: frame.names.objects[0]}))
    with CocoDataset(tmp_path) as made:
        made.add(SceneOrigin("s", 0), [bare])
    (file,) = (p for p in (tmp_path / "annotations").glob("polar_*.json") if json.loads(p.read_text())["images"])
    found = json.loads(file.read_text())
    names = {a["object"]: a["name"] for a in found["annotations"]}
    assert names[20000] == "object 20000" and names[-20000] == "shadow of object 20000" and names[0] == "bed"
    assert {c["name"] for c in found["categories"]} == {"bed", "object", "shadow"}
    assert {a["caster"] for a in found["annotations"] if "caster" in a} == {"object"}


def test_a_log_of_another_program_writes_only_into_the_folder(tmp_path: Path) -> None:
    """Frames whose names differ from their topic, and topics with invalid names, are omitted."""
    lab = Lab(scene_text())
    good = lab.frame("auv", "cam")
    log, out = tmp_path / "run.mcap", tmp_path / "a" / "b" / "set"
    writer = LogWriter(log, lab.loaded, 0)
    for row, o in lab.occupants.items():
        writer.body(0, row, o.name, o.model.name, o.model.type, True)
    for topic, column, value in (
        ("/sonar/auv/cam", "body", b"/../../../escaped"),
        ("/sonar//../../../escaped/cam", "body", b"/../../../escaped"),
        ("/sonar/auv//../../../escaped", "name", b"/../../../escaped"),
        ("/sonar/auv/..", "name", b".."),
        ("/sonar/auv/cam/more", "name", b"cam"),
        ("/sonar/auv/eye", "name", b"cam"),
        ("/sonar/auv/cam", "name", b"cam"),
    ):
        record = good.record.copy()
        record[column] = value
        payload = struct.pack("<I", len(good.payload)) + good.payload
        writer.record(topic, FRAME, 0, record.tobytes() + payload)
    for body in ("auv", "/../../../escaped"):
        writer.record(f"/state/{body}", STATE, 0, bytes(STATE.visible.dtype.itemsize))
    writer.close()
    assert [(f.body, f.name) for f in logs.frames(log)] == [("auv", "cam")]
    sources = {"/sonar/auv/cam", "/sonar/auv/eye", "/sonar/auv/cam/more"}
    assert set(logs.read(log).series) == {*sources, "/state/auv"}
    assert add_log(log, out, "png")[0] == 1
    assert dict(write_tum(log, out)) == {"auv.tum": 1}
    assert all(p.is_relative_to(out) for ending in ("png", "tum") for p in tmp_path.rglob(f"*.{ending}"))
    with pytest.raises(LogError, match="invalid name"), FrameDataset(tmp_path / "own") as own:
        own.add(SceneOrigin("../../s", 0), [good])


def test_run_lengths_are_those_of_coco() -> None:
    random = np.random.default_rng(1)
    for share in (0.0, 0.02, 0.5, 1.0):
        mask = random.random((37, 61)) < share
        mask[5:9, 3:50] |= share > 0.0
        expected = coco_masks.encode(np.asfortranarray(mask.astype(np.uint8)))["counts"].decode()
        assert run_lengths(mask) == expected


def test_png_files_are_read_by_others(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    for pixels in (
        random.integers(0, 256, (5, 7), np.uint8),
        random.integers(0, 65536, (5, 7), np.uint16),
        random.integers(0, 256, (5, 7, 3), np.uint8),
    ):
        (tmp_path / "p.png").write_bytes(png(pixels))
        assert (np.array(Image.open(tmp_path / "p.png")) == pixels).all()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    made = tmp_path_factory.mktemp("data") / "set"
    parts = make_dataset(one_scene, made, range(10, 22))
    assert sum(parts.values()) == 12 and set(parts) == {"train", "validation", "test"}
    return Path(made)


def test_a_data_set_of_scenes_in_the_format_of_coco(folder: Path) -> None:
    scenes: dict[str, str] = {}
    seen: dict[str, set[str]] = {}
    for path in sorted((folder / "annotations").iterdir()):
        view, _, part = path.stem.partition("_")
        coco = COCO(str(path))
        names = {c["id"]: c["name"] for c in coco.dataset["categories"]}
        for image in coco.dataset["images"]:
            assert scenes.setdefault(image["scene"], part) == part, "a scene is in one part"
            with Image.open(folder / image["file_name"]) as picture:
                assert picture.size == (image["width"], image["height"])
            covered = np.zeros((image["height"], image["width"]), int)
            for a in coco.loadAnns(coco.getAnnIds(image["id"])):
                mask = coco.annToMask(a)
                assert (mask.sum(), coco_masks.toBbox(a["segmentation"]).tolist()) == (a["area"], a["bbox"])
                covered += mask
                seen.setdefault(view, set()).add(names[a["category_id"]])
            assert covered.max() == 1
    index = json.loads((folder / "dataset.json").read_text())
    assert {n: (s["part"], s["seed"]) for n, s in index["scenes"].items()} == {
        f"scene-{k:06}": (scenes[f"scene-{k:06}"], k) for k in range(10, 22)
    }
    assert (
        seen["polar"]
        == seen["fan"]
        == {"bed", "surface", "cube", "pier", "lauv", "shadow"} - ({"surface"} - seen["polar"])
    )
    assert {"bed", "cube", "pier", "lauv"} <= seen["camera"] and "shadow" not in seen["camera"]


def test_the_same_seeds_give_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    make_dataset(one_scene, tmp_path, range(10, 22))
    make_dataset(one_scene, tmp_path, [13, 12])  # replaced, not added
    files = {p.relative_to(folder): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
    assert {p.relative_to(tmp_path): p.read_bytes() for p in sorted(tmp_path.rglob("*")) if p.is_file()} == files


def test_masks_are_the_labels_of_the_frames(folder: Path) -> None:
    frames = list(one_scene(np.random.default_rng(10), 10))
    part = json.loads((folder / "dataset.json").read_text())["scenes"]["scene-000010"]["part"]
    for view, frame in (("polar", frames[0]), ("camera", frames[1])):
        coco = COCO(str(folder / "annotations" / f"{view}_{part}.json"))
        (image,) = (i for i in coco.dataset["images"] if (i["scene"], i["frame"]) == ("scene-000010", 1))
        pixels = np.array(Image.open(folder / image["file_name"]))
        objects = frame.labels[..., 1]
        assert (pixels == (frame.samples.T[::-1] if view == "polar" else frame.image)).all()
        annotations = coco.loadAnns(coco.getAnnIds(image["id"]))
        assert {a["object"] for a in annotations} == set(np.unique(objects).tolist()) - {-1}
        for a in annotations:
            assert frame.names is not None and frame.names[a["object"]] == a["name"]
            assert (coco.annToMask(a) == ((objects.T[::-1] if view == "polar" else objects) == a["object"])).all()


def test_a_fan_shows_an_object_at_its_place(folder: Path) -> None:
    """The pier 8 m ahead, 1 m to port of the origin: where the undistorted picture has its mask."""
    random = np.random.default_rng(10)
    random.uniform(7.0, 13.0)
    east = random.uniform(-2.0, 2.0)
    part = json.loads((folder / "dataset.json").read_text())["scenes"]["scene-000010"]["part"]
    coco = COCO(str(folder / "annotations" / f"fan_{part}.json"))
    (image,) = (i for i in coco.dataset["images"] if (i["scene"], i["frame"]) == ("scene-000010", 1))
    (pier,) = (a for a in coco.loadAnns(coco.getAnnIds(image["id"])) if a["name"] == "pier 1")
    rows, columns = np.nonzero(coco.annToMask(pier))
    scale = 15.0 / 150  # m per pixel: as many rows as bins
    r = np.hypot(8.0 - 0.3, -1.0 - east)
    slant = np.hypot(r, 1.5)  # the sonar is 1 to 3 m above the pier's ends
    assert (150 - rows.max() - 0.5) * scale == pytest.approx(slant * 8.0 / np.hypot(8.0, -1.0 - east), abs=0.4)
    assert (columns.mean() + 0.5 - image["width"] / 2) * scale == pytest.approx(-1.0 - east, abs=0.3)


def test_the_log_has_the_names_and_the_export_has_all_formats(tmp_path: Path) -> None:
    lab = Lab(scene_text(more=SIDE + PING), imaging=True)
    lab.commands({"auv": {"propeller": 8.0}})
    path = tmp_path / "run.mcap"
    writer = LogWriter(path, lab.loaded, lab.seed)
    for row, o in lab.occupants.items():
        writer.body(0, row, o.name, o.model.name, o.model.type, True)
    lab.run(2.0)
    for frame in lab.take_frames():
        writer.frame(frame)
    writer.close()

    found = logs.read(path)
    assert found.label_names[20000] == "block 1" and found.label_names.materials == (
        "fine-sand",
        "steel",
        "concrete",
        "surface",
    )
    for body, name, said in (
        ("auv", "eyes", "'auv' has no instrument 'eyes'; did you mean 'eye'?"),
        ("avu", "eye", "has no body 'avu'; did you mean 'auv'?"),
        ("", "eyes", "has no instrument 'eyes'; did you mean 'eye'?"),
    ):
        with pytest.raises(UnknownName, match=re.escape(said)):
            list(logs.frames(path, body, name))
    names = next(logs.frames(path, "auv", "eye")).names
    assert names is not None and (names[2], names.category(2), names[-2]) == ("other", "lauv", "shadow of other")

    out = wavesim(
        "log",
        "export",
        str(path),
        "--coco",
        str(tmp_path / "coco"),
        "--png",
        str(tmp_path / "png"),
        "--numpy",
        str(tmp_path / "numpy"),
    )
    assert out.returncode == 0, out.stderr
    part = out.stdout.splitlines()[0].split()[-1]
    assert out.stdout.splitlines()[0] == f"{tmp_path / 'coco'}: 34 pictures, split {part}"
    views = {
        view: COCO(str(tmp_path / "coco" / "annotations" / f"{view}_{part}.json"))
        for view in ("polar", "fan", "camera", "waterfall")
    }
    (side,) = views["waterfall"].dataset["images"]
    assert (side["height"], side["width"], side["instrument"]) == (20, 200, "side")
    turns = [i for i in views["fan"].dataset["images"] if i["instrument"] == "ping"]
    assert [(i["height"], i["width"]) for i in turns] == [(60, 2 * 43)]
    eye = logs.frames(path, "auv", "eye")
    first = next(eye)
    with np.load(next((tmp_path / "numpy" / "forward").glob("*.eye.000001.npz"))) as arrays:
        assert (arrays["samples"] == first.samples).all() and (arrays["labels"] == first.labels).all()
        assert arrays["euler"].shape == (3,) and arrays["ranges"].shape == (150,)
    labels = np.array(Image.open(next((tmp_path / "png" / "polar").glob("*.eye.000001.labels.png")))).astype(np.uint16)
    assert (labels.view(np.int16) == first.labels[..., 1].T[::-1]).all()

    refused = wavesim("log", "export", str(path), "--coco", str(tmp_path / "x"), "--sonar", "nose")
    assert (refused.returncode, refused.stderr.count("\n")) == (6, 1)
    assert (
        "has no matching frames; available sonars and cameras: auv cam, auv eye, auv ping, auv side" in refused.stderr
    )
