"""Programs of a trial have one layout of memory; others keep what the system gives them."""

import subprocess
import sys

import pytest

from wavesim_server.layout import same_layout

WHERE = [sys.executable, "-c", "print(open('/proc/self/maps').readlines()[-4:])"]


def places() -> set[str]:
    return {subprocess.run(WHERE, capture_output=True, text=True, check=True).stdout for _ in range(3)}


def test_programs_share_a_layout() -> None:
    before = places()
    with same_layout():
        inside = places()
    if len(before) == 1:
        pytest.skip("this system does not randomise addresses at all")
    if len(inside) == len(before):
        pytest.skip("this system does not permit a layout of one's own (a container's seccomp profile)")
    assert len(inside) == 1
    assert len(places()) == 3  # the caller's own choice is back
