"""Python objects that a user names as text: FILE.py:OBJECT, or MODULE:OBJECT for a module that Python can import."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from wavesim_sdk.errors import ConfigError
from wavesim_sdk.names import suggest_name

__all__ = ["described", "load_object", "run_file"]

#: substrings of file names that identify code not written by the user
_NOT_USERS = ("<frozen", "site-packages", "dist-packages", "wavesim_sdk")


def load_object(text: str, kind: str) -> Any:
    """Load the object that ``text`` names. Raises ConfigError if it does not exist or if its module raises an
    exception.

    ``kind`` is the first word of each message, as in "avoider 'mine.py:Mine': ...". The path of a file is relative to
    the working folder.
    """
    name, _, which = text.rpartition(":")
    if not name or not which:
        raise ConfigError(f"invalid {kind} '{text}': use FILE.py:OBJECT or MODULE:OBJECT")
    try:
        module = run_file(Path(name)) if name.endswith(".py") else importlib.import_module(name)
    except ModuleNotFoundError as error:
        hint = f"; for a file, write {name}.py:{which}" if error.name == name else ""
        raise ConfigError(f"{kind} '{text}': {error}{hint}") from None
    except FileNotFoundError as error:
        raise ConfigError(f"{kind} '{text}': {error}") from None
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        raise ConfigError(f"{kind} '{text}': {described(error)}") from None
    try:
        return getattr(module, which)
    except AttributeError:
        known = [n for n, v in vars(module).items() if callable(v) and getattr(v, "__module__", "") == module.__name__]
        raise ConfigError(f"{kind} '{text}': '{name}' has no object '{which}'{suggest_name(which, known)}") from None


def run_file(path: Path, prefix: str = "file") -> ModuleType:
    """Execute a Python file as a separate module. The file can import other modules in its folder. An exception raised
    by the file propagates to the caller.

    No bytecode is written, because it would also be used for a version of the file that was changed within the same
    second.
    """
    path = path.resolve()
    spec = importlib.util.spec_from_file_location(f"{prefix}_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"file {path} does not exist")
    module = importlib.util.module_from_spec(spec)
    if (folder := str(path.parent)) not in sys.path:
        sys.path.insert(0, folder)
    earlier, writes = sys.modules.get(spec.name), sys.dont_write_bytecode
    sys.modules[spec.name] = module  # dataclasses look up their module
    sys.dont_write_bytecode = True
    try:
        spec.loader.exec_module(module)
    except BaseException:
        if earlier is None:
            del sys.modules[spec.name]
        else:
            sys.modules[spec.name] = earlier
        raise
    finally:
        sys.dont_write_bytecode = writes
    return module


def described(error: BaseException) -> str:
    """Describe an exception in one line: its type, its text and the line of the user's code that raised it."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not any(w in f.filename for w in _NOT_USERS)]
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}{': ' if text else ''}{text}{place}"
