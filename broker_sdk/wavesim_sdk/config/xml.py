"""The one way in for XML: no entities, no document types, no network, no endless files."""

from __future__ import annotations

from typing import Any

from lxml import etree

from wavesim_sdk.errors import ConfigError

MAX_BYTES = 4 * 1024 * 1024


def parse(data: bytes, place: str = "", *, comments: bool = False) -> Any:
    """The root element. ConfigError with the ``place`` (a file) and line if it cannot be read; comments are left out, unless
    they are wanted."""
    if len(data) > MAX_BYTES:
        raise ConfigError(f"the file has {len(data)} bytes; at most {MAX_BYTES} are read", place)
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=not comments, remove_pis=True
    )  # fmt: skip
    broken: etree.XMLSyntaxError | None = None
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        broken = error
    except ValueError as error:  # what lxml takes for no text at all
        raise ConfigError(f"not well-formed XML: {error}", place) from None
    if (broken and b"<!ENTITY" in data) or (not broken and root.getroottree().docinfo.internalDTD is not None):
        line = data[: max(data.find(b"<!DOCTYPE"), 0)].count(b"\n") + 1
        raise ConfigError("document types and entities are not allowed; remove the <!DOCTYPE>", place, line)
    if broken:
        raise ConfigError(f"not well-formed XML: {broken.msg}", place, broken.lineno or 1)
    return root
