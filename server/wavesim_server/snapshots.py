"""Snapshots: the complete state of a simulation at a tick. A snapshot can be stored in a file and restored.

    snapshot = lab.snapshot()
    lab.run(60.0)
    lab.restore(snapshot)        # the next run is identical to the last bit
    snapshot.write("before-turn.snapshot")

A snapshot contains all attributes of the simulation and, through them, all arrays and queues. It omits only the objects
that follow from the configuration and never change (see :func:`constants`), and the caches that an object omits in its
``__getstate__``. If new state is added to the classes of the simulation, it therefore becomes part of a snapshot
without further code.

The state is stored with :mod:`pickle`, but reading a file cannot run other code: a snapshot contains only arrays, plain
values, and instances of the classes in :func:`_is_permitted`.
"""

from __future__ import annotations

import builtins
import dataclasses
import enum
import hashlib
import importlib
import io
import json
import os
import pickle
import types
import zlib
from collections import Counter, OrderedDict, deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from wavesim_sdk import __version__
from wavesim_sdk.errors import InvalidArgument
from wavesim_server.row_pool import CACHE_LINE
from wavesim_world.config import LoadedConfig, library

__all__ = ["Snapshot", "capture", "constants", "read_state"]

MAGIC = b"WaVeSim snapshot\n"
FORMAT = 1
MAX_HEADER_BYTES = 4096
FAST = 1  #: compression level of zlib: most of a snapshot consists of zeros, which any level removes


class Simulated(Protocol):
    """Attributes and methods of a simulation that this module uses."""

    loaded: LoadedConfig
    tick: int
    step_ns: int
    seed: int
    water: Any
    tick_executor: Any
    weather_model: Any
    line_system: Any
    contacts: Any
    channel: Any


@dataclass(frozen=True)
class Snapshot:
    """The complete state of a simulation at a tick.

    ``digest`` is the digest of the configuration, and ``version`` is the version of WaVeSim. A snapshot can be restored
    only with the same configuration, in the same version.
    """

    name: str  #: name of the configuration
    digest: str
    version: str
    tick: int
    step_ns: int
    seed: int
    data: bytes = dataclasses.field(repr=False)  #: the compressed state

    @property
    def time_s(self) -> float:
        """Simulation time of the snapshot in seconds."""
        return self.tick * self.step_ns * 1e-9

    def write(self, path: str | Path) -> None:
        """Write the snapshot to a file. An earlier file is replaced only when the new one is complete."""
        path = Path(path)
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "data"}
        header = json.dumps({"format": FORMAT, **values, "sha256": hashlib.sha256(self.data).hexdigest()})
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            part.write_bytes(MAGIC + header.encode() + b"\n" + self.data)
            part.replace(path)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise InvalidArgument(f"cannot write the snapshot '{path}': {error.strerror}") from None

    @classmethod
    def read(cls, path: str | Path) -> Snapshot:
        """Read a snapshot from a file. Raises InvalidArgument if the file is not a complete snapshot."""
        try:
            with Path(path).open("rb") as file:
                if file.read(len(MAGIC)) != MAGIC:
                    raise InvalidArgument(f"'{path}' is not a WaVeSim snapshot")
                head, data = json.loads(file.readline(MAX_HEADER_BYTES)), file.read()
            values = {f.name: head[f.name] for f in dataclasses.fields(cls) if f.name != "data"}
            kinds = {"name": str, "digest": str, "version": str, "tick": int, "step_ns": int, "seed": int}
            if head["format"] != FORMAT or not all(type(values[k]) is kind for k, kind in kinds.items()):
                raise ValueError("header")
            if head["sha256"] != hashlib.sha256(data).hexdigest():
                raise InvalidArgument(f"the snapshot '{path}' is damaged or incomplete")
        except OSError as error:
            raise InvalidArgument(f"cannot read the snapshot '{path}': {error.strerror}") from None
        except InvalidArgument:
            raise
        except (ValueError, KeyError, TypeError):
            raise InvalidArgument(
                f"the snapshot '{path}' has an unknown format; use the WaVeSim that wrote it"
            ) from None
        return cls(**values, data=data)

    def check(self, loaded: LoadedConfig) -> None:
        """Raise InvalidArgument if the snapshot belongs to another configuration or version."""
        if self.version != __version__:
            raise InvalidArgument(
                f"the snapshot was made with WaVeSim {self.version}, but this is WaVeSim {__version__}; use the same version"
            )
        if self.digest != loaded.digest:
            raise InvalidArgument(
                f"the snapshot belongs to another configuration: '{self.name}' (digest {self.digest[:12]}), but this is "
                f"'{loaded.config.name}' ({loaded.digest[:12]}); use the unchanged configuration"
            )


