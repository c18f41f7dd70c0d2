"""The end of a participant's output file: its last lines, and the line of the user's program in a traceback."""

from __future__ import annotations

import re
from pathlib import Path

import wavesim_sdk

LAST_LINES, LAST_BYTES, LINE_LENGTH = 4, 2**16, 200  # how much of a failed participant's output a message quotes
_FRAME = re.compile(r'[ |]*File "(?P<file>.+)", line (?P<line>\d+)')
_LIBRARY = Path(wavesim_sdk.__file__).parent


def read_last_lines(path: Path) -> list[str]:
    """Return the last lines of an output file, which may be large. Return no lines if the file does not exist."""
    if not path.exists():
        return []
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - LAST_BYTES))
        return file.read().decode(errors="replace").strip().splitlines()


def own_line(lines: list[str], folder: Path) -> str:
    """Return the innermost line of a user's program in the last traceback, such as ``auv.py:12: turn(rudder)``.

    ``folder`` is the folder of the program. The result is empty if there is no traceback, or if none of its frames is
    in the program.
    """
    found = ""
    for k, line in enumerate(lines):
        if "Traceback (most recent call last)" in line:
            found = ""
        elif (match := _FRAME.match(line)) is not None:
            path = Path(match["file"])
            if path.is_relative_to(folder) and "site-packages" not in path.parts and not path.is_relative_to(_LIBRARY):
                code = lines[k + 1].strip(" |") if k + 1 < len(lines) and not _FRAME.match(lines[k + 1]) else ""
                found = f"{path.relative_to(folder)}:{match['line']}" + (f": {code}" if code else "")
    return found[:LINE_LENGTH]


def final_words(lines: list[str]) -> str:
    """Return the last line. If the output ends with a traceback, this line states the exception. The characters that
    Python draws around an exception group are removed.
    """
    said = [text for line in lines if (text := line.strip(" |+-"))]
    return said[-1][:LINE_LENGTH] if said else "no output"
