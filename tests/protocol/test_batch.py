"""Many datagrams in one call: each arrives complete at its own address, with and without sendmmsg."""

from __future__ import annotations

import ctypes
import errno
import random
import socket

import numpy as np
import pytest

from wavesim_sdk.wire import sendmmsg


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_each_arrives_at_its_address(host: str, single: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if single:
        monkeypatch.setattr(sendmmsg, "_call", None)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    rng = random.Random(4)
    with socket.socket(family, socket.SOCK_DGRAM) as sender:
        receivers = [socket.socket(family, socket.SOCK_DGRAM) for _ in range(5)]
        try:
            for r in receivers:
                r.bind((host, 0))
                r.settimeout(2.0)
            to = [rng.randrange(5) for _ in range(60)]
            data = [rng.randbytes(rng.randrange(1, 1200)) for _ in to]
            addresses = b"".join(sendmmsg.pack_address(receivers[k].getsockname()) for k in to)
            assert sendmmsg.send_datagrams(sender, data, addresses) == 60
            for k, d in zip(to, data, strict=True):
                assert receivers[k].recv(2048) == d
            rows = np.frombuffer(b"".join(d[:1].ljust(40, b"x") for d in data), np.uint8).reshape(60, 40)
            assert sendmmsg.send_rows(sender, rows, addresses) == 60
            for k, row in zip(to, rows, strict=True):
                assert receivers[k].recv(2048) == row.tobytes()
        finally:
            for r in receivers:
                r.close()


@pytest.mark.parametrize("single", [False, True])
def test_one_that_cannot_be_sent_does_not_stop_the_others(single: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if single:
        monkeypatch.setattr(sendmmsg, "_call", None)
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
    ):
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(2.0)
        good = sendmmsg.pack_address(receiver.getsockname())
        bad = sendmmsg.pack_address(("127.0.0.1", 0))  # no port: refused by the system
        assert sendmmsg.send_datagrams(sender, [b"a", b"b", b"c"], good + bad + good) == 2
        assert [receiver.recv(10), receiver.recv(10)] == [b"a", b"c"]


class Reluctant:
    """In place of sendmmsg: takes the given number of datagrams in each call; an error number makes the call fail with it."""

    def __init__(self, *answers: int) -> None:
        self.answers, self.calls = list(answers), list[tuple[int, int]]()
        self.begin = 0

    def __call__(self, _socket: int, heads: ctypes.c_void_p, count: int, flags: int) -> int:
        assert flags == socket.MSG_DONTWAIT, "a full buffer would hold the server up"
        assert heads.value is not None
        self.begin = self.begin or heads.value
        self.calls.append(((heads.value - self.begin) // sendmmsg._HEADER.itemsize, count))
        answer = self.answers.pop(0)
        ctypes.set_errno(max(-answer, 0))
        return max(answer, -1)


@pytest.mark.parametrize(
    ("answers", "took", "calls"),
    [
        ((5,), 5, [(0, 5)]),
        ((2, 2, 1), 5, [(0, 5), (2, 3), (4, 1)]),
        ((2, -errno.EAGAIN), 2, [(0, 5), (2, 3)]),
        ((-errno.ENOBUFS,), 0, [(0, 5)]),
        ((1, 0), 1, [(0, 5), (1, 4)]),
        ((-errno.EPERM, 1, -errno.EINVAL, -errno.EINVAL, 1), 2, [(0, 5), (1, 4), (2, 3), (3, 2), (4, 1)]),
    ],
)
def test_what_the_system_does_not_take_now_is_left(
    answers: tuple[int, ...], took: int, calls: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each that cannot be sent is passed over; where there is no room, the rest is given up."""
    system = Reluctant(*answers)
    monkeypatch.setattr(sendmmsg, "_call", system)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        assert sendmmsg.send_datagrams(sender, [b"a"] * 5, sendmmsg.pack_address(("127.0.0.1", 9)) * 5) == took
    assert system.calls == calls and not system.answers


def test_no_call_is_for_more_than_the_system_takes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    system = Reluctant(1024, 1024, 52)
    monkeypatch.setattr(sendmmsg, "_call", system)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        assert (
            sendmmsg.send_rows(sender, np.zeros((2100, 3), np.uint8), sendmmsg.pack_address(("127.0.0.1", 9)) * 2100)
            == 2100
        )
    assert system.calls == [(0, 1024), (1024, 1024), (2048, 52)]
