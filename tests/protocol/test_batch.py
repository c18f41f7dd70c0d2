"""Many datagrams by one call: each arrives whole at its own address, with and without sendmmsg."""

from __future__ import annotations

import random
import socket

import numpy as np
import pytest

from wavesim_sdk.wire import batch


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_each_arrives_at_its_address(host: str, single: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if single:
        monkeypatch.setattr(batch, "_call", None)
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
            addresses = b"".join(batch.pack_address(receivers[k].getsockname()) for k in to)
            assert batch.send_each(sender, data, addresses) == 60
            for k, d in zip(to, data, strict=True):
                assert receivers[k].recv(2048) == d
            rows = np.frombuffer(b"".join(d[:1].ljust(40, b"x") for d in data), np.uint8).reshape(60, 40)
            assert batch.send(sender, rows, addresses) == 60
            for k, row in zip(to, rows, strict=True):
                assert receivers[k].recv(2048) == row.tobytes()
        finally:
            for r in receivers:
                r.close()


def test_one_that_cannot_be_sent_does_not_stop_the_others() -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
    ):
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(2.0)
        good = batch.pack_address(receiver.getsockname())
        bad = batch.pack_address(("127.0.0.1", 0))  # no port: refused by the system
        assert batch.send_each(sender, [b"a", b"b", b"c"], good + bad + good) == 2
        assert [receiver.recv(10), receiver.recv(10)] == [b"a", b"c"]
