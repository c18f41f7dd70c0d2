"""Files that the page uploads and files of results, both kept in memory for later requests."""

from __future__ import annotations

import hashlib
import io
import re
import threading
import zipfile
from collections import OrderedDict
from pathlib import Path, PurePosixPath

from wavesim_viz.xml_trees import RequestFailed

MOST_UPLOAD = 64 << 20  #: maximum size of an uploaded file in bytes
MOST_KEPT = 192 << 20  #: maximum total size of all files that are kept; the oldest are dropped
MOST_FILES = 2000  #: maximum number of files that are kept, and of files in a ZIP archive
MOST_DEPTH, MOST_NAME = 8, 120


def clean_name(name: object) -> PurePosixPath:
    """Return the relative path in a file name from the page. Raises RequestFailed if the name is not safe."""
    text = name.replace("\\", "/") if isinstance(name, str) else ""
    parts = [p for p in text.split("/") if p not in ("", ".")]
    safe = all(p != ".." and len(p) <= MOST_NAME and p.isprintable() and not p.startswith("~") for p in parts)
    if not parts or len(parts) > MOST_DEPTH or not safe or text.startswith("/") or ":" in parts[0]:
        raise RequestFailed("invalid file name: use a name without '..', a drive or control characters")
    return PurePosixPath(*parts)


def stem_of(name: str) -> str:
    """Return a base name for files that are derived from a file. It contains only letters, digits, _ and -."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", PurePosixPath(name).stem).strip("-")[:40] or "hull"


class FileStore:
    """Thread-safe store of files by key. When it is full, it drops the least recently used files."""

    def __init__(self) -> None:
        self._files: OrderedDict[str, tuple[str, bytes]] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, name: str, data: bytes, key: str = "") -> str:
        key = key or hashlib.sha256(name.encode() + b"\0" + data).hexdigest()[:24]
        with self._lock:
            self._files[key] = (name, data)
            self._files.move_to_end(key)
            while len(self._files) > MOST_FILES or sum(len(d) for _, d in self._files.values()) > MOST_KEPT:
                self._files.popitem(last=False)
        return key

    def find(self, key: object) -> tuple[str, bytes] | None:
        with self._lock:
            found = self._files.get(str(key))
            if found is not None:
                self._files.move_to_end(str(key))
            return found

    def get(self, key: object) -> tuple[str, bytes]:
        found = self.find(key)
        if found is None:
            raise RequestFailed("the viewer no longer has this upload; open the file again")
        return found


def unpack(data: bytes, folder: Path) -> None:
    """Write the files of a ZIP archive to a folder. Raises RequestFailed if the archive is damaged or too large."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            files = [i for i in archive.infolist() if not i.is_dir()]
            if len(files) > MOST_FILES or sum(i.file_size for i in files) > MOST_UPLOAD:
                raise RequestFailed(
                    f"the archive is too large: at most {MOST_FILES} files and {MOST_UPLOAD >> 20} MiB when unpacked"
                )
            left = MOST_UPLOAD
            for info in files:
                if info.flag_bits & 1:
                    raise RequestFailed("the archive is encrypted; make one without a password")
                with archive.open(info) as file:
                    content = file.read(left + 1)  # the size in the header may be a lie
                left -= len(content)
                if left < 0:
                    raise RequestFailed(f"the archive is too large: at most {MOST_UPLOAD >> 20} MiB when unpacked")
                write_below(folder, clean_name(info.filename), content)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError, ValueError, RuntimeError) as error:
        if isinstance(error, RequestFailed):
            raise
        raise RequestFailed("the ZIP archive is damaged or of an unknown type") from None


def write_below(folder: Path, name: PurePosixPath, content: bytes) -> None:
    target = folder / name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    except OSError as error:
        raise RequestFailed(f"cannot unpack {name.name}: {error.strerror}") from None
