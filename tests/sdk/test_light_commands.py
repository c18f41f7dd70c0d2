"""The command line responds at once: a command loads only what it needs."""

from __future__ import annotations

import subprocess
import sys

HEAVY = (
    "numpy",
    "lxml",
    "msgpack",
    "asyncio",
    "numba",
    "scipy",
    "matplotlib",
    "wavesim_world.config",
    "wavesim_sdk.wire",
)


def test_the_commands_of_all_packages_are_there_without_their_libraries() -> None:
    code = (
        "import sys; from wavesim_sdk.cli import cli, load_commands; load_commands(); assert {'serve', 'viz', 'emulate', 'bridge'} <= set(cli.commands);"
        f" print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
