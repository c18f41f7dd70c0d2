"""Write TypeScript declarations of the viewer's protocol (``page_protocol`` and its parts), in the format of prettier."""

from __future__ import annotations

import dataclasses
import inspect
import json
import textwrap
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

from wavesim_sdk.device_faults import KINDS, PREFIX
from wavesim_sdk.fences import MIN_CORNERS
from wavesim_sdk.wire.items import MAX_ITEM_CORNERS
from wavesim_sdk.wire.messages import NAME_BYTES
from wavesim_viz import frame, page_acoustics, page_content, page_protocol

FILE = Path("viz/web/src/page_protocol.ts")
WIDTH = 120
HEAD = "// Protocol with the viewer's server. Generated from viz/wavesim_viz/page_protocol.py by `make docs`; do not edit.\n"
PLAIN = {int: "number", float: "number", str: "string", bool: "boolean", type(None): "null", Any: "unknown"}
MODULES = (page_content, page_acoustics, page_protocol)
#: numbers of the binary frames, limits of the server, and faults of devices, by their names in TypeScript
CONSTANTS: dict[str, int | str | list[str]] = {
    "BODY_WIDTH": frame.BODY,
    "SIGNAL_WIDTH": frame.SIGNAL,
    "OK": frame.WELL,
    "HELD": frame.HELD,
    "INVALID": frame.INVALID,
    "MAX_ITEM_CORNERS": MAX_ITEM_CORNERS,
    "MIN_CORNERS": MIN_CORNERS,
    "NAME_BYTES": NAME_BYTES,
    "DEVICE_PREFIX": PREFIX,
    "DEVICE_FAULTS": [*KINDS, "none"],
}


def declarations() -> str:
    """Return the whole file."""
    blocks = [HEAD, "".join(f"export const {name} = {_value(value)};\n" for name, value in CONSTANTS.items())]
    names = [module.__name__ for module in MODULES]
    for name, value in {name: v for module in MODULES for name, v in vars(module).items()}.items():
        if inspect.isclass(value) and value.__module__ in names:
            blocks.append(_declared(value))
        elif isinstance(value, types.UnionType):
            blocks.append(_union(name, [_written(v) for v in typing.get_args(value)]))
    return "\n".join(blocks)


def _value(value: int | str | list[str]) -> str:
    if isinstance(value, list):
        return "[\n" + "".join(f"  {json.dumps(v)},\n" for v in value) + "]"
    return json.dumps(value)


def _declared(of: type) -> str:
    fields = typing.get_type_hints(of, include_extras=True)
    head = _comment(inspect.getdoc(of) or "", "")
    if issubclass(of, tuple):
        return f"{head}export type {of.__name__} = [{', '.join(f'{n}: {_written(t)}' for n, t in fields.items())}];\n"
    lines = [f"export interface {of.__name__} {{"]
    if dataclasses.is_dataclass(of) and of in page_protocol.VERBS:
        lines.append(f'  do: "{page_protocol.VERBS[of]}";')
    for name, declared in fields.items():
        kind, doc, optional = _field(declared)
        if doc:
            lines.append(_comment(doc, "  ").rstrip())
        lines.append(f"  {name}{'?' if optional else ''}: {_written(kind)};")
    return head + "\n".join([*lines, "}"]) + "\n"


def _field(declared: Any) -> tuple[Any, str, bool]:
    """Return the type of a field, its documentation, and whether it may be absent."""
    doc, optional = "", False
    while (origin := typing.get_origin(declared)) in (Annotated, NotRequired):
        if origin is Annotated:
            doc = declared.__metadata__[0]
        optional |= origin is NotRequired
        declared = typing.get_args(declared)[0]
    return declared, doc, optional


def _written(of: Any) -> str:
    """Return a type in TypeScript."""
    origin, args = typing.get_origin(of), typing.get_args(of)
    if origin is Literal:
        return " | ".join(f'"{a}"' for a in args)
    if origin in (types.UnionType, typing.Union):
        return " | ".join(dict.fromkeys(_written(a) for a in args))
    if origin is dict:
        return f"Record<string, {_written(args[1])}>"
    if origin is tuple and args[-1] is not Ellipsis:
        return f"[{', '.join(map(_written, args))}]"
    if origin in (list, tuple):
        element = _written(args[0])
        return f"({element})[]" if typing.get_origin(args[0]) in (types.UnionType, typing.Union) else f"{element}[]"
    return PLAIN.get(of) or str(of.__name__)


def _union(name: str, members: list[str]) -> str:
    head, whole = f"export type {name} =", f"{' | '.join(members)};"
    if len(head) + 1 + len(whole) <= WIDTH:
        return f"{head} {whole}\n"
    return f"{head}\n  {whole}\n" if 2 + len(whole) <= WIDTH else "\n  | ".join([head, *members]) + ";\n"


def _comment(text: str, indent: str) -> str:
    text = " ".join(text.replace("``", "`").split())
    line = f"{indent}/** {text} */\n"
    if len(line) <= WIDTH:
        return line
    return "".join(_block(textwrap.wrap(text, WIDTH - len(indent) - 3), indent))


def _block(lines: list[str], indent: str) -> Iterator[str]:
    yield f"{indent}/**\n"
    yield from (f"{indent} * {line}\n" for line in lines)
    yield f"{indent} */\n"
