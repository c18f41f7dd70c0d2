"""XML parser for untrusted files. It rejects document types and entities, has no network access, and limits the size of
a file.
"""

from __future__ import annotations

from typing import Any

from lxml import etree

from wavesim_sdk.errors import ConfigError

MAX_BYTES = 4 * 1024 * 1024


def parse(data: bytes, place: str = "", *, comments: bool = False) -> Any:
    """Return the root element of an XML document.

    ``place`` is the file name to use in error messages. Raises ConfigError with file and line if the document is
    invalid. Comments are removed unless ``comments`` is set.
    """
    if len(data) > MAX_BYTES:
        raise ConfigError(f"the file has {len(data)} bytes; the maximum is {MAX_BYTES}", place)
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=not comments,
        remove_pis=True,
    )
    broken: etree.XMLSyntaxError | None = None
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        broken = error
    except ValueError as error:  # lxml raises it for data that is not text
        raise ConfigError(f"not well-formed XML: {error}", place) from None
    if (broken and b"<!ENTITY" in data) or (not broken and root.getroottree().docinfo.internalDTD is not None):
        line = data[: max(data.find(b"<!DOCTYPE"), 0)].count(b"\n") + 1
        raise ConfigError("document types and entities are not allowed; remove the <!DOCTYPE>", place, line)
    if broken:
        raise ConfigError(f"not well-formed XML: {broken.msg}", place, broken.lineno or 1)
    return root
