"""Messages of ``/acoustics``, with which the page requests rays, transmission loss and sections of the sound speed.

This module is a part of the protocol of the page (``page_protocol.py``). Positions are in W. The viewer passes each
request to its acoustics process (``acoustics_process.py``).
"""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from wavesim_viz.page_content import Numbers

AcousticsKind = Literal["rays", "loss", "section"]
PlaneKind = Literal["vertical", "horizontal"]


class AcousticsRequest(TypedDict):
    """Rays between two positions, or a field in the vertical plane through them or in a horizontal plane."""

    kind: AcousticsKind
    source: tuple[float, float, float]
    receiver: tuple[float, float, float]
    time: Annotated[float, "simulation time, s"]
    frequency: Annotated[float, "carrier, Hz"]
    depth: Annotated[float | None, "depth of a horizontal plane, m; null: vertical plane"]


class SoundRay(TypedDict):
    """Path along which sound arrives."""

    time: Annotated[float, "travel time, s"]
    loss: Annotated[float, "transmission loss, dB"]
    surface: Annotated[int, "number of reflections by the surface"]
    bed: Annotated[int, "number of reflections by the sea bed"]
    launch: Annotated[float, "launch angle below the horizontal, degrees"]
    error: Annotated[float, "error of the range computed from the travel time and the nominal sound speed, m"]
    blocked: Annotated[str, "obstacle that blocks the path; empty: none"]
    followed: Annotated[bool, "whether the simulation follows this path"]
    points: Annotated[list[float], "points of the path in W, one after the other"]


class RaysAnswer(TypedDict):
    """Rays between two positions, in the order of their travel times."""

    rays: list[SoundRay]
    notes: Annotated[list[str], "restrictions of the answer, one sentence each"]


class FieldAnswer(TypedDict):
    """Transmission loss or sound speed at the points of a grid in a plane.

    In a vertical plane, the columns are distances from the source and the rows are depths. In a horizontal
    plane, the columns are east and the rows are north.
    """

    plane: PlaneKind
    unit: Annotated[str, "dB or m/s"]
    columns: Annotated[list[float], "coordinate of each column, m"]
    rows: Annotated[list[float], "coordinate of each row, m"]
    values: Annotated[list[Numbers], "row by row; null: no sound, or no water"]
    bed: Annotated[Numbers, "depth of the sea bed at each column, m; empty: unknown, or a horizontal plane"]
    notes: Annotated[list[str], "restrictions of the answer, one sentence each"]