def constants(simulation: Simulated) -> dict[str, Any]:
    """Return the objects that follow from the configuration and never change. A snapshot refers to them by name."""
    s, loaded = simulation, simulation.loaded
    bed = s.tick_executor.environment.sea_bed
    found: dict[str, Any] = {
        "loaded": loaded,
        "config": loaded.config,
        "world": loaded.config.world,
        "acoustics": loaded.config.acoustics,
        "water": s.water,
        "bed": bed.parameters,
        "soundings": bed.mesh,
        "flow volume": s.weather_model.flow.values,
        "sound field": s.channel.medium.field_c,
        "bed of the lines": s.line_system.bed,
        "obstacles": s.contacts.memory.obstacles,
    }
    found |= {f"library {name}": model for name, model in library().items()}
    found |= {f"model {name}": model for name, model in loaded.models.items()}
    found |= {f"body {body.name}": body for body in loaded.config.fleet.bodies}
    return {name: value for name, value in found.items() if value is not None}


def capture(simulation: Simulated, attributes: dict[str, Any], **parts: Any) -> Snapshot:
    """Return a snapshot of some attributes of a simulation, and of ``parts`` that belong to it.

    Raises InvalidArgument if an attribute cannot be stored, for example because a user's class is not permitted.
    """
    shared = {id(value): name for name, value in constants(simulation).items()}
    stream = io.BytesIO()
    try:
        _Writer(stream, shared, simulation).dump({"simulation": attributes, **parts})
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise InvalidArgument(f"the simulation contains an object that a snapshot cannot store: {error}") from None
    loaded = simulation.loaded
    return Snapshot(
        loaded.config.name,
        loaded.digest,
        __version__,
        simulation.tick,
        simulation.step_ns,
        simulation.seed,
        zlib.compress(stream.getbuffer(), FAST),
    )


def read_state(simulation: Simulated, snapshot: Snapshot) -> dict[str, Any]:
    """Return what :func:`capture` has stored, for use in a simulation with the same configuration.

    Raises InvalidArgument if the snapshot belongs to another configuration or version, or if it is damaged.
    """
    snapshot.check(simulation.loaded)
    try:
        state: dict[str, Any] = _Reader(
            io.BytesIO(zlib.decompress(snapshot.data)), constants(simulation), simulation
        ).load()
    except (pickle.UnpicklingError, zlib.error, ValueError, TypeError, LookupError, AttributeError, EOFError) as error:
        raise InvalidArgument(f"the snapshot of '{snapshot.name}' is damaged: {error}") from None
    return state


# -- encoding --------------------------------------------------------------------------------------


class _Writer(pickle.Pickler):
    def __init__(self, stream: io.BytesIO, shared: dict[int, str], simulation: Simulated) -> None:
        super().__init__(stream, 5)
        self._shared, self._simulation = shared, simulation
        self._owners: dict[int, _Memory] = {}

    def persistent_id(self, value: Any) -> str | None:
        if value is self._simulation:
            return "simulation"
        return self._shared.get(id(value))

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return self._reduce_array(value)
        if isinstance(value, np.generic) and not isinstance(value, np.void):
            return _make_scalar, (value.dtype.str, value.tobytes())
        if isinstance(value, types.MethodType):
            return _bound_method, (value.__self__, value.__name__)
        if isinstance(value, type) and not _is_permitted(value):
            raise pickle.PicklingError(f"class {value.__module__}.{value.__qualname__}")
        return NotImplemented

    def _reduce_array(self, array: Any) -> Any:
        """Store the memory of an array once, however many arrays share it, and the array as a view of this memory."""
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        if array.dtype.hasobject:
            raise pickle.PicklingError("an array of Python objects")
        if not owner.flags.c_contiguous:
            owner = array = np.ascontiguousarray(array)
        memory = self._owners.get(id(owner))
        if memory is None:
            memory = self._owners[id(owner)] = _Memory(owner)
        offset = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
        descr = _describe(array.dtype)
        return _make_view, (
            memory,
            array.shape,
            descr,
            offset,
            array.strides,
            isinstance(array, np.recarray),
            array.flags.writeable,
        )


class _Memory:
    """The memory of an array. Restored memory has the same position within a cache line, because the speed of a kernel
    depends on it.
    """

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def __reduce__(self) -> Any:
        address = self.owner.__array_interface__["data"][0]
        return _make_memory, (self.owner.tobytes(), address % CACHE_LINE)


