"""Generator of a typed Python module for the bodies in a configuration, for use by editors and type checkers (``wavesim
stubs``).
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Sequence

from wavesim_sdk.actuators import Actuator
from wavesim_sdk.sensors import value_fields
from wavesim_sdk.tables import Table
from wavesim_world.actuators import actuators_of
from wavesim_world.config import BodyConfig, LoadedConfig
from wavesim_world.config.sensors import InstrumentConfig

HEAD = '''"""Bodies of the configuration '{name}' as types. Written by `wavesim stubs`: do not edit."""

# ruff: noqa
from __future__ import annotations

from typing import Literal, Protocol, cast, overload

from wavesim_sdk.broker import Step
'''


def identifier(name: str) -> str:
    """Return a name as a Python identifier."""
    found = re.sub(r"\W", "_", name)
    return f"_{found}" if found[:1].isdigit() else f"{found}_" if keyword.iskeyword(found) else found


def class_name(name: str, taken: set[str]) -> str:
    """Return a class name in CamelCase that is not used yet."""
    words = re.split(r"[\W_]+", name)
    found = "".join(word[:1].upper() + word[1:] for word in words) or "Body"
    found = f"_{found}" if found[0].isdigit() else found
    while found in taken:
        found += "_"
    taken.add(found)
    return found


def module_text(loaded: LoadedConfig) -> str:
    """Return the text of the module: a class of values for each sensor type, and three classes for each body."""
    taken = {"Literal", "Protocol", "Step"}
    bodies = loaded.config.fleet.bodies
    tables = {i.type: i.table for body in bodies for i in loaded.suite(body)}
    values = {type_: class_name(f"{type_}_value", taken) for type_ in sorted(tables)}
    lines = [HEAD.format(name=loaded.config.name.replace('"', "'"))]
    for type_, name in values.items():
        lines += _value_class(name, tables[type_])
    for body in bodies:
        lines += _body_classes(loaded, body, values, taken)
    return "\n".join(lines).rstrip() + "\n"


def _value_class(name: str, table: Table) -> Iterator[str]:
    yield from ("", f"class {name}(Protocol):", f'    """{_one_line(table.doc)}"""', "")
    yield from ("    @property", "    def time_ns(self) -> int: ...")
    for f in value_fields(table):
        kind = "tuple[float, ...]" if f.shape else "float"
        unit = f" ({f.unit})" if f.unit else ""
        yield from ("    @property", f"    def {identifier(f.name)}(self) -> {kind}:")
        yield f'        """{_one_line(f.doc).rstrip(".")}{unit}."""'
    yield ""


def _body_classes(loaded: LoadedConfig, body: BodyConfig, values: dict[str, str], taken: set[str]) -> Iterator[str]:
    name = class_name(body.name, taken)
    sensors = class_name(f"{name}Sensors", taken)
    suite = loaded.suite(body)
    yield from ("", f"class {sensors}(Protocol):", f'    """Sensors of \'{body.name}\' with a valid value."""', "")
    for i in suite:
        if i.name.isidentifier() and not keyword.iskeyword(i.name):
            yield from ("    @property", f"    def {i.name}(self) -> {values[i.type]}: ...")
    yield from _by_key("__getitem__", suite, values, "")
    yield from _by_key("get", suite, values, " | None")
    yield from ("    def __contains__(self, name: object, /) -> bool: ...", "", "")
    model = loaded.model(body.model)
    actuators = actuators_of(model)
    yield from (f"class {name}:", f'    """\'{body.name}\', a body of the model \'{model.name}\'."""', "")
    yield from (f"    name = {body.name!r}", f"    model = {model.name!r}", "")
    yield from ("    @staticmethod", f"    def sensors(step: Step) -> {sensors}:")
    yield from (
        '        """Return the sensors of a step as a typed object."""',
        f"        return cast({sensors}, step.sensors)",
        "",
    )
    if actuators:
        yield from _command_method(actuators)
    yield ""


def _command_method(actuators: Sequence[Actuator]) -> Iterator[str]:
    keywords = "".join(f", {identifier(a.name)}: float | None = None" for a in actuators)
    yield from ("    @staticmethod", f"    def command(*{keywords}) -> dict[str, float]:")
    yield from ('        """Return a command for `Broker.answer`; None = unchanged.', "")
    for a in actuators:
        yield f"        {identifier(a.name)}: {a.minimum:g} to {a.maximum:g} {a.unit}".rstrip()
    yield '        """'
    listed = ", ".join(f"{a.name!r}: {identifier(a.name)}" for a in actuators)
    yield f"        values: dict[str, float | None] = {{{listed}}}"
    yield from ("        return {name: value for name, value in values.items() if value is not None}", "")


def _by_key(method: str, suite: Sequence[InstrumentConfig], values: dict[str, str], absent: str) -> Iterator[str]:
    for i in suite:
        if len(suite) > 1:
            yield "    @overload"
        yield f"    def {method}(self, name: Literal[{i.name!r}], /) -> {values[i.type]}{absent}: ..."


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace('"', "'")
