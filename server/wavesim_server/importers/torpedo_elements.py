"""Elements that the torpedoes of Fossen's simulators and of HoloOcean have in common."""

from __future__ import annotations

import math
from typing import NamedTuple

from lxml import etree

from wavesim_server.importers.marine_functions import CROSS_FLOW_DENSITY
from wavesim_server.importers.model_draft import ModelDraft


class OpenWaterPropeller(NamedTuple):
    """Propeller with linear curves: diameter in m; KT and KQ at an advance ratio of zero and at the largest one; the
    largest shaft speed in 1/s; lag in s; share of the inflow speed that the wake takes; share of the torque that acts on
    the hull; thrust deduction.
    """

    diameter: float
    advance: float  #: largest advance ratio
    kt: tuple[float, float]
    kq: tuple[float, float]
    limit: float
    lag: float
    wake: float
    torque_share: float
    deduction: float


def add_propeller(draft: ModelDraft, p: OpenWaterPropeller) -> None:
    """Add a propeller at the origin, as in the equations of these simulators."""
    thruster = draft.add(
        "thruster",
        name="propeller",
        position="0 0 0 m",
        direction="1 0 0",
        law="shaft",
        minimum=f"{-p.limit:.12g}",
        maximum=f"{p.limit:.12g}",
        lag=f"{p.lag:.12g} s",
        inflow="total",
        wake=f"{p.wake:.12g}",
    )
    kt, kq = (f"{still:.15g} {(fast - still) / p.advance:.15g}" for still, fast in (p.kt, p.kq))
    etree.SubElement(
        thruster,
        "open-water",
        diameter=f"{p.diameter:.12g} m",
        kt=kt,
        kq=kq,
        torque_share=f"{p.torque_share:.12g}",
        deduction=f"{p.deduction:.12g}",
    )


def add_body_lift(draft: ModelDraft, area: float, span: float, drag: float, efficiency: float, density: float) -> None:
    """Add the lift of the hull for a reference area in m2, a span in m and the density of the water in kg/m3. The lift
    functions of these simulators have their own density, so area and span are scaled.
    """
    scale = CROSS_FLOW_DENSITY / density
    draft.add(
        "body-lift",
        area=f"{area * scale:.15g} m2",
        span=f"{span * math.sqrt(scale):.15g} m",
        drag=f"{drag:.15g}",
        efficiency=f"{efficiency:.12g}",
    )
