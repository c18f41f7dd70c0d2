"""FBX 7.4 files for tests, as text and binary: named meshes with a position, a vertical axis and a unit."""

from __future__ import annotations

import struct
from typing import Any, TypeAlias

Node: TypeAlias = tuple[str, list[Any], list[Any]]
#: name -> vertices, faces, position
Meshes: TypeAlias = dict[str, tuple[list[list[float]], list[list[int]], tuple[float, float, float]]]


class Id(int):
    """Object number, of 64 bits."""

    __repr__ = int.__repr__


def _property(name: str, kind: str, label: str, flags: str, *values: Any) -> Node:
    return ("P", [name, kind, label, flags, *values], [])


def _document(meshes: Meshes, up: int, unit_cm: float) -> list[Node]:
    front, side = {1: (2, 0), 2: (1, 0)}[up]
    objects: list[Node] = []
    links: list[Node] = []
    for k, (name, (vertices, faces, at)) in enumerate(meshes.items()):
        shape, model = Id(1000 + 10 * k), Id(1001 + 10 * k)
        # the last vertex of a face is written as its complement
        index = [i if j < len(f) - 1 else -i - 1 for f in faces for j, i in enumerate(f)]
        numbers = [float(x) for v in vertices for x in v]
        objects.append(
            (
                "Geometry",
                [shape, ("Geometry", name), "Mesh"],
                [("GeometryVersion", [124], []), ("Vertices", [numbers], []), ("PolygonVertexIndex", [index], [])],
            )
        )
        moved = _property("Lcl Translation", "Lcl Translation", "", "A", *map(float, at))
        objects.append(
            ("Model", [model, ("Model", name), "Mesh"], [("Version", [232], []), ("Properties70", [], [moved])])
        )
        links += [("C", ["OO", model, Id(0)], []), ("C", ["OO", shape, model], [])]
    settings = [
        _property("UpAxis", "int", "Integer", "", up),
        _property("UpAxisSign", "int", "Integer", "", 1),
        _property("FrontAxis", "int", "Integer", "", front),
        _property("FrontAxisSign", "int", "Integer", "", 1 if up == 1 else -1),
        _property("CoordAxis", "int", "Integer", "", side),
        _property("CoordAxisSign", "int", "Integer", "", 1),
        _property("UnitScaleFactor", "double", "Number", "", float(unit_cm)),
    ]
    return [
        ("FBXHeaderExtension", [], [("FBXHeaderVersion", [1003], []), ("FBXVersion", [7400], [])]),
        ("GlobalSettings", [], [("Version", [1000], []), ("Properties70", [], settings)]),
        ("Definitions", [], [("Version", [100], []), ("Count", [2], [])]),
        ("Objects", [], objects),
        ("Connections", [], links),
    ]


def text(meshes: Meshes, up: int = 1, unit_cm: float = 1.0) -> bytes:
    """A file in the form of text."""
    return ("; FBX 7.4.0 project file\n" + _text(_document(meshes, up, unit_cm), 0) + "\n").encode()


def _text(nodes: list[Node], depth: int) -> str:
    out, tab = [], "\t" * depth
    for name, properties, children in nodes:
        if properties and isinstance(properties[0], list):
            numbers = ",".join(map(repr, properties[0]))
            out.append(f"{tab}{name}: *{len(properties[0])} {{\n{tab}\ta: {numbers}\n{tab}}}")
            continue
        shown = ", ".join(
            f'"{p[0]}::{p[1]}"' if isinstance(p, tuple) else f'"{p}"' if isinstance(p, str) else repr(p)
            for p in properties
        )
        inner = f" {{\n{_text(children, depth + 1)}\n{tab}}}" if children or not properties else ""
        out.append(f"{tab}{name}: {shown}{inner}")
    return "\n".join(out)


def binary(meshes: Meshes, up: int = 1, unit_cm: float = 1.0) -> bytes:
    """A file in the binary form, as most programs write it."""
    out = b"Kaydara FBX Binary  \0\x1a\0" + struct.pack("<I", 7400)
    for node in _document(meshes, up, unit_cm):
        out += _record(node, len(out))
    return out + bytes(13)


def _value(p: Any) -> bytes:
    if isinstance(p, tuple):
        p = f"{p[1]}\0\1{p[0]}"
    if isinstance(p, str):
        return b"S" + struct.pack("<I", len(p.encode())) + p.encode()
    if isinstance(p, Id):
        return b"L" + struct.pack("<q", p)
    if isinstance(p, int):
        return b"I" + struct.pack("<i", p)
    if isinstance(p, float):
        return b"D" + struct.pack("<d", p)
    kind = "d" if isinstance(p[0], float) else "i"
    data = struct.pack(f"<{len(p)}{kind}", *p)
    return kind.encode() + struct.pack("<III", len(p), 0, len(data)) + data


def _record(node: Node, at: int) -> bytes:
    name, properties, children = node
    values = b"".join(map(_value, properties))
    head, inner = 13 + len(name), b""
    for child in children:
        inner += _record(child, at + head + len(values) + len(inner))
    if children:
        inner += bytes(13)
    end = at + head + len(values) + len(inner)
    return struct.pack("<IIIB", end, len(properties), len(values), len(name)) + name.encode() + values + inner
