"""Measure how many small changes to the code the tests detect. Runs mutmut over selected modules with their tests.

    python -m benchmarks.mutants               all modules; one line for each, and the surviving mutants
    python -m benchmarks.mutants area ring     some modules
    python -m benchmarks.mutants --again seal  only the mutants that survived last time, with the present tests

mutmut requires the packages side by side and a fast selection of tests without a server. Modules and tests are
therefore copied to build/mutants, and the tests run without the project's conftest.py, whose start compiles the
kernels. mutmut does not change functions with decorators (properties, context managers), values of modules and
f-strings. Texts for people (strings with a blank) are not changed here, because other words are not a defect. Values in
a module's cache were computed before the change: tests of such a module empty it first. Exit code 1 when a module stays
below the floor.

Mutants of commander, replies, attach and resources leave message queues and semaphores with odd names. Space for queues
is limited (ulimit -q): if tests fail for lack of it, mount /dev/mqueue and remove those queues.
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
PACKAGES = ("broker_sdk/wavesim_sdk", "world/wavesim_world", "kernels/wavesim_kernels", "server/wavesim_server")
FLOOR = 0.9


def _tests(folder: str, *names: str) -> tuple[str, ...]:
    return tuple(f"tests/{folder}/test_{name}.py" for name in names)


#: module -> (its file, tests that must detect its mutants)
MODULES: dict[str, tuple[str, tuple[str, ...]]] = {
    "strangers": ("wavesim_sdk/wire/address_validation.py", _tests("protocol", "strangers")),
    "joining": ("wavesim_sdk/wire/joining.py", _tests("protocol", "joining", "rekeying")),
    "session": ("wavesim_sdk/wire/session.py", _tests("protocol", "service", "joining")),
    "reliable": ("wavesim_sdk/wire/reliable.py", _tests("protocol", "reliable")),
    "seal": ("wavesim_sdk/wire/seal.py", _tests("protocol", "keys", "rekeying")),
    "server": ("wavesim_sdk/wire/server.py", _tests("protocol", "service", "joining", "keys", "rekeying", "sessions")),
    "ended": ("wavesim_sdk/wire/recently_ended.py", _tests("protocol", "service")),
    "client": ("wavesim_sdk/wire/client.py", _tests("protocol", "client", "sessions", "keys", "rekeying")),
    "codec": ("wavesim_sdk/wire/codec.py", _tests("protocol", "codec")),
    "state": ("wavesim_sdk/wire/state.py", _tests("protocol", "client", "sessions")),
    "pieces": ("wavesim_sdk/wire/state_parts.py", _tests("protocol", "client")),
    "kinds": ("wavesim_sdk/wire/value_types.py", _tests("protocol", "schema", "document")),
    "schema": ("wavesim_sdk/wire/schema.py", _tests("protocol", "schema", "document")),
    "document": ("wavesim_sdk/wire/protocol_export.py", _tests("protocol", "document")),
    "vectors": ("wavesim_sdk/wire/vectors.py", _tests("protocol", "document")),
    "batch": ("wavesim_sdk/wire/sendmmsg.py", _tests("protocol", "batch")),
    "udp": ("wavesim_sdk/wire/udp.py", _tests("protocol", "udp")),
    "link": ("wavesim_sdk/wire/link.py", _tests("protocol", "link")),
    "area": ("wavesim_sdk/shared_memory.py", _tests("sdk", "area")),
    "attach": ("wavesim_sdk/attach.py", _tests("sdk", "attach", "snapshot")),
    "commander": ("wavesim_sdk/commander.py", _tests("sdk", "commander")),
    "replies": ("wavesim_sdk/reply_queue.py", _tests("sdk", "commander")),
    "ring": ("wavesim_server/ring.py", _tests("server", "ring")),
    "resources": ("wavesim_server/resources.py", _tests("server", "resources")),
    "watchdog": ("wavesim_server/watchdog.py", _tests("server", "watchdog")),
    "lockstep": ("wavesim_server/network/lockstep.py", _tests("server", "lockstep")),
    "publish": ("wavesim_server/network/front_tables.py", _tests("server", "publish")),
    "states": ("wavesim_server/network/state_datagrams.py", _tests("server", "states")),
    "broadcast": ("wavesim_server/network/broadcast.py", _tests("server", "broadcast")),
    "pace": ("wavesim_server/engine/pace.py", _tests("server", "pace")),
}
#: tests that take too long to run for every mutant, or need files outside the packages
SLOW = (
    "tests/protocol/test_document.py::test_generated_pages_are_up_to_date",
    "tests/protocol/test_document.py::test_the_shipped_schema_is_that_of_the_code",
    "tests/protocol/test_codec.py::test_foreign_bytes",
    "tests/protocol/test_codec.py::test_flipped_bytes",
    "tests/protocol/test_codec.py::test_a_bomb_costs_next_to_nothing",
    "tests/protocol/test_schema.py::test_items_of_any_values_are_malformed_or_what_they_say",
    "tests/protocol/test_codec.py::test_the_walk_takes_whatever_msgpack_writes",
    "tests/protocol/test_client.py::test_nothing_that_a_server_sends_raises",
    "tests/protocol/test_client.py::test_absurd_values_of_a_server_raise_nothing",
    "tests/protocol/test_service.py::test_any_datagram_of_a_member_does_no_more_than_its_own_session",
    "tests/protocol/test_keys.py::test_foreign_bytes_to_a_keyed_server",
    "tests/protocol/test_keys.py::test_a_flipped_bit_is_dropped_and_counted",
    "tests/sdk/test_commander.py::test_three_hundred_killed_clients_leave_room_for_the_next",
    "tests/sdk/test_area.py::test_readers_never_see_half_a_tick",
)

#: result of a mutant by the exit code of its worker; any other code means that it crashed
STATES = {
    "survived": (0,),
    "without a test": (5, 33),
    "not tried": (None, 99),
    "killed": (1, 3),
    "stuck": (24, -24, 36, 152, -9),
}
KILLED = ("killed", "stuck", "crashed")  #: results in which a test failed or did not end

#: mutmut without mutations of texts for people; tests that pytest cannot find by their names kill no mutant
MUTMUT = """
from mutmut.mutation import mutators
from mutmut.runners import harness
_run = harness.PytestRunner.run_tests
def _found(self, **wanted):
    try:
        return _run(self, **wanted)
    except harness.BadTestExecutionCommandsException:
        return 99
