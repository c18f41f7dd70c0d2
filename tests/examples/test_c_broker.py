"""The C broker, written from docs/PROTOCOL.md: compiled with all warnings and sanitizers, judged, flown, and fed rubbish."""

from __future__ import annotations

import itertools
import random
import re
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Server, wavesim
from wavesim_sdk.config import Loaded
from wavesim_sdk.wire import codec
from wavesim_sdk.wire.messages import MESSAGES
from wavesim_sdk.wire.vectors import TOKEN, VECTORS

pytestmark = [pytest.mark.timeout(150)]
FLAGS = ["-std=c99", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1", "-g"]


@pytest.fixture(scope="module")
def build(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler on this machine")
    folder = tmp_path_factory.mktemp("c")

    def make(name: str) -> str:
        command = [compiler, *FLAGS, "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
        out = str(folder / name)
        done = subprocess.run(
            [*command, "-o", out, str(root / f"examples/c-broker/{name}.c"), "-lm"], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return out

    return make


def test_it_keeps_every_rule(build: Callable[[str], str]) -> None:
    done = wavesim("conformance", "--", build("auv"), "127.0.0.1", "{port}", "{name}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok  ") == 19


def test_it_flies_and_hears(
    build: Callable[[str], str], config: Callable[..., Loaded], serve: Callable[..., Server]
) -> None:
    loaded = config(
        '<time step="4 ms" duration="20 s"/><world><bed depth="100 m"/></world><fleet>'
        '<vehicle name="auv" model="lauv" position="0 0 20 m" client="required"/>'
        '<buoy name="c" model="buoy" position="300 40 0 m"/></fleet>'
    )
    server = serve(loaded.path, "--speed", "0")
    auv = subprocess.Popen([build("auv"), "127.0.0.1", str(server.port), "auv"], stdout=subprocess.PIPE, text=True)
    try:
        server.wait(lambda s: s["clients_total"] == 1)
        server.send("start")
        out, _ = auv.communicate(timeout=60)
    finally:
        auv.kill()
    ranges = [float(r) for r in re.findall(r"range (\d+\.\d+) m", out)]
    assert len(ranges) >= 15 and "0 datagrams dropped" in out and re.search(r"^20\d steps", out, re.MULTILINE), out
    assert ranges[0] == pytest.approx((300**2 + 40**2 + 20**2) ** 0.5, abs=1.5)
    assert all(b < a for a, b in itertools.pairwise(ranges)), "it drives towards the buoy"


def test_a_refusal_is_told(
    build: Callable[[str], str], config: Callable[..., Loaded], serve: Callable[..., Server]
) -> None:
    server = serve(config('<fleet><buoy name="b" model="buoy" position="0 0 5 m"/></fleet>').path)
    done = subprocess.run(
        [build("auv"), "127.0.0.1", str(server.port), "nobody"], capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 1 and "has no body 'nobody'" in done.stderr


def test_foreign_bytes_do_no_harm(build: Callable[[str], str]) -> None:
    """The vectors are taken; 60 000 broken ones of them neither crash it nor upset the sanitizers."""
    rng = random.Random(4)
    good = [
        codec.encode(kind, body, TOKEN, sequence, 0)
        for kind, _, sequence, _, body in VECTORS
        if not MESSAGES[kind][0] and MESSAGES[kind][1]
    ]
    bad = []
    for _ in range(60_000):
        data = bytearray(rng.choice(good))
        for _ in range(rng.randint(1, 6)):
            how = rng.random()
            at = rng.randrange(24, len(data)) if len(data) > 24 else 0
            if how < 0.7 and data:
                data[at] = rng.choice((rng.randrange(256), 0xDD, 0xDF, 0xC6, 0xDB, 0x9F, 0xC0, 0xCB, 0xFF))
            elif how < 0.85:
                del data[at:]
            else:
                data[at:at] = rng.randbytes(rng.randint(1, 40))
        bad.append(bytes(data[:1300]))
    program = build("fuzz")

    def feed(datagrams: list[bytes]) -> tuple[int, int]:
        stream = b"".join(struct.pack("<H", len(d)) + d for d in datagrams)
        done = subprocess.run([program], input=stream, capture_output=True, timeout=100)
        assert done.returncode == 0, done.stderr.decode()[-3000:]
        taken, count = re.findall(r"(\d+) of (\d+) taken", done.stdout.decode())[0]
        return int(taken), int(count)

    assert feed([d for d in good if d[5] != 33]) == (len(good) - 1, len(good) - 1)
    taken, count = feed(bad)
    assert count == len(bad) and taken < count
