"""Output of commands. It may contain text from other people's files and programs; such text must not control the
terminal.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click

# C0 and C1 control characters, except tab and newline, and the characters that reverse the direction of text
_CONTROLS = (*range(0x20), *range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_VISIBLE = {c: f"\\u{c:04x}" for c in _CONTROLS if chr(c) not in "\t\n"}


def visible(text: str) -> str:
    """Return a string with its control characters written as `\\uXXXX`."""
    return text.translate(_VISIBLE)


def echo(message: Any = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a line to standard output or, with ``err``, to standard error."""
    click.echo(visible(str(message)), err=err, nl=nl)


def finite_json(values: Any, indent: int | None = None, default: Callable[[Any], Any] | None = None) -> str:
    """Return values as JSON. NaN and infinity become null, because JSON cannot represent them and other programs reject
    them.
    """
    text = json.dumps(values, default=default)
    return json.dumps(json.loads(text, parse_constant=lambda _: None), indent=indent)
