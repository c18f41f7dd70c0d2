"""Compare what the viewer's server and its page exchange with the declaration in ``wavesim_viz.page_protocol``."""

from __future__ import annotations

import dataclasses
import json
import struct
import types
import typing
from collections.abc import Iterator
from typing import Annotated, Any, Literal, NotRequired

from wavesim_viz.page_protocol import VERBS, ImageHeader, MosaicTileHeader, ServerMessage


def faults(value: Any, declared: Any, at: str = "") -> Iterator[str]:
    """Yield where and how a decoded JSON value differs from its declared type."""
    origin, args = typing.get_origin(declared), typing.get_args(declared)
    if origin in (Annotated, NotRequired):
        yield from faults(value, args[0], at)
    elif origin in (types.UnionType, typing.Union):
        found = [list(faults(value, a, at)) for a in args]
        yield from min(found, key=len)
    elif origin is Literal:
        if value not in args:
            yield f"{at}: {value!r} is none of {args}"
    elif origin is dict:
        if not isinstance(value, dict):
            yield f"{at}: {value!r:.60} is no object"
            return
        for key, v in value.items():
            yield from faults(v, args[1], f"{at}.{key}")
    elif origin is list or (origin is tuple and args[-1] is Ellipsis):
        if not isinstance(value, list):
            yield f"{at}: {value!r:.60} is no list"
            return
        for k, v in enumerate(value):
            yield from faults(v, args[0], f"{at}[{k}]")
    elif origin is tuple or (isinstance(declared, type) and issubclass(declared, tuple)):
        kinds = args or tuple(typing.get_type_hints(declared).values())
        if not isinstance(value, list) or len(value) != len(kinds):
            yield f"{at}: {value!r:.60} has not {len(kinds)} items"
            return
        for k, (v, kind) in enumerate(zip(value, kinds, strict=True)):
            yield from faults(v, kind, f"{at}[{k}]")
    elif typing.is_typeddict(declared) or dataclasses.is_dataclass(declared):
        yield from _object_faults(value, declared, at)
    elif declared is float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            yield f"{at}: {value!r:.60} is no number"
    elif declared is not Any and type(value) is not declared:
        yield f"{at}: {value!r:.60} is no {declared.__name__}"


def _object_faults(value: Any, declared: Any, at: str) -> Iterator[str]:
    fields = typing.get_type_hints(declared, include_extras=True)
    if declared in VERBS:
        fields["do"] = Literal[VERBS[declared]]  # type: ignore[valid-type]
    if not isinstance(value, dict):
        yield f"{at}: {value!r:.60} is no object"
        return
    optional = {n for n, kind in fields.items() if typing.get_origin(kind) is NotRequired}
    yield from (f"{at}.{n} is missing" for n in fields.keys() - optional - value.keys())
    yield from (f"{at}.{n} is not declared" for n in value.keys() - fields.keys())
    for name in value.keys() & fields.keys():
        yield from faults(value[name], fields[name], f"{at}.{name}")


def _by_tag() -> dict[str, type]:
    kinds = typing.get_args(ServerMessage)
    return {typing.get_args(typing.get_type_hints(kind)["type"])[0]: kind for kind in kinds}


MESSAGES = _by_tag()
REQUESTS = {verb: kind for kind, verb in VERBS.items()}


class Listener:
    """Check each payload of a websocket; ``seen`` counts the kinds of messages and requests."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.faults: list[str] = []

    def received(self, payload: str | bytes) -> None:
        """Check a payload from the server."""
        if isinstance(payload, str):
            message = json.loads(payload)
            self._check(message, MESSAGES.get(message["type"]), message["type"])
        elif payload[:4] == b"WVS1":
            (size,) = struct.unpack_from("<I", payload, 4)
            self._check(json.loads(payload[8 : 8 + size]), ImageHeader, "image")
        elif payload[:4] == b"WVM1":
            (size,) = struct.unpack_from("<I", payload, 4)
            self._check(json.loads(payload[8 : 8 + size]), MosaicTileHeader, "mosaic tile")
        else:
            assert payload[:4] == b"WVF1", payload[:4]

    def sent(self, payload: str | bytes) -> None:
        """Check a payload from the page."""
        request = json.loads(payload)
        self._check(request, REQUESTS.get(request["do"]), f"do {request['do']}")

    def _check(self, value: Any, declared: type | None, name: str) -> None:
        self.seen.add(name)
        self.faults += faults(value, declared, name) if declared is not None else [f"{name} is not declared"]
