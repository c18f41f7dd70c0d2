"""A device written by a user: one Python file that contains a class. ``wavesim device run`` serves this device.

The class has the methods of a device: ``__init__(self, broker, send, sensors)`` with options as keyword-only arguments,
``step(self, step)``, and either ``receive(self, data)`` or ``connect(self, port, send)``. These class attributes are
optional: ``title``; ``types``, the types of the sensors that it reads; ``required_type``; ``uses_acoustics``; and
``ports``, a mapping from the name of each port to its location.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wavesim_devices.serve import DeviceType, place_of
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.names import suggest_name

WORDS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


class OwnDevice:
    """The device class in a file, with its attributes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.make = _class_of(path)
        self.title = self._attribute("title", path.stem)
        self.types = tuple(self._attribute("types", ()))
        self.required_type = self._attribute("required_type", "")
        self.ports: dict[str, str] = dict(self._attribute("ports", {"port": "pty:"}))

    def _attribute(self, name: str, default: Any) -> Any:
        value = getattr(self.make, name, default)
        if isinstance(default, tuple) and isinstance(value, list):
            value = tuple(value)
        if not isinstance(value, type(default)):
            raise ConfigError(
                f"{self.make.__name__}.{name}: expected {type(default).__name__}, got {value!r}", str(self.path)
            )
        return value

    def device_type(self, texts: Sequence[str] = ()) -> DeviceType:
        """Return the device type with the given options. Each option has the form `NAME=VALUE`."""
        options = self._options(texts)

        def create(broker: Any, send: Any, sensors: dict[str, str]) -> Any:
            try:
                return self.make(broker, send, sensors, **options)
            except Exception as error:
                raise ConfigError(f"{place_of(error)}: {error!r}", str(self.path)) from error

        uses_acoustics = self._attribute("uses_acoustics", False)
        return DeviceType(self.title, create, self.types, self.required_type, uses_acoustics)

    def _options(self, texts: Sequence[str]) -> dict[str, Any]:
        parameters = inspect.signature(self.make.__init__).parameters
        known = {n: p for n, p in parameters.items() if p.kind is inspect.Parameter.KEYWORD_ONLY}
        types = typing.get_type_hints(self.make.__init__)
        options = {}
        for text in texts:
            name, equals, value = text.partition("=")
            if not equals or name not in known:
                more = suggest_name(name, known) or "; the device has no options"
                raise ConfigError(f"unknown option '{text}'{more}; write NAME=VALUE", str(self.path))
            options[name] = self._convert(name, value, types.get(name, str))
        missing = [n for n, p in known.items() if p.default is inspect.Parameter.empty and n not in options]
        if missing:
            raise ConfigError(f"the option {missing[0]} is missing: add --option {missing[0]}=VALUE", str(self.path))
        return options

    def _convert(self, name: str, value: str, kind: type) -> Any:
        try:
            return WORDS[value.lower()] if kind is bool else kind(value)
        except (ValueError, KeyError):
            allowed = "yes or no" if kind is bool else kind.__name__
            raise ConfigError(f"option {name}: invalid value '{value}', expected {allowed}", str(self.path)) from None


def _class_of(path: Path) -> Any:
    """Return the only device class in a file. Raises ConfigError unless the file contains exactly one."""
    if not path.is_file():
        raise ConfigError("there is no such file", str(path))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ConfigError("not a Python file: its name must end in .py", str(path))
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent.resolve()))  # it may import the files beside it
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        where = f"line {error.lineno}" if isinstance(error, SyntaxError) else place_of(error)
        raise ConfigError(f"{where}: {error!r}", str(path)) from error
    finally:
        sys.path.pop(0)
    own = [c for c in vars(module).values() if inspect.isclass(c) and c.__module__ == spec.name]
    found = [c for c in own if hasattr(c, "step") and (hasattr(c, "receive") or hasattr(c, "connect"))]
    if len(found) != 1:
        names = ", ".join(c.__name__ for c in found) or "none"
        raise ConfigError(
            f"expected one class with the methods `step` and `receive` (or `connect`), found {names}", str(path)
        )
    return found[0]
