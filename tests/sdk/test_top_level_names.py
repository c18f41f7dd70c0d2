"""`from wavesim import Broker`: names at the top, which cost nothing until they are used."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sdk.test_client_alone import run_alone

FILES = {"wavesim": "wavesim/wavesim/__init__.py", "wavesim_sdk": "broker_sdk/wavesim_sdk/__init__.py"}
WANTED = {
    "wavesim": {"Broker", "AsyncBroker", "Lab", "Trial", "Observer", "read_log", "Estimate"},
    "wavesim_sdk": {"Broker", "AsyncBroker", "Observer", "read_log", "Estimate"},
}


@pytest.mark.parametrize("package", FILES)
def test_each_name_is_there_and_typed(root: Path, package: str) -> None:
    module = importlib.import_module(package)
    assert WANTED[package] <= set(module.__all__) == module._PLACES.keys() and set(module.__all__) <= set(dir(module))
    assert all(getattr(module, name) is not None for name in module.__all__)
    typed = [
        a
        for n in ast.walk(ast.parse((root / FILES[package]).read_text()))
        if isinstance(n, ast.ImportFrom)
        for a in n.names
    ]
    assert set(module.__all__) <= {a.asname or a.name for a in typed}, "a type checker sees the same names"
    with pytest.raises(AttributeError, match="has no attribute 'Brokr'"):
        _ = module.Brokr


@pytest.mark.parametrize("package", FILES)
def test_the_import_alone_loads_no_other_module(root: Path, package: str) -> None:
    code = (
        f"import sys, {package}; print(sorted(m for m in sys.modules if m.startswith(('wavesim', 'numpy', 'numba'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert ast.literal_eval(done.stdout) == [package]


def test_the_client_side_without_the_server() -> None:
    done = run_alone("from wavesim_sdk import AsyncBroker, Broker, Observer, read_log; print(Broker.__name__)")
    assert (done.stdout, done.stderr) == ("Broker\n", "")