harness.PytestRunner.run_tests = _found
_strings = mutators.operator_string
def _not_for_people(node):
    text = getattr(node, "value", "")
    if " " in text and "b" not in text[:2].lower():
        return
    yield from _strings(node)
mutators.mutation_operators[:] = [
    (kind, _not_for_people if operator is _strings else operator) for kind, operator in mutators.mutation_operators
]
"""
RUN = MUTMUT + "from mutmut.__main__ import cli\ncli()"
SHOW = """
import json, sys
from mutmut.mutation.diff_apply import get_diff_for_mutant
json.dump({name: get_diff_for_mutant(name) for name in json.load(sys.stdin)}, sys.stdout)
"""
#: fixtures of the project's conftest.py, without its start-up actions
FIXTURES = "from tests.conftest import config, name, queue_name, root  # noqa: F401\n"


def prepare(module: str, again: bool) -> None:
    """Create a folder in the layout that mutmut requires."""
    folder, (file, tests) = FOLDER / module, MODULES[module]
    if not again:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    for package in (*PACKAGES, "tests"):
        here = folder / Path(package).name
        shutil.rmtree(here, ignore_errors=True)
        shutil.copytree(ROOT / package, here, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
    shutil.copytree(ROOT / "docs", folder / "docs", dirs_exist_ok=True, ignore=shutil.ignore_patterns("images", "*.py"))
    (folder / "tests" / "plain.py").write_text(FIXTURES)
    settings = {
        "source_paths": [Path(p).name for p in PACKAGES],
        "only_mutate": [file],
        "also_copy": ["docs"],
        "pytest_add_cli_args": [
            "--noconftest",
            "-p",
            "tests.plain",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:warnings",
            "-x",
            "--hypothesis-seed=0",
            *(f"--deselect={t}" for t in SLOW if t.split("::")[0] in tests),
        ],
        "pytest_add_cli_args_test_selection": tests,
        "timeout_multiplier": ["4.0"],
        "timeout_constant": ["3.0"],
        "use_git_change_detection": ["false"],
    }
    (folder / "setup.cfg").write_text(
        "[mutmut]\n" + "".join(f"{k} =\n" + "".join(f"    {v}\n" for v in values) for k, values in settings.items())
    )
    (folder / "pytest.ini").write_text(
        "[pytest]\naddopts = --strict-markers\nasyncio_mode = auto\nmarkers =\n    system\n    data\n    compiled\n"
    )


def mutmut(module: str, program: str, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run a mutmut command in the folder of a module."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=FOLDER / module,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        input=given,
    )


def outcome(module: str) -> dict[str, str]:
    """Return the result of each mutant in the last run of mutmut."""
    data = json.loads((FOLDER / module / "mutants" / f"{MODULES[module][0]}.meta").read_text())
    return {
        name: next((state for state, codes in STATES.items() if code in codes), "crashed")
        for name, code in data["exit_code_by_key"].items()
    }


def measure(module: str, children: int, again: bool, quiet: bool) -> Counter[str] | None:
    """Run mutmut over a module and return the result; None if the tests fail without any change."""
    kept = FOLDER / module / "states.json"  # mutmut forgets what it knows when its settings change
    states: dict[str, str] = json.loads(kept.read_text()) if again else {}
    left = [name for name, state in states.items() if state not in KILLED]
    prepare(module, again)
    if left or not again:
        done = mutmut(module, RUN, "run", "--max-children", str(children), *left)
        if done.returncode:
            print(module, done.stdout[-3000:], done.stderr[-3000:], sep="\n")
            return None
        new = outcome(module)
        states |= {name: new[name] for name in left} if again else new
        kept.write_text(json.dumps(states))
    counts = Counter(states.values())
    print(line(module, counts), flush=True)
    left = [name for name, state in states.items() if state not in KILLED]
    if left and not quiet:
        for name, diff in json.loads(mutmut(module, SHOW, given=json.dumps(left)).stdout).items():
            changed = [x for x in diff.splitlines() if x[:1] in "+-" and x[:3] not in ("+++", "---")]
            print(f"    {name.rpartition('.')[2]}", *changed, sep="\n        ", flush=True)
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=", ".join(MODULES))
    parser.add_argument("--children", type=int, default=os.cpu_count(), help="number of parallel processes")
    parser.add_argument(
        "--again", action="store_true", help="try only the mutants that survived the last run of these modules"
    )
    parser.add_argument("--quiet", action="store_true", help="print only the figures")
    a = parser.parse_args()
    if unknown := set(a.modules) - set(MODULES):
        parser.error(f"there is no module {', '.join(unknown)}; there are {', '.join(MODULES)}")
    low, total = False, Counter[str]()
    for module in a.modules or MODULES:
        counts = measure(module, a.children, a.again, a.quiet)
        low = low or counts is None or killed(counts) < FLOOR
        total += counts or Counter()
    print(line("all", total))
    return 1 if low else 0


def killed(counts: Counter[str]) -> float:
    """Return the fraction of killed mutants."""
    return sum(counts[state] for state in KILLED) / max(counts.total(), 1)


def line(what: str, counts: Counter[str]) -> str:
    """Return the results of some mutants."""
    said = ", ".join(f"{n} {state}" for state, n in sorted(counts.items()))
    return f"{what:12} {counts.total():4} mutants, {100 * killed(counts):5.1f} % killed; {said}"


if __name__ == "__main__":
    sys.exit(main())
