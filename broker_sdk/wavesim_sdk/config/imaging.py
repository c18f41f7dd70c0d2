"""The declaration of what imaging sonars see: materials, what the bed is made of, small targets."""

from __future__ import annotations

from dataclasses import dataclass

from wavesim_sdk.config.schema import Vector, children, choice, flag, key, place, text


@dataclass(frozen=True)
class Material:
    """A surface of your own. `sediment`: by mean grain size (APL-UW TR 9407, 10 to 100 kHz, extrapolated above); `smooth`: Lambert's
    law plus facets of small slopes."""

    name: str = text("Its name; one of the library is replaced.")
    law: str = choice("How it scatters.", ("sediment", "smooth"), "sediment")
    grain: float = key(
        "Mean grain size in phi: -1 sandy gravel, 1.5 medium sand, 6 sandy mud, 9 clay.",
        default=2.5,
        low=-1.0,
        high=9.0,
    )
    lambert: float = key("10 log mu of Lambert's law in dB (smooth).", default=-27.0, low=-100.0, high=0.0)
    reflection: float = key("Pressure reflection of its facets (smooth).", default=0.0, low=0.0, high=1.0)
    slope: float = key("Rms slope of its facets (smooth).", default=0.1, low=0.02, high=0.5)
    patch: float = key(
        "nu of the K distribution of patches (0.5 very patchy, 10 hardly); 0 = uniform.",
        default=0.0,
        low=0.0,
        high=100.0,
    )
    cell: float = key("Length of a patch.", "length", 0.5, low=0.01)
    place: str = place()


@dataclass(frozen=True)
class Region:
    """A part of the bed of another material; where two overlap, the later one counts."""

    material: str = text("Its material.")
    position: Vector = key("Its middle (north, east).", "length", count=2)
    size: Vector = key("Length along its heading, and width.", "length", count=2, low=1e-3)
    heading: float = key("Direction of its length.", "angle", 0.0)
    round: bool = flag("yes: an ellipse; no: a rectangle.", False)
    place: str = place()


@dataclass(frozen=True)
class Ground:
    """What the sea bed is made of."""

    material: str = text("Where no region says anything else.", "fine-sand")
    region: tuple[Region, ...] = children(Region, "A part of another material.")
    place: str = place()


@dataclass(frozen=True)
class Target:
    """A target too small for rays: a point of the closed-form strength of its shape (rigid, larger than a wavelength). It casts no
    shadow, and vehicles do not touch it."""

    name: str = text("Its name, 1 to 31 letters, digits, - and _.")
    position: Vector = key("Where it lies (north, east, down).", "length", count=3)
    shape: str = choice("Its shape.", ("sphere", "cylinder", "plate", "trihedral"), "sphere")
    size: Vector = key(
        "Radius of a sphere or cylinder, width of a plate, edge of a trihedral; then length or height.",
        "length",
        (0.1, 0.5),
        count=2,
        low=1e-4,
    )
    heading: float = key("Of a cylinder's axis; of a plate's normal, which is level.", "angle", 0.0)
    place: str = place()
