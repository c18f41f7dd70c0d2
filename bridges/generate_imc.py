"""Generator of wavesim_bridges/imc.py. The generated module contains only the messages and constants that the source of
the bridge to DUNE refers to, as `imc.Message` and `imc.Message.PREFIX_CONSTANT`. The input is IMC.xml from LSTS
(https://github.com/LSTS/imc).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

PACKAGE = Path(__file__).parent / "wavesim_bridges"
#: for each type in the standard, the Python type and the format letter in a layout
TYPES = {
    "uint8_t": ("int", "B"),
    "int8_t": ("int", "b"),
    "uint16_t": ("int", "H"),
    "int16_t": ("int", "h"),
    "uint32_t": ("int", "I"),
    "int32_t": ("int", "i"),
    "int64_t": ("int", "q"),
    "fp32_t": ("float", "f"),
    "fp64_t": ("float", "d"),
    "plaintext": ("str", "t"),
    "rawdata": ("bytes", "r"),
    "message-list": ("tuple[ImcMessage, ...]", "l"),
}


def generate(xml: Path) -> str:
    """Return the source text of the generated module."""
    used = set(re.findall(r"\bimc\.(\w+(?:\.[A-Z]+_\w+)?)", "".join(p.read_text() for p in PACKAGE.glob("dune*.py"))))
    messages = {name.partition(".")[0] for name in used}
    root = ElementTree.parse(xml).getroot()
    enumerations = {one.get("abbrev"): one for one in root.iter("def")}
    classes, found = [], set()
    for message in root.iter("message"):
        if (name := message.attrib["abbrev"]) not in messages:
            continue
        found.add(name)
        layout, fields, constants = "", [], []
        for field in message.iter("field"):
            (kind, code), unit = TYPES[field.attrib["type"]], field.get("unit")
            layout += code
            fields.append(f"{field.get('abbrev')}: {kind}" + (f"  #: {unit}" if unit else ""))
            values = enumerations.get(field.get("enum-def"), field)
            for value in values.iter("value"):
                constant = f"{values.get('prefix')}_{value.get('abbrev')}"
                if f"{name}.{constant}" in used:
                    found.add(f"{name}.{constant}")
                    constants.append(f"{constant} = {int(value.attrib['id'], 0)}")
        body = "\n    ".join(fields + constants) or "pass"
        classes.append(f'class {name}(ImcMessage, number={message.get("id")}, layout="{layout}"):\n    {body}\n')
    if missing := (used | messages) - found:
        raise SystemExit(f"{xml} does not define {', '.join(sorted(missing))}")
    return (
        f'"""IMC {root.get("version")} messages, generated from IMC.xml by generate_imc.py: do not edit."""\n\n'
        "from __future__ import annotations\n\n"
        "from wavesim_bridges.imc_codec import ImcMessage\n\n\n" + "\n\n".join(classes)
    )


if __name__ == "__main__":
    (PACKAGE / "imc.py").write_text(generate(Path(sys.argv[1])))