def _make_memory(data: bytes, residue: int) -> Any:
    room = np.zeros(len(data) + CACHE_LINE, np.uint8)
    first = (residue - room.__array_interface__["data"][0]) % CACHE_LINE
    memory = room[first : first + len(data)]
    memory[:] = np.frombuffer(data, np.uint8)
    return memory


def _make_view(
    memory: Any, shape: Any, descr: Any, offset: int, strides: Any, is_records: bool, is_writable: bool
) -> Any:
    array = np.ndarray(shape, _dtype(descr), memory, offset, strides)
    array.flags.writeable = is_writable
    return array.view(np.recarray) if is_records else array


def _describe(dtype: Any) -> Any:
    return np.lib.format.dtype_to_descr(np.dtype(dtype) if dtype.names is None else np.dtype(dtype.descr))


def _dtype(descr: Any) -> Any:
    return np.lib.format.descr_to_dtype(descr)


def _make_scalar(kind: str, data: bytes) -> Any:
    return np.frombuffer(data, kind)[0]


def _bound_method(owner: Any, name: str) -> Any:
    """Return a method of an object of the project."""
    if not _is_permitted(type(owner)) or name.startswith("__"):
        raise pickle.UnpicklingError(f"method {name}")
    return types.MethodType(getattr(type(owner), name), owner)


_FUNCTIONS = {f.__name__: f for f in (_make_memory, _make_view, _make_scalar, _bound_method)}
_BUILTINS = {"complex", "frozenset", "set", "slice", "bytearray"}
_COLLECTIONS = {"Counter": Counter, "OrderedDict": OrderedDict, "deque": deque}
#: classes that are neither data classes nor named tuples
_CLASSES = frozenset(
    {
        "wavesim_server.acoustics.channel.AcousticChannel",
        "wavesim_server.acoustics.hydrophones.Hydrophones",
        "wavesim_server.contacts.Contacts",
        "wavesim_server.dynamics.fleet.ActuatorState",
        "wavesim_server.dynamics.fleet.FleetDynamics",
        "wavesim_server.entry_checks.EntryChecker",
        "wavesim_server.environment.exposure.ResponseOperators",
        "wavesim_server.environment.weather_model.WeatherModel",
        "wavesim_server.fences.Fences",
        "wavesim_server.identity_map.IdentityMap",
        "wavesim_server.line_system.LineSystem",
        "wavesim_server.occupants.Occupants",
        "wavesim_server.result_tables.ResultTables",
        "wavesim_server.row_pool.RowPool",
        "wavesim_server.start_clearance.StartClearance",
        "wavesim_server.stratification.Stratification",
        "wavesim_server.tick_executor.TickExecutor",
    }
)
_PREFIXES = ("wavesim_server.", "wavesim_world.", "wavesim_sdk.", "wavesim_emulators.")


def _is_permitted(kind: type[Any]) -> bool:
    """Return whether a snapshot may contain instances of a class. The construction of a permitted class only stores
    values.
    """
    if kind.__module__ == "builtins":
        return kind.__name__ in _BUILTINS or kind in (int, float, str, bytes, bool, tuple, list, dict, type(None))
    if not kind.__module__.startswith(_PREFIXES):
        return kind in _COLLECTIONS.values()
    if f"{kind.__module__}.{kind.__qualname__}" in _CLASSES:
        return True
    is_record = dataclasses.is_dataclass(kind) or issubclass(kind, enum.Enum)
    return is_record or (issubclass(kind, tuple) and hasattr(kind, "_fields"))


class _Reader(pickle.Unpickler):
    def __init__(self, stream: io.BytesIO, shared: dict[str, Any], simulation: Simulated) -> None:
        super().__init__(stream)
        self._shared = {**shared, "simulation": simulation}

    def persistent_load(self, name: Any) -> Any:
        return self._shared[name]

    def find_class(self, module: str, name: str) -> Any:
        if module == __name__ and name in _FUNCTIONS:
            return _FUNCTIONS[name]
        if module == "builtins" and name in _BUILTINS:
            return getattr(builtins, name)
        if module == "collections" and name in _COLLECTIONS:
            return _COLLECTIONS[name]
        if module.startswith(_PREFIXES) and "." not in name:
            kind = getattr(importlib.import_module(module), name, None)
            if isinstance(kind, type) and _is_permitted(kind):
                return kind
        raise pickle.UnpicklingError(f"class {module}.{name}")
