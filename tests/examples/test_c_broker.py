"""The C client, written from docs/PROTOCOL.md: compiled with all warnings and sanitizers, checked for conformance, run,
and given invalid input.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Server, wavesim
from tests.examples import foreign
from tests.examples.compiled import POSIX, SANITIZED, compiled
from wavesim_world.config import LoadedConfig

pytestmark = [pytest.mark.timeout(150)]


@pytest.fixture(scope="module")
def auv(root: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("c") / "auv"
    return compiled(root / "examples/c-broker/auv.c", out, POSIX, *SANITIZED)


def test_it_keeps_every_rule(auv: str) -> None:
    done = wavesim("conformance", "--", auv, "127.0.0.1", "{port}", "{name}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok  ") == 24


@pytest.mark.parametrize("keys", [False, True], ids=["open", "sealed"])
@pytest.mark.parametrize("loss", [0.0, 0.3])
def test_nothing_is_lost_over_a_bad_network(auv: str, tmp_path: Path, loss: float, keys: bool) -> None:
    out = foreign.fly_over(loss, [auv], tmp_path, keys)
    assert out.count("1/s") == 1 and re.search(r"^40 steps", out, re.MULTILINE), out


def test_without_the_right_key_it_says_why(auv: str, tmp_path: Path) -> None:
    for file, why in (("other", "does it require keys?"), ("readable", "other users may read the file")):
        done = foreign.join_with_wrong_key([auv], tmp_path, file)
        assert done.returncode in (1, 2) and why in done.stderr, done.stderr


def test_without_the_header_of_keys_a_key_is_refused(root: Path, tmp_path: Path) -> None:
    source = tmp_path / "plain.c"
    source.write_text(
        '#include "wavesim_broker.h"\nint main(void) {\n    static ws_broker b;\n    static const uint8_t key[32];\n'
        '    ws_join join = {.name = "a", .key = key};\n    int failed = ws_open(&b, "127.0.0.1", 1, &join);\n'
        '    printf("%d %s\\n", failed, b.why);\n    return 0;\n}\n'
    )
    program = compiled(source, tmp_path / "plain", POSIX, f"-I{root / 'examples/c-broker'}", *SANITIZED)
    said = subprocess.run([program], capture_output=True, text=True, timeout=20).stdout
    assert said == "-5 include wavesim_keys.h before wavesim_broker.h to use a key\n"


@pytest.mark.system
@pytest.mark.parametrize("keys", [False, True], ids=["open", "sealed"])
def test_it_flies_and_hears(
    auv: str, config: Callable[..., LoadedConfig], serve: Callable[..., Server], tmp_path: Path, keys: bool
) -> None:
    network, environment = foreign.keys_of("auv", tmp_path) if keys else ("", {})
    loaded = config(
        f'<time step="4 ms" duration="20 s"/><world><bed depth="100 m"/></world>{network}<fleet>'
        '<vehicle name="auv" model="lauv" position="0 0 20 m" client="required"/>'
        '<buoy name="c" model="buoy" position="300 40 0 m"/></fleet>'
    )
    server = serve(loaded.path, "--speed", "0")
    program = subprocess.Popen(
        [auv, "127.0.0.1", str(server.port), "auv"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        server.wait(lambda s: s["clients_total"] == 1)
        server.send("start")
        out, _ = program.communicate(timeout=60)
    finally:
        program.kill()
    ranges = [float(r) for r in re.findall(r"range (\d+\.\d+) m", out)]
    assert len(ranges) >= 15 and "0 datagrams dropped" in out and re.search(r"^20\d steps", out, re.MULTILINE), out
    assert re.search(r"^propeller: .* to .* N$", out, re.MULTILINE), "its actuators are listed by name"
    assert ranges[0] == pytest.approx((300**2 + 40**2 + 20**2) ** 0.5, abs=1.5)
    assert all(b < a for a, b in itertools.pairwise(ranges)), "it drives towards the buoy"


@pytest.mark.system
def test_a_refusal_is_printed(auv: str, config: Callable[..., LoadedConfig], serve: Callable[..., Server]) -> None:
    server = serve(config('<fleet><buoy name="b" model="buoy" position="0 0 5 m"/></fleet>').path)
    done = subprocess.run([auv, "127.0.0.1", str(server.port), "absent"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 1 and "absent" in done.stderr


def test_foreign_bytes_do_no_harm(root: Path, tmp_path: Path) -> None:
    """The vectors are taken; 60 000 broken ones of them neither crash it nor upset the sanitizers."""
    program = compiled(
        root / "tests/examples/c/fuzz.c", tmp_path / "fuzz", POSIX, f"-I{root / 'examples/c-broker'}", *SANITIZED
    )
    foreign.feed_broken_datagrams([program])
