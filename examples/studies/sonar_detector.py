"""Make a data set of sonar images and train a small detector with its exported files.

    pip install wavesim scikit-learn pycocotools
    python examples/studies/sonar_detector.py sonar-data --scenes 300

Each scene has three objects of random kinds at random positions on the sea bed: a pipe, a cube or a post. The detector
classifies windows of the undistorted pictures. It reads only the files of the data set, and is scored on scenes that it
has not seen. Another detector is trained with the same windows but shuffled classes; its score is the chance level.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from pycocotools.coco import COCO
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import balanced_accuracy_score

from wavesim_sdk.imaging_frames import ImagingFrame
from wavesim_server import Lab
from wavesim_server.frame_datasets import make_dataset

KINDS = {
    "pipe": '<block category="pipe" position="{place} 11.8 m" size="4 0.4 0.4 m" heading="{heading} deg"/>',
    "cube": '<block category="cube" position="{place} 11.6 m" size="0.8 0.8 0.8 m" heading="{heading} deg"/>',
    "post": '<pier category="post" position="{place} 10.5 m" radius="0.25 m" height="3 m"/>',
}
WORLD = """<wavesim><world><bed depth="12 m"/><obstacles>{obstacles}</obstacles></world><fleet>
<vehicle name="auv" model="lauv" position="0 0 {depth} m" attitude="{roll} {pitch} 0 deg"><sensors>
<sonar name="eye" preset="m750d-low" range="25 m" rate="5 Hz" beams="256" bins="512" tilt="10 deg" truth="yes"/>
</sensors></vehicle></fleet></wavesim>"""
BACKGROUND, EMPTY = "background", 80  #: class of windows without an object, and their number in each picture
WINDOW, CELL = 64, 8  #: width in pixels of a window and of its cells; the cell means are the features of the window


def scene(random: np.random.Generator, seed: int) -> Iterator[ImagingFrame]:
    """Yield one frame of a vehicle in front of three objects at least 4 m apart."""
    places: list[tuple[float, float]] = []
    while len(places) < 3:
        r, azimuth = random.uniform(9.0, 21.0), random.uniform(-0.9, 0.9)
        place = r * math.cos(azimuth), r * math.sin(azimuth)
        if all(math.dist(place, other) > 4.0 for other in places):
            places.append(place)
    made = sorted(
        KINDS[random.choice(list(KINDS))].format(place=f"{n:.3f} {e:.3f}", heading=f"{random.uniform(0, 180):.1f}")
        for n, e in places
    )
    depth, roll, pitch = random.uniform(7.5, 9.5), random.uniform(-5, 5), random.uniform(-3, 3)
    lab = Lab(WORLD.format(obstacles="".join(made), depth=f"{depth:.3f}", roll=f"{roll:.2f}", pitch=f"{pitch:.2f}"))
    yield lab.frame("auv", "eye", seed)


def features(picture: Any, rows: Any, columns: Any) -> Any:
    """Return the cell means of the windows with these centres, relative to the mean of each window."""
    padded = np.pad(picture.astype(float), WINDOW // 2, mode="edge")
    sums = np.pad(padded.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    i, j = (np.arange(0, WINDOW, CELL)[:, None], np.arange(0, WINDOW, CELL)[None, :])
    y, x = (np.asarray(a)[:, None, None] + b for a, b in ((rows, i), (columns, j)))
    cells = sums[y + CELL, x + CELL] - sums[y, x + CELL] - sums[y + CELL, x] + sums[y, x]
    means = cells / CELL**2
    return (means - means.mean(axis=(1, 2), keepdims=True)).reshape(len(means), -1)


def windows(folder: Path, parts: tuple[str, ...], random: np.random.Generator) -> tuple[Any, Any]:
    """Return the features and classes of the windows in the given splits: one window centred on each object, and
    windows at random positions away from the objects, for example on their shadows or at the edges of the picture.
    """
    found, classes = [], []
    for part in parts:
        coco = COCO(str(folder / "annotations" / f"fan_{part}.json"))
        names = {c["id"]: c["name"] for c in coco.dataset["categories"]}
        for image in coco.dataset["images"]:
            picture = np.array(Image.open(folder / image["file_name"]))
            centres = []
            for a in coco.loadAnns(coco.getAnnIds(image["id"])):
                if names[a["category_id"]] in KINDS:
                    centres.append([int(where.mean()) for where in np.nonzero(coco.annToMask(a))])
                    classes.append(names[a["category_id"]])
            rows, columns = np.nonzero(picture)
            for k in random.choice(len(rows), EMPTY):
                place = [int(rows[k]), int(columns[k])]
                if all(math.dist(place, centre) > WINDOW / 2 for centre in centres):
                    centres.append(place)
                    classes.append(BACKGROUND)
            found.append(features(picture, *np.transpose(centres)))
    return np.concatenate(found), np.array(classes)


def detections(model: Any, picture: Any, step: int = 8, surest: float = 0.4) -> list[tuple[int, int, str]]:
    """Return the (row, column, class) of each detected object in a picture: the window with the highest probability in
    its neighbourhood.
    """
    rows, columns = (a.ravel() for a in np.mgrid[0 : picture.shape[0] : step, 0 : picture.shape[1] : step])
    lit = picture[rows, columns] > 0
    rows, columns = rows[lit], columns[lit]
    chances = model.predict_proba(features(picture, rows, columns))
    chances[:, list(model.classes_).index(BACKGROUND)] = 0.0
    best = chances.max(axis=1)
    found: list[tuple[int, int, str]] = []
    for k in np.argsort(-best, kind="stable"):
        if best[k] < surest:
            break
        if all(math.hypot(rows[k] - r, columns[k] - c) > WINDOW / 2 for r, c, _ in found):
            found.append((int(rows[k]), int(columns[k]), str(model.classes_[chances[k].argmax()])))
    return found


def detection_score(folder: Path, model: Any, part: str) -> tuple[float, float]:
    """Return the precision and the recall of the detector: a detection counts if it is within 32 pixels (1.6 m) of the
    mask of an object of the same class.
    """
    coco = COCO(str(folder / "annotations" / f"fan_{part}.json"))
    names = {c["id"]: c["name"] for c in coco.dataset["categories"]}
    right = claimed = there = 0
    for image in coco.dataset["images"]:
        objects = []
        for a in coco.loadAnns(coco.getAnnIds(image["id"])):
            if names[a["category_id"]] in KINDS:
                rows, columns = np.nonzero(coco.annToMask(a))
                objects.append((rows.mean(), columns.mean(), names[a["category_id"]]))
        there += len(objects)
        for row, column, kind in detections(model, np.array(Image.open(folder / image["file_name"]))):
            claimed += 1
            near = [o for o in objects if o[2] == kind and math.hypot(row - o[0], column - o[1]) < WINDOW / 2]
            if near:
                objects.remove(near[0])
                right += 1
    return right / max(claimed, 1), right / max(there, 1)


def train_and_score(folder: Path) -> dict[str, float]:
    """Return scores on the scenes of the test split; the chance level of the balanced accuracy is 0.25."""
    random = np.random.default_rng(0)
    x, y = windows(folder, ("train", "validation"), random)
    unseen, expected = windows(folder, ("test",), random)
    model = RandomForestClassifier(100, random_state=0).fit(x, y)
    shuffled = RandomForestClassifier(100, random_state=0).fit(x, random.permutation(y))
    scores: dict[str, float] = {"windows": len(y)}
    for name, of in (("", model), (" (shuffled)", shuffled)):
        precision, recall = detection_score(folder, of, "test")
        accuracy = balanced_accuracy_score(expected, of.predict(unseen))
        scores |= {f"accuracy{name}": accuracy, f"precision{name}": precision, f"recall{name}": recall}
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder of the data set")
    parser.add_argument("--scenes", type=int, default=300, help="number of scenes")
    asked = parser.parse_args()
    print(make_dataset(scene, asked.folder, asked.scenes))
    for name, value in train_and_score(asked.folder).items():
        print(f"{name:22} {value:.3g}")


if __name__ == "__main__":
    main()
