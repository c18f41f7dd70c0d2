"""Generator of wavesim_bridges/mavlink_messages.py. The generated module contains only the messages that the source of
the bridges refers to. The input is a folder with the standard's minimal.xml, standard.xml, common.xml and
ardupilotmega.xml (https://github.com/mavlink/mavlink, message_definitions/v1.0).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

PACKAGE = Path(__file__).parent / "wavesim_bridges"
SOURCES = ("mavlink.py", "mavlink_mission.py", "px4.py", "px4_sensors.py", "aiding.py")
#: messages that are generated without the fields that the standard added later; in TIMESYNC, these fields name a target
#: system, but the bridge answers each TIMESYNC regardless of its target
FIRST_VERSION = {"TIMESYNC"}


def generate(folder: Path) -> str:
    """Return the source text of the generated module."""
    used = set(re.findall(r'"([A-Z0-9_]+)"', "".join((PACKAGE / name).read_text() for name in SOURCES)))
    found = {}
    for part in ("minimal", "standard", "common", "ardupilotmega"):
        for message in ElementTree.parse(folder / f"{part}.xml").getroot().iter("message"):
            if (name := message.get("name")) in used:
                parts: list[list[str]] = [[]]
                for child in message:
                    if child.tag == "extensions" and name in FIRST_VERSION:
                        break
                    if child.tag == "extensions":
                        parts.append([])
                    elif child.tag == "field":
                        kind = child.attrib["type"].replace("uint8_t_mavlink_version", "uint8_t")
                        parts[-1].append(f"{kind} {child.get('name')}")
                found[int(message.attrib["id"])] = f"{name}: " + " | ".join(map(", ".join, parts))
    lines = "".join(f'    {number}: "{text}",\n' for number, text in sorted(found.items()))
    return (
        '"""MAVLink messages, generated from the standard\'s XML by generate_mavlink.py: do not edit."""\n\n'
        f"#: number: name and fields; fields after `|` were added to the standard later\nMESSAGES = {{\n{lines}}}\n"
    )


if __name__ == "__main__":
    (PACKAGE / "mavlink_messages.py").write_text(generate(Path(sys.argv[1])))
