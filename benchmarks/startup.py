"""Measure the imports of an on-board program: processor time, modules and bytes.

    python -m benchmarks.startup [OTHER_CHECKOUT] [--rounds 9]

Each import runs in a separate process. The result is the minimum of the rounds less the time of an empty Python, with
both checkouts in turn.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMPORTS = ("", "numpy", "wavesim_sdk.wire", "wavesim_sdk.onboard", "wavesim_sdk.broker")


def measured(root: Path, module: str) -> tuple[float, ...]:
    """Return the processor time in ms, the number of modules and of our modules, and the bytes of their sources."""
    code = f"""
import os, sys, time
{f"import {module}" if module else ""}
spent = time.process_time_ns()
own = [m for m in list(sys.modules.values()) if m.__name__.startswith("wavesim") and getattr(m, "__file__", None)]
print(spent / 1e6, len(sys.modules), len(own), sum(os.path.getsize(m.__file__) for m in own))
"""
    paths = os.pathsep.join(
        str(root / p) for p in ("broker_sdk", "kernels", "world", "devices", "conformance", "server")
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": paths},
    )
    return tuple(float(x) for x in done.stdout.split()) if done.returncode == 0 else (float("nan"),) * 4


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("other", nargs="?", type=Path)
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    roots = [ROOT, *([args.other] if args.other else [])]
    least: dict[tuple[Path, str], tuple[float, ...]] = {}
    for _ in range(args.rounds):
        for module in IMPORTS:
            for root in roots:
                now = measured(root, module)
                least[root, module] = min(least.get((root, module), now), now)
    print(f"{'import':24}" + "".join(f"{'ms':>10}{'modules':>9}{'ours':>6}{'kB':>7}" for _ in roots))
    for module in IMPORTS[1:]:
        line = f"{module:24}"
        for root in roots:
            ms, modules, own, size = least[root, module]
            line += f"{ms - least[root, ''][0]:10.0f}{modules:9.0f}{own:6.0f}{size / 1000:7.0f}"
        print(line)


if __name__ == "__main__":
    main()
