"""A small S-57 cell by the text of the standards (ISO/IEC 8211, IHO S-57 ed. 3.1 part 3), with soundings, a depth
contour and a depth area.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

UNIT, END = b"\x1f", b"\x1e"
FACTOR, DEEP = 10_000_000, 10  #: of coordinates and of depths
#: tag -> (structure and type, name, subfields, formats)
FIELDS = {
    "0001": ("0500", "ISO 8211 Record Identifier", "", "(b12)"),
    "DSID": (
        "1600",
        "Data Set Identification",
        "RCNM!RCID!EXPP!INTU!DSNM!EDTN!UPDN!UADT!ISDT!STED!PRSP!PSDN!PRED!PROF!AGEN!COMT",
        "(b11,b14,2b11,3A,2A(8),R(4),b11,2A,b11,b12,A)",
    ),
    "DSSI": (
        "1600",
        "Data Set Structure Information",
        "DSTR!AALL!NALL!NOMR!NOCR!NOGR!NOLR!NOIN!NOCN!NOED!NOFA",
        "(3b11,8b14)",
    ),
    "DSPM": (
        "1600",
        "Data Set Parameter",
        "RCNM!RCID!HDAT!VDAT!SDAT!CSCL!DUNI!HUNI!PUNI!COUN!COMF!SOMF!COMT",
        "(b11,b14,3b11,b14,4b11,2b14,A)",
    ),
    "FRID": ("1600", "Feature Record Identifier", "RCNM!RCID!PRIM!GRUP!OBJL!RVER!RUIN", "(b11,b14,2b11,2b12,b11)"),
    "FOID": ("1600", "Feature Object Identifier", "AGEN!FIDN!FIDS", "(b12,b14,b12)"),
    "ATTF": ("2600", "Feature Record Attribute", "*ATTL!ATVL", "(b12,A)"),
    "FSPT": ("2600", "Feature Record to Spatial Record Pointer", "*NAME!ORNT!USAG!MASK", "(B(40),3b11)"),
    "VRID": ("1600", "Vector Record Identifier", "RCNM!RCID!RVER!RUIN", "(b11,b14,b12,b11)"),
    "VRPT": ("2600", "Vector Record Pointer", "*NAME!ORNT!USAG!TOPI!MASK", "(B(40),4b11)"),
    "SG2D": ("2600", "2-D Coordinate", "*YCOO!XCOO", "(2b24)"),
    "SG3D": ("2600", "3-D Coordinate (Sounding Array)", "*YCOO!XCOO!VE3D", "(3b24)"),
}
DATASET, PARAMETERS, FEATURE, ISOLATED, CONNECTED, EDGE = 10, 20, 100, 110, 120, 130
POINT, LINE, AREA = 1, 2, 3
DEPARE, DEPCNT, LNDARE, SOUNDG = 42, 43, 71, 129  #: object classes
DRVAL1, DRVAL2, VALDCO = 87, 88, 174  #: attributes
Place = tuple[float, float]  #: latitude, longitude in degrees


def _record(fields: Sequence[tuple[str, bytes]], descriptive: bool = False) -> bytes:
    """Leader, directory and fields: lengths of four digits, positions of five."""
    directory, area = b"", b""
    for tag, data in fields:
        directory += f"{tag}{len(data):04d}{len(area):05d}".encode()
        area += data
    directory += END
    base, middle = 24 + len(directory), b"3LE1 09" if descriptive else b" D     "
    head = f"{base + len(area):05d}".encode() + middle + f"{base:05d}".encode()
    return head + (b" ! " if descriptive else b"   ") + b"4504" + directory + area


def _described() -> bytes:
    """The first record: what fields there are."""
    under = {
        "DSID": "0001",
        "DSSI": "DSID",
        "DSPM": "0001",
        "FRID": "0001",
        "FOID": "FRID",
        "ATTF": "FRID",
        "FSPT": "FRID",
        "VRID": "0001",
        "VRPT": "VRID",
        "SG2D": "VRID",
        "SG3D": "VRID",
    }
    tree = "".join(parent + child for child, parent in under.items())
    fields = [("0000", b"0000;&   " + UNIT + tree.encode() + END)]
    for tag, (kind, name, subfields, formats) in FIELDS.items():
        fields.append((tag, f"{kind};&   {name}".encode() + UNIT + subfields.encode() + UNIT + formats.encode() + END))
    return _record(fields, descriptive=True)


def _name(kind: int, number: int) -> bytes:
    return struct.pack("<BI", kind, number)


def _place(at: Place) -> bytes:
    return struct.pack("<2i", *(round(v * FACTOR) for v in at))


class Cell:
    """Records, one after the other."""

    def __init__(self) -> None:
        self._records: list[list[tuple[str, bytes]]] = []
        self._spatial = self._features = 0
        texts = UNIT.join((b"TEST0001.000", b"1", b"0")) + UNIT + b"2026010120260101" + b"03.1"
        self._add(
            (
                "DSID",
                struct.pack("<BIBB", DATASET, 1, 1, 5)
                + texts
                + b"\x01"
                + UNIT
                + UNIT
                + struct.pack("<BH", 1, 65000)
                + UNIT,
            ),
            ("DSSI", struct.pack("<3B8I", 2, 1, 1, *[0] * 8)),
        )
        self._add(
            ("DSPM", struct.pack("<BI3BI4B2I", PARAMETERS, 1, 2, 23, 23, 10_000, 1, 1, 1, 1, FACTOR, DEEP) + UNIT)
        )

    def _add(self, *fields: tuple[str, bytes]) -> None:
        number = struct.pack("<H", len(self._records) + 1)
        self._records.append([("0001", number + END), *((tag, data + END) for tag, data in fields)])

    def _vector(self, kind: int, *fields: tuple[str, bytes]) -> bytes:
        self._spatial += 1
        self._add(("VRID", struct.pack("<BIHB", kind, self._spatial, 1, 1)), *fields)
        return _name(kind, self._spatial)

    def _feature(self, kind: int, primitive: int, attributes: dict[int, str], spatial: bytes) -> None:
        self._features += 1
        number = self._features
        more = [("ATTF", b"".join(struct.pack("<H", a) + v.encode() + UNIT for a, v in attributes.items()))]
        self._add(
            ("FRID", struct.pack("<BIBBHHB", FEATURE, number, primitive, 2, kind, 1, 1)),
            ("FOID", struct.pack("<HIH", 65000, number, 1)),
            *(more if attributes else []),
            ("FSPT", spatial),
        )

    def soundings(self, points: Sequence[tuple[float, float, float]]) -> None:
        """Latitude, longitude, depth in m."""
        data = b"".join(_place((lat, lon)) + struct.pack("<i", round(d * DEEP)) for lat, lon, d in points)
        node = self._vector(ISOLATED, ("SG3D", data))
        self._feature(SOUNDG, POINT, {}, node + bytes((255, 255, 255)))

    def _edge(self, points: Sequence[Place]) -> bytes:
        ends = [self._vector(CONNECTED, ("SG2D", _place(p))) for p in (points[0], points[-1])]
        pointers = b"".join(end + bytes((255, 255, k, 255)) for k, end in enumerate(ends, 1))
        middle = [("SG2D", b"".join(map(_place, points[1:-1])))] if len(points) > 2 else []
        return self._vector(EDGE, ("VRPT", pointers), *middle)

    def contour(self, depth: float, points: Sequence[Place]) -> None:
        self._feature(DEPCNT, LINE, {VALDCO: f"{depth:g}"}, self._edge(points) + bytes((1, 255, 255)))

    def area(self, kind: int, points: Sequence[Place], attributes: dict[int, str]) -> None:
        """``points`` once around; the first one is not repeated."""
        half = len(points) // 2
        sides = self._edge(points[: half + 1]), self._edge([*points[half:], points[0]])
        self._feature(kind, AREA, attributes, b"".join(s + bytes((1, 1, 255)) for s in sides))

    def write(self, path: Path) -> Path:
        path.write_bytes(_described() + b"".join(map(_record, self._records)))
        return path
