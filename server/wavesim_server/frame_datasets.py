"""Data sets of sonar and camera frames for machine learning, from logs and from scenes in a :class:`~wavesim_server.Lab`.

    from wavesim_server import Lab
    from wavesim_server.frame_datasets import make_dataset

    def scene(random, seed):
        lab = Lab(f'<wavesim>... <block position="{random.uniform(5, 20):.3f} 0 11.5 m" size="1 1 1 m"/> ...</wavesim>')
        yield lab.frame("auv", "eye", seed)

    make_dataset(scene, "mines", scenes=300)

All frames of a scene belong to the same split of the data set: training, validation or test. With the same versions of
WaVeSim and NumPy, the same calls write byte-identical files.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.errors import LogError, WaveSimError
from wavesim_sdk.frame_labels import NOTHING, SURFACE, LabelName, LabelNames
from wavesim_sdk.imaging_frames import RECORD, ImagingFrame
from wavesim_sdk.log import frames as frames_of
from wavesim_sdk.log import read, usable
from wavesim_sdk.names import shorten
from wavesim_server.logbook.datasets import SPLIT, part_of
from wavesim_server.logbook.pictures import Picture, pictures, png, run_lengths

__all__ = ["CocoDataset", "FrameDataset", "NumpyDataset", "SceneOrigin", "add_log", "make_dataset"]

INDEX = "dataset.json"
#: name of the file of a frame; the names of bodies and instruments contain no dot
_FRAME_FILE = re.compile(r"(?P<scene>.+)\.[^.]+\.[^.]+\.-?\d+\.(png|labels\.png|npz)")
Scene = Callable[[np.random.Generator, int], Iterable[ImagingFrame]]


@dataclass(frozen=True)
class SceneOrigin:
    """Scene of a data set: its name, which determines its split, and how it was made."""

    name: str
    seed: int
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def part(self) -> str:
        """Split of the data set (training, validation or test) to which all frames of the scene belong. A log belongs
        to the same split as in a data set of missions.
        """
        digest = self.details.get("content_hash") or hashlib.sha256(self.name.encode()).hexdigest()
        return part_of(int(digest[:8], 16) / 2.0**32)


class FrameDataset:
    """Folder with the frames of many scenes. :meth:`add` adds a scene or replaces it; :meth:`close` writes the index.

    This class writes PNG images, and for labelled frames a second image with the label of each pixel.
    """

    format = "png"

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.index = self._read_index()
        #: files of the frames of each scene
        self._files: dict[str, set[Path]] = {}
        for path in [p for pattern in ("*/*", "images/*/*") for p in self.folder.glob(pattern)]:
            if (found := _FRAME_FILE.fullmatch(path.name)) is not None:
                self._files.setdefault(found["scene"], set()).add(path)

    def _read_index(self) -> dict[str, Any]:
        path = self.folder / INDEX
        try:
            found: dict[str, Any] = json.loads(path.read_text())
            if (found["format"], found["version"]) == (f"wavesim-frames-{self.format}", 1):
                return {**found, "scenes": dict(found["scenes"])}
        except FileNotFoundError:
            return {"format": f"wavesim-frames-{self.format}", "version": 1, "split": SPLIT, "scenes": {}}
        except OSError as error:
            raise LogError(f"cannot read {path}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError):
            pass
        raise LogError(f"{path} is not the index of a data set of this format; select another folder")

    def __enter__(self) -> FrameDataset:
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            self.close()

    def add(self, scene: SceneOrigin, frames: Iterable[ImagingFrame]) -> int:
        """Add the frames of a scene, in the chronological order of each instrument; return the number of pictures or, for
        :class:`NumpyDataset`, of files.

        If the data set already contains the scene, the new frames replace its files.
        """
        earlier = self._files.pop(scene.name, set())
        written = 0
        names: dict[int, Iterable[str]] = {}
        by_instrument: dict[tuple[str, str], list[ImagingFrame]] = {}
        try:
            for frame in frames:
                if frame.names is not None:
                    names |= frame.names.objects
                if frame.kind in ("sidescan", "scanning"):  # a picture consists of many pings
                    by_instrument.setdefault((frame.body, frame.name), []).append(frame)
                else:
                    written += self._add_frames(scene, [frame])
            for several in by_instrument.values():
                written += self._add_frames(scene, several)
            for path in earlier - self._files.get(scene.name, set()):
                path.unlink(missing_ok=True)
        except OSError as error:
            raise LogError(f"cannot write to {self.folder}: {error.strerror}") from None
        self.index["scenes"][scene.name] = {
            "part": scene.part,
            "seed": scene.seed,
            "labels": {str(n): list(name) for n, name in sorted(names.items())},
            **scene.details,
        }
        return written

    def _add_frames(self, scene: SceneOrigin, frames: list[ImagingFrame]) -> int:
        """Add consecutive frames of one instrument; return the number of pictures or files."""
        made = list(pictures(frames))
        for picture in made:
            self._write(self._path(scene, picture.frame, picture.view, "png"), png(picture.pixels))
            if picture.labels is not None:
                path = self._path(scene, picture.frame, picture.view, "labels.png")
                self._write(path, png(picture.labels.astype("<i2").view("<u2")))
        return len(made)

    def _path(self, scene: SceneOrigin, frame: ImagingFrame, folder: str, ending: str) -> Path:
        """Return the file of a frame. Raises LogError if a name is not suitable for a file."""
        name = f"{scene.name}.{frame.body}.{frame.name}.{int(frame.record['number']):06}.{ending}"
        if "/" in name or _FRAME_FILE.fullmatch(name) is None:
            raise LogError(f"invalid name for a frame file: '{shorten(name, 100)}'; use a scene name without '/'")
        path = self.folder / folder / name
        self._files.setdefault(scene.name, set()).add(path)
        return path

    def _write(self, path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def close(self) -> None:
        """Write the index of the data set."""
        self._write_json(self.folder / INDEX, {**self.index, "scenes": dict(sorted(self.index["scenes"].items()))})

    def _write_json(self, path: Path, value: Any) -> None:
        try:
            self._write(path, (json.dumps(value, indent=1, allow_nan=False) + "\n").encode())
        except OSError as error:
            raise LogError(f"cannot write {path}: {error.strerror}") from None


class NumpyDataset(FrameDataset):
    """Data set with one NPZ file for each frame: samples, labels, ranges, angles, depths and record."""

    format = "numpy"

    def _add_frames(self, scene: SceneOrigin, frames: list[ImagingFrame]) -> int:
        for frame in frames:
            path = self._path(scene, frame, frame.kind, "npz")
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez(path, **_arrays(frame))
        return len(frames)


def _arrays(frame: ImagingFrame) -> dict[str, Any]:
    found: dict[str, Any] = {name: np.asarray(frame.record[name]) for name in RECORD.names or ()}
    found |= {f"record_{name}": found.pop(name) for name in ("labels", "range", "name", "kind")}
    found["samples"] = frame.image if frame.kind == "camera" else frame.samples
    found |= {name: value for name in ("labels", "depth") if (value := getattr(frame, name)) is not None}
    if frame.kind not in ("camera", "bathymetry", "hydrophone"):
        found |= {"ranges": frame.ranges, "angles": frame.angles}
    return found


class CocoDataset(FrameDataset):
    """Data set in COCO format: PNG images, and for each view and each split of the data set a file with the masks of
    each object, its shadow, the bed and the surface.
    """

    format = "coco"

    def __init__(self, folder: str | Path) -> None:
        super().__init__(folder)
        #: images by view and file name, each with its annotations; an annotation contains the name of its category
        self._images: dict[str, dict[str, tuple[dict[str, Any], list[dict[str, Any]]]]] = {}
        for path in sorted((self.folder / "annotations").glob("*.json")):
            self._read_annotations(path)

    def _read_annotations(self, path: Path) -> None:
        try:
            found = json.loads(path.read_text())
            categories = {c["id"]: (c["name"], c["supercategory"]) for c in found["categories"]}
            own: dict[int, list[dict[str, Any]]] = {}
            for a in found["annotations"]:
                own.setdefault(a["image_id"], []).append({**a, "category_id": categories[a["category_id"]]})
            for image in found["images"]:
                self._images.setdefault(image["view"], {})[image["file_name"]] = image, own.get(image["id"], [])
        except (ValueError, KeyError, TypeError):
            raise LogError(f"{path} is not a valid annotation file; select another folder") from None

    def add(self, scene: SceneOrigin, frames: Iterable[ImagingFrame]) -> int:
        for images in self._images.values():
            for name in [n for n, (image, _) in images.items() if image["scene"] == scene.name]:
                del images[name]
        return super().add(scene, frames)

    def _add_frames(self, scene: SceneOrigin, frames: list[ImagingFrame]) -> int:
        made = list(pictures(frames))
        for picture in made:
            frame = picture.frame
            if picture.labels is None or frame.names is None:
                raise LogError(
                    f"the frames of '{frame.name}' on '{frame.body}' have no labels; set truth=\"yes\" for it in the configuration"
                )
            path = self._path(scene, frame, f"images/{picture.view}", "png")
            self._write(path, png(picture.pixels))
            file_name = str(path.relative_to(self.folder))
            rows, columns = picture.labels.shape
            image = {
                "file_name": file_name,
                "width": columns,
                "height": rows,
                "view": picture.view,
                "scene": scene.name,
                "seed": scene.seed,
                "part": scene.part,
                "body": frame.body,
                "instrument": frame.name,
                "frame": int(frame.record["number"]),
                "time_ns": int(frame.record["time_ns"]),
            }
            self._images.setdefault(picture.view, {})[file_name] = image, list(_annotations(picture, frame.names))
        return len(made)

    def close(self) -> None:
        super().close()
        used = {
            a["category_id"]
            for images in self._images.values()
            for _, annotations in images.values()
            for a in annotations
        }
        categories = {category: n for n, category in enumerate(sorted(used), 1)}
        declared = [{"id": n, "name": name, "supercategory": above} for (name, above), n in categories.items()]
        for view, images in self._images.items():
            for part in SPLIT:
                content: dict[str, Any] = {"info": {"description": f"WaVeSim, {view}, {part}"}, "licenses": []}
                content |= {"images": [], "annotations": [], "categories": declared}
                mine = [of for _, of in sorted(images.items()) if of[0]["part"] == part]
                number = itertools.count(1)
                for n, (image, marked) in enumerate(mine, 1):
                    content["images"].append({**image, "id": n})
                    for a in marked:
                        kept = {**a, "id": next(number), "image_id": n, "category_id": categories[a["category_id"]]}
                        content["annotations"].append(kept)
                self._write_json(self.folder / "annotations" / f"{view}_{part}.json", content)


def _annotations(picture: Picture, names: LabelNames) -> Iterator[dict[str, Any]]:
    """Yield the annotation of each object in a picture; the category is (name, supercategory). A label without a name,
    as in a log from another program, is called `object N` and has the category `object`.
    """
    numbers = [n for n in np.unique(picture.labels).tolist() if n != NOTHING]
    unnamed = {abs(n): LabelName(f"object {abs(n)}", "object") for n in numbers}
    names = LabelNames(names.materials, unnamed | names.objects)
    for number in numbers:
        mask = picture.labels == number
        rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
        x, y = int(columns[0]), int(rows[0])
        above = "shadow" if number < NOTHING else "background" if number <= SURFACE else "object"
        found = {
            "category_id": (names.category(number), above),
            "object": number,
            "name": names[number],
            "bbox": [x, y, int(columns[-1]) - x + 1, int(rows[-1]) - y + 1],
            "area": int(mask.sum()),
            "iscrowd": 0,
            "segmentation": {"size": list(mask.shape), "counts": run_lengths(mask)},
        }
        yield found | ({"caster": names.category(-number)} if above == "shadow" else {})


DATASETS: dict[str, type[FrameDataset]] = {"coco": CocoDataset, "png": FrameDataset, "numpy": NumpyDataset}


def add_log(log: Path, folder: Path, format: str, vehicle: str = "", instrument: str = "") -> tuple[int, str]:
    """Add the frames in a log to a data set as one scene; return the number of files and the split of the data set.

    ``vehicle`` and ``instrument`` select the frames of one body, or those of the instruments with one name.
    """
    found = read(log)
    there = [t.split("/")[2:4] for t, s in found.series.items() if t.startswith("/sonar/") and len(s.records)]
    if not any(vehicle in ("", body) and instrument in ("", name) for body, name in there):
        available = ", ".join(f"{body} {name}" for body, name in sorted(there)) or "none"
        raise LogError(f"{log} has no matching frames; available sonars and cameras: {available}")
    details = {"content_hash": found.content_hash, "configuration_digest": found.metadata.get("digest", "")}
    origin = SceneOrigin(found.content_hash[:16], int(found.metadata.get("seed", 0)), details)
    with DATASETS[format](folder) as dataset, usable(log):
        return dataset.add(origin, frames_of(log, vehicle, instrument)), origin.part


def make_dataset(
    scene: Scene, folder: str | Path, scenes: int | Iterable[int] = 100, format: str = "coco"
) -> dict[str, int]:
    """Make a data set of scenes and return the number of scenes in each split.

    ``scene(random, seed)`` yields the frames of one scene, for example from :meth:`Lab.frame <wavesim_server.Lab.frame>`.
    ``random`` is a NumPy generator with this seed. ``scenes`` is the number of scenes, with the seeds 0, 1, ..., or the
    seeds themselves. ``format`` is `coco`, `png` or `numpy`.

    Scenes that the folder already contains are replaced. Raises LogError if the folder cannot be written.
    """
    if format not in DATASETS:
        raise LogError(f"unknown format '{format}'; use {', '.join(DATASETS)}")
    parts: Counter[str] = Counter()
    with DATASETS[format](folder) as dataset:
        for seed in range(scenes) if isinstance(scenes, int) else scenes:
            origin = SceneOrigin(f"scene-{seed:06}", seed)
            try:
                dataset.add(origin, scene(np.random.default_rng(seed), seed))
            except WaveSimError as error:
                error.add_note(f"in the scene with seed {seed}")
                raise
            parts[origin.part] += 1
    return dict(parts)
