"""Reader of a configuration without the files that it refers to, for example from a log on another machine."""

from __future__ import annotations

from lxml import etree

from wavesim_world.config import xml
from wavesim_world.config.build import library
from wavesim_world.config.load import load_text
from wavesim_world.config.loaded import LoadedConfig

#: XML elements that refer to other files
_ELEMENTS = ("program", "soundings", "volume", "samples", "mesh", "scalar", "include", "mission")
_KEYS = {"acoustics": ("file",), "network": ("keys", "address"), "hydrophone": ("elements",)}

#: elements whose files describe the water, the sea bed or obstacles
_WATER = ("soundings", "volume", "samples", "mesh", "scalar")


def omitted_water(text: str) -> tuple[str, ...]:
    """Return the elements of a configuration that use files to describe the water, its bed or obstacles.
    :func:`load_standalone` omits these elements.
    """
    root = xml.parse(text.encode())
    found = [f"<{tag}>" for tag in _WATER if root.find(f".//{tag}") is not None]
    return (*found, *("<acoustics>" for element in root.findall("acoustics") if element.get("file")))


def load_standalone(text: str) -> tuple[LoadedConfig, bool]:
    """Return a configuration without the elements that need other files, and whether its sea bed is read from a file.

    Bodies whose models are in another file are omitted. A sound speed that needs a file becomes constant. Raises
    ConfigError if the text is not a valid configuration.
    """
    root = xml.parse(text.encode())
    root.attrib.pop("files", None)  # of logs of former releases
    surveyed = root.find(".//soundings") is not None
    for tag in _ELEMENTS:
        for element in root.findall(f".//{tag}"):
            parent = element.getparent()
            if parent is not None:
                parent.remove(element)
    for tag, names in _KEYS.items():
        for element in root.iter(tag):
            for name in names:
                element.attrib.pop(name, None)
    for element in root.findall("acoustics"):
        if element.get("profile") in ("file", "volume"):
            element.attrib.pop("profile")
            element.attrib.pop("refinement", None)
    known = {*library(), *(str(m.get("name")) for m in root.findall("models/model"))}
    for body in root.findall("fleet/*"):
        if body.tag in ("vehicle", "buoy") and body.get("model") not in known:
            body.getparent().remove(body)
    return load_text(etree.tostring(root, encoding="unicode")), surveyed
