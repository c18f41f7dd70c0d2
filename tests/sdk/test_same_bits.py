"""Search the sources for operations whose result depends on the processor, the C library or BLAS, in all code whose
numbers can reach a log.

``tests/e2e/test_trial.py`` shows that the demonstration trial has one hash; this rule also covers code that the trial
does not use, and future code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = (
    "broker_sdk/wavesim_sdk",
    "kernels/wavesim_kernels",
    "world/wavesim_world",
    "devices/wavesim_devices",
    "conformance/wavesim_conformance",
    "server/wavesim_server",
    "emulators/wavesim_emulators",
    "examples/onboard",
)
#: of ``math`` and NumPy: what is not rounded correctly, or summed in an order that the processor chooses
LIBRARY = frozenset(
    """sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh exp exp2 expm1 log log1p log2 log10 pow
    arcsin arccos arctan arctan2 arcsinh arccosh arctanh power float_power hypot cbrt dist geomspace logspace interp dot
    vdot inner matmul tensordot einsum convolve correlate polyfit polyval linalg fft erf gamma lgamma angle sinc
    logaddexp logaddexp2 i0 vecdot matvec vecmat fma""".split()  # noqa: SIM905  # readable
)
_JUDGED = "whether a configuration is refused"
#: (file, folder or function: why its numbers reach no log, or which exception of docs/reliability.md it is)
EXCEPTIONS = {
    "world/wavesim_world/config/semantic_checks.py": _JUDGED,
    "world/wavesim_world/config/validation.py": _JUDGED,
    "world/wavesim_world/config/lines.py::check": _JUDGED,
    "world/wavesim_world/config/instrument_checks.py::_one": _JUDGED,
    "world/wavesim_world/ocean/bed.py::read_soundings": _JUDGED,
    "server/wavesim_server/dynamics/model_compiler.py::check_step": _JUDGED,
    "server/wavesim_server/dynamics/model_compiler.py::check_initial_velocity": _JUDGED,
    "conformance/wavesim_conformance": "a world of its own for testing the parts of others",
    "devices/wavesim_devices": "what is spoken on a wire, rounded to the digits of its protocol",
    "broker_sdk/wavesim_sdk/log.py::Log": "read from a log",
    "broker_sdk/wavesim_sdk/janus/baseband.py": "a receiver of recorded sound: its results are packets",
    "broker_sdk/wavesim_sdk/janus/receiver.py": "a receiver of recorded sound: its results are packets",
    "broker_sdk/wavesim_sdk/guidance/encounters.py": "read from a log",
    "examples/onboard/ofdm_modem.py::OfdmReceiver": "a receiver of sound: its results are packets",
    "examples/onboard/bearing.py": "it prints directions and commands nothing",
    "world/wavesim_world/hull": "models are drafted before a run",
    "world/wavesim_world/ocean/bed.py::TriangulatedBed": "Qhull's triangles; which of two a point on their edge belongs to",
    "world/wavesim_world/ocean/bodies.py::_tree": "SciPy's tree proposes pairs, our own code decides",
    "world/wavesim_world/ocean/volume.py::ScatteredSamples": "SciPy's tree finds neighbours",
    "server/wavesim_server/environment/exposure.py::_read_mss_vessel": "a reader of files",
    "broker_sdk/wavesim_sdk/imaging_frames.py": "images of sonars: outside of the promise",
    "world/wavesim_world/sonars": "images of sonars: outside of the promise",
    "emulators/wavesim_emulators/sonar": "images of sonars: outside of the promise",
    "server/wavesim_server/friction.py": "models are drafted before a run",
    "server/wavesim_server/model_estimate.py": "models are drafted before a run",
    "server/wavesim_server/spheroid.py": "models are drafted before a run",
    "server/wavesim_server/lab.py::States": "what a notebook is shown of a run",
    "server/wavesim_server/importers": "models are drafted before a run",
    "server/wavesim_server/logbook/datasets.py": "exported from a log",
    "server/wavesim_server/logbook/network_report.py": "after a run",
    "server/wavesim_server/logbook/report.py": "after a run",
    "server/wavesim_server/logbook/sonar_rosbag.py": "exported from a log",
    "server/wavesim_server/manoeuvres.py": "tables about models",
    "server/wavesim_server/sailing.py": "tables about models",
    "server/wavesim_server/study.py": "after a run",
    "server/wavesim_server/model_properties.py": "tables about models",
}


def leftovers(source: str) -> Iterator[tuple[str, int, str]]:
    """(class or function, line, what) of everything whose last bits may depend on the machine."""
    for top in ast.parse(source).body:
        where = getattr(top, "name", "(module)")
        for node in ast.walk(top):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                if node.attr in LIBRARY and node.value.id in ("math", "np", "numpy"):
                    yield where, node.lineno, f"{node.value.id}.{node.attr}"
            elif isinstance(node, ast.ImportFrom) and node.module in ("math", "numpy"):
                yield from ((where, node.lineno, f"{node.module}.{n.name}") for n in node.names if n.name in LIBRARY)
            elif isinstance(node, ast.ImportFrom | ast.Import):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [n.name for n in node.names]
                yield from ((where, node.lineno, n) for n in names if n.partition(".")[0] in ("scipy", "cmath"))
            elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
                yield where, node.lineno, "@"
            elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Pow):
                base = node.left if isinstance(node, ast.BinOp) else node.target
                # powers of integers and of two are exact
                if not (isinstance(base, ast.Constant) and (isinstance(base.value, int) or base.value == 2.0)):
                    yield where, node.lineno, "**"


def _found() -> Iterator[tuple[str, str, int, str]]:
    for part in PARTS:
        for path in sorted((ROOT / part).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            yield from ((name, *what) for what in leftovers(path.read_text()))


def test_nothing_is_left_to_the_machine() -> None:
    used, found = set(), []
    for name, where, line, what in _found():
        fitting = [e for e in EXCEPTIONS if f"{name}::{where}".startswith(e)]
        used.update(fitting)
        if not fitting:
            found.append(f"{name}:{line}: {what} in {where}")
    assert not found, "use wavesim_sdk.elementary and .algebra, or say why not:\n" + "\n".join(found)
    assert used == set(EXCEPTIONS), "exceptions that nothing needs any more"


def test_the_rule_sees_what_it_should() -> None:
    bad = """
import scipy.fft
from math import sin
def f(a, b):
    a **= b
    return math.cos(a) + np.linalg.norm(a @ b) + x**2 + 10.0**b + numpy.exp(a)
"""
    seen = [what for _, _, what in leftovers(bad)]
    assert sorted(seen) == sorted(
        ["scipy.fft", "math.sin", "**", "math.cos", "np.linalg", "@", "**", "**", "numpy.exp"]
    )
    good = "from math import pi, sqrt\ny = np.sqrt(a) * 2.0**-53 + 10**6 + elementary.sin(x) + math.floor(z)"
    assert not list(leftovers(good))
