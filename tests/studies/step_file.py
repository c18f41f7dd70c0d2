"""A STEP file (ISO 10303-21, AP214) with one box, written by hand for tests."""

from __future__ import annotations

import itertools
from pathlib import Path


def box(path: Path, size: tuple[float, float, float], unit: str = "MILLI") -> Path:
    """Write a box with one corner at the origin. Its unit is mm, or m for an empty ``unit``."""
    lines: list[str] = []

    def add(text: str) -> str:
        lines.append(f"#{len(lines) + 1}={text};")
        return f"#{len(lines)}"

    def point(p: tuple[float, ...]) -> str:
        return add(f"CARTESIAN_POINT('',({','.join(f'{x:.6f}' for x in p)}))")

    def direction(d: tuple[float, ...]) -> str:
        return add(f"DIRECTION('',({','.join(f'{x:.6f}' for x in d)}))")

    corners = [tuple(s * b for s, b in zip(size, bits, strict=True)) for bits in itertools.product((0, 1), repeat=3)]
    places = [point(c) for c in corners]
    vertices = [add(f"VERTEX_POINT('',{p})") for p in places]
    edges: dict[tuple[int, int], str] = {}
    for a, b in itertools.combinations(range(8), 2):
        if (a ^ b) in (1, 2, 4):
            way = tuple(float(x != y) for x, y in zip(corners[a], corners[b], strict=True))
            vector = add(f"VECTOR('',{direction(way)},1.)")
            line = add(f"LINE('',{places[a]},{vector})")
            edges[a, b] = add(f"EDGE_CURVE('',{vertices[a]},{vertices[b]},{line},.T.)")
    faces = []
    for axis, side in itertools.product(range(3), (0, 1)):
        one, two = (1 << (2 - (axis + 1) % 3), 1 << (2 - (axis + 2) % 3))
        first = side << (2 - axis)
        ring = [first, first | one, first | one | two, first | two]
        ring = ring if side else ring[::-1]
        oriented = []
        for a, b in zip(ring, ring[1:] + ring[:1], strict=True):
            forward = (a, b) in edges
            edge = edges[a, b] if forward else edges[b, a]
            oriented.append(add(f"ORIENTED_EDGE('',*,*,{edge},.{'T' if forward else 'F'}.)"))
        loop = add(f"EDGE_LOOP('',({','.join(oriented)}))")
        bound = add(f"FACE_OUTER_BOUND('',{loop},.T.)")
        normal = tuple((1.0 if side else -1.0) * float(k == axis) for k in range(3))
        across = tuple(float(k == (axis + 1) % 3) for k in range(3))
        frame = add(f"AXIS2_PLACEMENT_3D('',{places[first]},{direction(normal)},{direction(across)})")
        plane = add(f"PLANE('',{frame})")
        faces.append(add(f"ADVANCED_FACE('',({bound}),{plane},.T.)"))
    shell = add(f"CLOSED_SHELL('',({','.join(faces)}))")
    solid = add(f"MANIFOLD_SOLID_BREP('box',{shell})")
    length = add(f"(LENGTH_UNIT()NAMED_UNIT(*)SI_UNIT({f'.{unit}.' if unit else '$'},.METRE.))")
    angle = add("(NAMED_UNIT(*)PLANE_ANGLE_UNIT()SI_UNIT($,.RADIAN.))")
    solid_angle = add("(NAMED_UNIT(*)SI_UNIT($,.STERADIAN.)SOLID_ANGLE_UNIT())")
    accuracy = add(f"UNCERTAINTY_MEASURE_WITH_UNIT(LENGTH_MEASURE(1.E-06),{length},'','')")
    context = add(
        "(GEOMETRIC_REPRESENTATION_CONTEXT(3)"
        f"GLOBAL_UNCERTAINTY_ASSIGNED_CONTEXT(({accuracy}))"
        f"GLOBAL_UNIT_ASSIGNED_CONTEXT(({length},{angle},{solid_angle}))REPRESENTATION_CONTEXT('',''))"
    )
    origin = add(f"AXIS2_PLACEMENT_3D('',{point((0, 0, 0))},{direction((0, 0, 1))},{direction((1, 0, 0))})")
    shape = add(f"ADVANCED_BREP_SHAPE_REPRESENTATION('box',({origin},{solid}),{context})")
    application = add("APPLICATION_CONTEXT('automotive design')")
    product_context = add(f"PRODUCT_CONTEXT('',{application},'mechanical')")
    product = add(f"PRODUCT('box','box','',({product_context}))")
    formation = add(f"PRODUCT_DEFINITION_FORMATION('','',{product})")
    definition_context = add(f"PRODUCT_DEFINITION_CONTEXT('part definition',{application},'design')")
    definition = add(f"PRODUCT_DEFINITION('design','',{formation},{definition_context})")
    whole = add(f"PRODUCT_DEFINITION_SHAPE('','',{definition})")
    add(f"SHAPE_DEFINITION_REPRESENTATION({whole},{shape})")
    head = (
        "ISO-10303-21;\nHEADER;\nFILE_DESCRIPTION((''),'2;1');\n"
        "FILE_NAME('box','2026-01-01T00:00:00',(''),(''),'','','');\nFILE_SCHEMA(('AUTOMOTIVE_DESIGN'));\nENDSEC;\nDATA;\n"
    )
    path.write_text(head + "\n".join(lines) + "\nENDSEC;\nEND-ISO-10303-21;\n", encoding="ascii")
    return path
