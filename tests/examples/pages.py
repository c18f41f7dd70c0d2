"""Code blocks of the documents, and a reader that follows a page step by step.

What stands on the fence tells the reader what to do::

    ```python title="sail.py"        a file of that name, written into the folder
    ```sh                            commands for the shell, one after the other; each must end well
    ```sh title="terminal 2"         a command that goes on, there; what went on there before is ended by Ctrl-C first
    ```python                        a cell of a notebook: all cells of a page share their names
    ```text                          what the block before it shows; a terminal's is waited for

What is shown must be what comes: words as they stand, numbers to two percent (or the last digit shown), `...` is whatever there is.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

_FENCE = re.compile(r"^( *)```([^\n`]*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_INFO = re.compile(r'(\w*)(?: title="([^"]+)")?')
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.]*\w)")
WAIT_S = 90.0
#: written by a program, which checks them itself
GENERATED = ("COMMANDS.md", "CONFIG.md", "PYTHON.md")


class Block(NamedTuple):
    page: str  #: path in the repository
    language: str
    title: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}: ```{self.language} {self.text.strip().splitlines()[0][:60]}"


def page_blocks(root: Path, page: str) -> list[Block]:
    """All code blocks of a page; ValueError for a fence that tells what nobody knows."""
    found = []
    for indent, info, text in _FENCE.findall((root / page).read_text()):
        info_match = _INFO.fullmatch(info.strip())
        if info_match is None:
            raise ValueError(f"{page}: what does ```{info} mean?")
        found.append(
            Block(page, info_match[1], info_match[2] or "", re.sub(f"^{indent}", "", text, flags=re.MULTILINE))
        )
    return found


def all_blocks(root: Path) -> list[Block]:
    """Those of all pages that people write."""
    pages = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]
    names = [str(page.relative_to(root)) for page in pages if page.name not in GENERATED]
    return [block for name in names for block in page_blocks(root, name)]


def differs(shown: str, found: str, whole: bool = True) -> str:
    """Where what is found is not what is shown, in words; empty: nowhere."""
    shown, parts, at = shown.strip(), [], 0
    for piece in re.finditer(rf"\.\.\.|{_NUMBER.pattern}|\s+", shown):
        any_of_it = r".*?" if piece[0] == "..." else r"\s+" if piece[0].isspace() else rf"({_NUMBER.pattern})"
        parts += [re.escape(shown[at : piece.start()]), any_of_it]
        at = piece.end()
    pattern = "".join(parts) + re.escape(shown[at:])
    match = (re.fullmatch if whole else re.search)(pattern, found.strip(), re.DOTALL)
    if match is None:
        return f"shown:\n{shown}\nfound:\n{found.strip()}"
    numbers = _NUMBER.findall(shown.replace("...", "   "))
    for printed, real in zip(numbers, match.groups(), strict=True):
        last = 10.0 ** -len(printed.partition(".")[2]) if "e" not in printed else 0.0
        if abs(float(printed) - float(real)) > 0.02 * abs(float(printed)) + 1.01 * last * ("." in printed):
            return f"shown {printed}, found {real} in:\n{found.strip()}"
    return ""


class Follower:
    """Follows pages in a folder of its own. ``names``: words of the page that are others here (names of servers)."""

    def __init__(self, folder: Path, environment: dict[str, str], names: dict[str, str]) -> None:
        self.folder, self.environment, self.names = folder, environment, names
        self.terminals: dict[str, tuple[subprocess.Popen[bytes], Path]] = {}
        self.cells: dict[str, Any] = {"__name__": "__main__"}
        self.shown, self.where = "", ""

    def follow(self, blocks: list[Block]) -> None:
        for block in blocks:
            self.step(block._replace(title=self.named(block.title)), self.named(block.text))

    def named(self, text: str) -> str:
        """With the names that hold here."""
        for word, other in self.names.items():
            text = re.sub(rf"\b{re.escape(word)}\b", other, text)
        return text

    def step(self, block: Block, text: str) -> None:
        """One block."""
        if block.language == "text":
            self.compare(block, text)
        elif "." in block.title:
            (self.folder / block.title).write_text(text)
        elif block.language == "sh" and block.title:
            self.open(block, text)
        elif block.language == "sh":
            done = subprocess.run(
                ["bash", "-ec", text],
                cwd=self.folder,
                env=self.environment,
                text=True,
                timeout=300.0,
                check=False,
                capture_output=True,
            )
            assert done.returncode == 0, f"{block} ended with {done.returncode}\n{done.stdout}{done.stderr}"
            self.shown, self.where = done.stdout, ""
        elif block.language == "python":
            output = io.StringIO()
            sys.path.insert(0, str(self.folder))  # as in a notebook, cells import files of the page
            try:
                with contextlib.redirect_stdout(output), contextlib.chdir(self.folder):
                    exec(compile(text, str(block), "exec"), self.cells)
            finally:
                sys.path.remove(str(self.folder))
            self.shown, self.where = output.getvalue(), ""
        else:
            raise AssertionError(f"{block}: who follows the page does not know what to do with it")

    def open(self, block: Block, text: str) -> None:
        """A terminal, in which something goes on."""
        self.close(block.title)
        path = self.folder / f".{block.title.replace(' ', '-')}-{len(list(self.folder.glob('.*')))}"
        with path.open("wb") as out:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {text}"],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        self.terminals[block.title] = process, path
        self.where = block.title

    def compare(self, block: Block, text: str) -> None:
        """What is shown with what came."""
        if not self.where:
            wrong = differs(text, self.shown)
            assert not wrong, f"{block}\n{wrong}"
            return
        process, path = self.terminals[self.where]
        limit = time.monotonic() + WAIT_S
        while wrong := differs(text, path.read_text(errors="replace"), whole=False):
            ended = process.poll() is not None and differs(text, path.read_text(errors="replace"), whole=False)
            assert not ended and time.monotonic() < limit, f"{block}\n{wrong}"
            time.sleep(0.02)

    def close(self, title: str) -> None:
        """Ctrl-C in a terminal."""
        if title not in self.terminals:
            return
        process, path = self.terminals.pop(title)
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            code = process.wait(30)
        finally:
            process.kill()
        said = path.read_text(errors="replace")
        over = code == -signal.SIGINT and "Traceback" not in said  # it had ended by itself: Python was clearing up
        assert code in (0, 130) or over, f"{title} ended with {code}: {said}"

    def end(self) -> None:
        """The page is read; the newest terminal is closed first."""
        for title in reversed(list(self.terminals)):
            self.close(title)


@contextlib.contextmanager
def at_desk(folder: Path, names: dict[str, str]) -> Iterator[Follower]:
    """A follower in a new folder, in an environment of its own where `pip install` changes nothing for others."""
    desk, work = folder / "venv", folder / "work"
    work.mkdir(parents=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", desk], check=True)
    (site,) = desk.glob("lib/python*/site-packages")
    (site / "all.pth").write_text(
        "\n".join(f"import site; site.addsitedir({p!r})" for p in sys.path if p.endswith("site-packages"))
    )
    for name, module in (("wavesim", "wavesim_sdk"), ("pip", "pip")):
        (desk / "bin" / name).write_text(f'#!/bin/sh\nexec "{desk}/bin/python" -m {module} "$@"\n')
        (desk / "bin" / name).chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{desk}/bin{os.pathsep}{os.environ['PATH']}",
        "MPLBACKEND": "Agg",
        "PYTHONUNBUFFERED": "1",
        "PIP_NO_BUILD_ISOLATION": "0",
        "PIP_NO_INDEX": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_QUIET": "1",
    }
    follower = Follower(work, environment, names)
    try:
        yield follower
        follower.end()
    finally:
        for process, _ in reversed(
            follower.terminals.values()
        ):  # of a page that is not true: as gently, but nobody asks how
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30)
            process.kill()
            process.wait()
