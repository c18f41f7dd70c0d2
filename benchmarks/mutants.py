"""How many small changes of the code do the tests notice? Runs mutmut over chosen modules, each with its own tests.

    python -m benchmarks.mutants             all modules; a line for each, and what survived
    python -m benchmarks.mutants area ring   some

mutmut wants the packages side by side and a test selection that is fast and needs no server: so modules and tests are
copied into build/mutants, and the tests run without the project's conftest.py.  It leaves functions with decorators
(properties, context managers) and values of modules as they are.  Exit code 1 when a module stays under the floor.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "build" / "mutants"
PACKAGES = ("broker_sdk/wavesim_sdk", "server/wavesim_server")
FLOOR = 0.9

#: module -> (its file, tests that have to notice)
MODULES: dict[str, tuple[str, tuple[str, ...]]] = {
    "area": ("wavesim_sdk/area.py", ("tests/sdk/test_area.py",)),
    "attach": ("wavesim_sdk/attach.py", ("tests/sdk/test_attach.py", "tests/sdk/test_snapshot.py")),
    "commander": ("wavesim_sdk/commander.py", ("tests/sdk/test_commander.py",)),
    "replies": ("wavesim_sdk/replies.py", ("tests/sdk/test_commander.py",)),
    "ring": ("wavesim_server/ring.py", ("tests/server/test_ring.py",)),
    "resources": ("wavesim_server/resources.py", ("tests/server/test_resources.py",)),
    "watchdog": ("wavesim_server/watchdog.py", ("tests/server/test_watchdog.py",)),
    "kinds": ("wavesim_sdk/wire/kinds.py", ("tests/protocol/test_schema.py",)),
    "schema": ("wavesim_sdk/wire/schema.py", ("tests/protocol/test_schema.py",)),
    "codec": ("wavesim_sdk/wire/codec.py", ("tests/protocol/test_codec.py",)),
    "reliable": ("wavesim_sdk/wire/reliable.py", ("tests/protocol/test_reliable.py",)),
    "strangers": ("wavesim_sdk/wire/strangers.py", ("tests/protocol/test_strangers.py",)),
    "joining": ("wavesim_sdk/wire/joining.py", ("tests/protocol/test_joining.py",)),
    "server": ("wavesim_sdk/wire/server.py", ("tests/protocol/test_service.py", "tests/protocol/test_joining.py")),
    "ended": ("wavesim_sdk/wire/ended.py", ("tests/protocol/test_service.py",)),
    "client": ("wavesim_sdk/wire/client.py", ("tests/protocol/test_client.py", "tests/protocol/test_sessions.py")),
    "state": ("wavesim_sdk/wire/state.py", ("tests/protocol/test_client.py", "tests/protocol/test_sessions.py")),
    "pieces": ("wavesim_sdk/wire/pieces.py", ("tests/protocol/test_client.py",)),
    "seal": ("wavesim_sdk/wire/seal.py", ("tests/protocol/test_keys.py",)),
}

KILLED = {1, 3, 24, -24, 36, 152, 255}  #: exit codes of a worker whose tests failed, or that ran into the time limit
UNTESTED = {5, 33}


def prepare(chosen: list[str]) -> None:
    """A folder as mutmut wants it."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    for package in PACKAGES:
        shutil.copytree(ROOT / package, FOLDER / Path(package).name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tests", FOLDER / "tests", ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
    files = [MODULES[m][0] for m in chosen]
    tests = sorted({t for m in chosen for t in MODULES[m][1]})
    (FOLDER / "setup.cfg").write_text(
        "[mutmut]\n"
        "source_paths =\n" + "".join(f"    {Path(p).name}\n" for p in PACKAGES) + "only_mutate =\n"
        "" + "".join(f"    {f}\n" for f in files) + "pytest_add_cli_args =\n"
        "    --noconftest\n    -p\n    no:cacheprovider\n    -p\n    no:warnings\n    -x\n"
        "pytest_add_cli_args_test_selection =\n" + "".join(f"    {t}\n" for t in tests) + "timeout_multiplier = 2.0\n"
        "timeout_constant = 2.0\n"
        "use_git_change_detection = false\n"
    )
    (FOLDER / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\nmarkers =\n    system\n    data\n")


def survivors(module: str) -> tuple[Counter[str], list[str]]:
    """(how many were killed, survived, ...; names of those that were not killed)."""
    data = json.loads((FOLDER / "mutants" / f"{MODULES[module][0]}.meta").read_text())
    counts, names = Counter[str](), []
    for name, code in data["exit_code_by_key"].items():
        state = "killed" if code in KILLED else "without a test" if code in UNTESTED else "survived"
        counts[state] += 1
        if state != "killed":
            names.append(name)
    return counts, names


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=", ".join(MODULES))
    parser.add_argument("--children", type=int, default=os.cpu_count(), help="processes at a time")
    parser.add_argument("--quiet", action="store_true", help="say only the figures")
    a = parser.parse_args()
    if unknown := set(a.modules) - set(MODULES):
        parser.error(f"there is no module {', '.join(unknown)}; there are {', '.join(MODULES)}")
    chosen = a.modules or list(MODULES)
    prepare(chosen)
    mutmut = [sys.executable, "-m", "mutmut"]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [*mutmut, "run", "--max-children", str(a.children)],
        cwd=FOLDER, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        print(done.stdout[-3000:], done.stderr[-3000:], sep="\n")
        return 2
    low = []
    for module in chosen:
        counts, names = survivors(module)
        share = counts["killed"] / max(counts.total(), 1)
        print(
            f"{module:12} {counts.total():4} mutants, {100 * share:5.1f} % killed; "
            + ", ".join(f"{n} {s}" for s, n in sorted(counts.items()))
        )
        if share < FLOOR:
            low.append(module)
        for name in () if a.quiet else names:
            shown = subprocess.run(
                [*mutmut, "show", name], cwd=FOLDER, env=environment, capture_output=True, text=True, check=False
            )
            changed = [
                line for line in shown.stdout.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")
            ]
            print(f"    {name.rpartition('.')[2]}", *changed, sep="\n        ")
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
