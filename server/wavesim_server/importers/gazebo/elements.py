"""Elements of an XML description, with a record of those that the reader has used."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from lxml import etree

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.kinematics import euler_to_rotation, quaternion_to_rotation
from wavesim_server.importers.gazebo.frames import IDENTITY, RigidPose

Element = etree._Element
_TAG_PREFIX = re.compile(r"(</?)([A-Za-z_][\w.-]*):(?=[A-Za-z_])")
_ATTRIBUTE_PREFIX = re.compile(r"(\s)(?!xmlns)([A-Za-z_][\w.-]*):([A-Za-z_][\w.-]*\s*=\s*[\"'])")
#: settings of the renderer, the physics engine and the message bus; they have no meaning for a model
IRRELEVANT = frozenset(
    [
        "material",
        "surface",
        "self_collide",
        "selfCollide",
        "enable_wind",
        "kinematic",
        "gravity",
        "turnGravityOff",
        "static",
        "allow_auto_disable",
        "always_on",
        "alwaysOn",
        "visualize",
        "cast_shadows",
        "transparency",
        "meta",
        "visibility_flags",
        "laser_retro",
        "max_contacts",
        "maxContacts",
        "provide_feedback",
        "provideFeedback",
        "implicitSpringDamper",
        "physics",
        "mu1",
        "mu2",
        "kp",
        "kd",
        "minDepth",
        "maxVel",
        "dampingFactor",
        "safety_controller",
        "calibration",
        "transmission",
        "disableFixedJointLumping",
        "preserveFixedJoint",
        "frame",
        "plane_index",
        "submesh",
        "cutoff",
        "lens",
        "save",
        "trigger_topic",
        "camera_info_topic",
        "anti_aliasing",
        "visualise",
        "light",
        "projector",
        "audio_sink",
        "audio_source",
        "update_rate_hint",
        "author",
        "description",
        "version",
        "license",
        "sdf-version",
    ]
)


def load(path: Path) -> Element:
    """Return the root of an XML file. Prefixes, which these files rarely declare, become part of the names: `gz:type`
    becomes `gz-type`.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"cannot read the file: {error.strerror}", str(path)) from None
    except UnicodeDecodeError:
        raise ConfigError("the file is not a text in UTF-8", str(path)) from None
    return parse(text, path)


def parse(text: str, path: Path) -> Element:
    """Return the root of an XML text; see :func:`load`."""
    text = _ATTRIBUTE_PREFIX.sub(r"\1\2-\3", _TAG_PREFIX.sub(r"\1\2-", text))
    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True)
    try:
        root = etree.fromstring(text.encode(), parser)
    except etree.XMLSyntaxError as error:
        raise ConfigError(f"the file is not valid XML: {error.msg}", f"{path}:{error.lineno}") from None
    return root


class ElementUse:
    """Record of the elements that a reader has used. :meth:`unused` lists the others with their paths."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: list[str] = []
        self._used: set[Element] = set()

    def fail(self, element: Element, problem: str) -> ConfigError:
        """Return the error for an invalid element."""
        return ConfigError(f"{describe(element)}: {problem}", f"{self.path}:{element.sourceline}")

    def mark(self, element: Element | None) -> None:
        """Mark an element itself as used."""
        if element is not None:
            self._used.add(element)

    def mark_all(self, element: Element | None) -> None:
        """Mark an element and everything in it as used."""
        if element is not None:
            self._used.update(element.iter())

    def child(self, parent: Element | None, *tags: str) -> Element | None:
        """Return the first child with one of the tags, and mark it."""
        for tag in tags:
            found = None if parent is None else parent.find(tag)
            if found is not None:
                self._used.add(found)
                return found
        return None

    def text(self, parent: Element | None, tag: str, default: str = "") -> str:
        """Return the text of a child, and mark it."""
        found = self.child(parent, tag)
        return default if found is None else (found.text or "").strip()

    def flag(self, parent: Element | None, tag: str, default: bool) -> bool:
        """Return a truth value."""
        return self.text(parent, tag, "1" if default else "0").lower() in ("1", "true")

    def number(self, parent: Element | None, tag: str, default: float) -> float:
        """Return the number in a child, or the default if there is no such child."""
        found = self.child(parent, tag)
        if found is not None and not (found.text or "").strip():
            self.notes.append(f"{describe(found)}: the element is empty; its default is {default:g}")
            return default
        return default if found is None else self.numbers(found, 1)[0]

    def vector(self, parent: Element | None, tag: str, default: tuple[float, ...]) -> Floats:
        """Return the numbers in a child, as many as in the default."""
        found = self.child(parent, tag)
        return np.array(default if found is None else self.numbers(found, len(default)))

    def numbers(self, element: Element, count: int = 0, content: str | None = None) -> list[float]:
        """Return the numbers in the text of an element or in another text of it. Raises ConfigError."""
        content = (element.text or "") if content is None else content
        try:
            values = [float(n) for n in content.replace(",", " ").split()]
        except ValueError:
            raise self.fail(element, f"expected numbers, got '{content.strip()[:60]}'") from None
        if (count and len(values) != count) or not np.isfinite(values).all():
            raise self.fail(element, f"expected {count or 'finite'} numbers, got '{content.strip()[:60]}'")
        return values

    def pose(self, element: Element | None) -> RigidPose:
        """Return the pose in an SDF element <pose>: position and angles, or a quaternion."""
        if element is None:
            return IDENTITY
        self._used.add(element)
        if not (element.text or "").strip():
            return IDENTITY
        if element.get("rotation_format") == "quat_xyzw":
            n = self.numbers(element, 7)
            return RigidPose(quaternion_to_rotation([n[6], *n[3:6]]), np.array(n[:3]))
        n = self.numbers(element, 6)
        turn = np.radians(n[3:]) if element.get("degrees", "").lower() in ("1", "true") else n[3:]
        return RigidPose(euler_to_rotation(turn), np.array(n[:3]))

    def unused(self, root: Element) -> tuple[list[str], list[str]]:
        """Return the elements that were not used, and the numbers of those without a meaning for a model."""
        lost: list[str] = []
        none = Counter[str]()
        self._walk(root, lost, none)
        return lost, [f"{count} x <{tag}>" for tag, count in sorted(none.items())]

    def _walk(self, element: Element, lost: list[str], none: Counter[str]) -> None:
        if element.tag in IRRELEVANT:
            none[element.tag] += 1
        elif element in self._used:
            for inner in element:
                self._walk(inner, lost, none)
        elif element.tag in ("link", "joint", "model", "gazebo", "visual", "collision", "sensor") and len(element):
            lost.append(describe(element))
        elif len(element) and element.tag != "plugin":
            for inner in element:
                self._walk(inner, lost, none)
        else:
            lost.append(f"{describe(element)}{_value(element)}")


def _value(element: Element) -> str:
    content = " ".join((element.text or "").split())[:60]
    values = content or ", ".join(f"{k!s}={v!s}" for k, v in element.attrib.items() if k != "name")[:80]
    return f" = {values}" if values and element.tag != "plugin" else ""


def describe(element: Element) -> str:
    """Return the path of an element by names, such as `link base_link / sensor imu / noise`."""
    return " / ".join(reversed(list(_steps(element))))


def _steps(element: Element | None) -> Iterator[str]:
    while element is not None and element.tag not in ("sdf", "robot", "world"):
        name = element.get("name") or element.get("reference") or ""
        if element.tag == "plugin":
            name = f"{name} ({element.get('filename', '')})"
        yield f"{element.tag} {name}".strip()
        element = element.getparent()
