"""On-board program that exchanges messages by sound alone, with a modem in software.

python soundmodem.py --vehicle alpha --address 1 --to 2 --period 4 --modem ofdm

It computes the samples of a packet, plays them with its transducer, and finds packets in the samples of the hydrophone
`ears`. Every `--period` seconds it sends its depth to the node `--to`. If that node hears the message, it answers with
the same number. Messages and answers are printed. A modem of your own has the methods of `SoftModem`.
"""

from __future__ import annotations

import argparse
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

import janus_modem
import ofdm_modem
from wavesim_sdk.arrays import Floats
from wavesim_sdk.broker import Broker, Step
from wavesim_sdk.errors import WaveSimError

EARS = "ears"
MESSAGE = struct.Struct("<cBh")  # kind, number, depth in cm
ASK, ANSWER = b"?", b"!"
PATIENCE_S = 2.0  #: s of wall time to wait for the newest block
CHANNEL = 0


@dataclass(frozen=True)
class Packet:
    """A packet that a modem has received. ``time`` is its start in s, on the clock of the hydrophone, and ``speed`` the
    speed in m/s at which the range decreases.
    """

    time: float
    speed: float
    sender: int
    to: int
    payload: bytes


class SoftModem(Protocol):
    """A modem in software: it turns packets into samples, and samples into packets."""

    sampling: int  #: sampling rate of both, in Hz

    def samples(self, payload: bytes, sender: int, to: int) -> Floats: ...

    def push(self, samples: Floats, first: int) -> list[Packet]: ...


class Ofdm:
    """The modem of ofdm_modem.py."""

    sampling = ofdm_modem.RATE

    def __init__(self) -> None:
        self._receiver = ofdm_modem.OfdmReceiver()

    def samples(self, payload: bytes, sender: int, to: int) -> Floats:
        return ofdm_modem.packet(payload, sender=sender, to=to)

    def push(self, samples: Floats, first: int) -> list[Packet]:
        return [
            Packet(h.sample / self.sampling, h.speed, h.sender, h.to, h.payload)
            for h in self._receiver.push(samples, first)
            if h.payload is not None
        ]


class Janus:
    """The modem of janus_modem.py."""

    sampling = janus_modem.RATE

    def __init__(self) -> None:
        self._receiver = janus_modem.JanusStream()

    def samples(self, payload: bytes, sender: int, to: int) -> Floats:
        return janus_modem.packet(payload, sender=sender, to=to)

    def push(self, samples: Floats, first: int) -> list[Packet]:
        return [Packet(h.time, h.speed, h.sender, h.to, h.payload) for h in self._receiver.push(samples, first)]


MODEMS: dict[str, Callable[[], SoftModem]] = {"ofdm": Ofdm, "janus": Janus}


class Talker:
    """On-board software: it sends messages, answers those of others, and counts the messages and answers."""

    def __init__(self, modem: SoftModem, address: int, to: int, period: float) -> None:
        self.modem, self.address, self.to, self.period = modem, address, to, period
        self.sent = self.answered = self.heard = 0
        self._next = period if period else float("inf")
        self._seen = 0

    def act(self, broker: Broker, step: Step) -> None:
        """Process the blocks up to the newest one that the step announces, then send what is due."""
        depth = round(100.0 * float(step.sensors.pressure.depth)) if "pressure" in step.sensors else 0
        for packet in self._listen(broker, step):
            self._receive(broker, packet, depth)
        if step.time >= self._next:
            self._next += self.period
            self.sent += 1
            self._send(broker, ASK, self.sent & 255, depth, self.to)

    def _send(self, broker: Broker, kind: bytes, number: int, depth: int, to: int) -> None:
        samples = self.modem.samples(MESSAGE.pack(kind, number, depth), self.address, to)
        broker.transmit(samples, self.modem.sampling)

    def _listen(self, broker: Broker, step: Step) -> list[Packet]:
        found: list[Packet] = []
        newest = int(step.sensors[EARS].frame) if EARS in step.sensors else self._seen
        limit = time.monotonic() + PATIENCE_S
        while self._seen < newest:
            for block in broker.take_frames():
                self._seen = int(block.record["number"])
                found += self.modem.push(np.asarray(block.pressures[CHANNEL]), block.first_sample)
            if self._seen < newest:
                if time.monotonic() > limit:
                    break
                broker.poll(0.02)
        self._seen = max(self._seen, newest)
        return found

    def _receive(self, broker: Broker, packet: Packet, depth: int) -> None:
        if packet.to != self.address or len(packet.payload) != MESSAGE.size:
            return  # also the node's own packets
        kind, number, other = MESSAGE.unpack(packet.payload)
        what = f"{packet.time:.4f} s, {packet.speed:+.2f} m/s: node {packet.sender} at {other / 100:.2f} m"
        if kind == ASK:
            self.heard += 1
            print(f"message {number} at {what}", flush=True)
            self._send(broker, ANSWER, number, depth, packet.sender)
        elif kind == ANSWER:
            self.answered += 1
            print(f"answer {number} at {what}; {self.answered} of {self.sent} answered", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="config.xml")
    parser.add_argument("--vehicle", required=True)
    parser.add_argument("--port", type=int, default=9750)
    parser.add_argument("--address", type=int, required=True, help="Address of this node, 1 to 255.")
    parser.add_argument("--to", type=int, default=0, help="Address of the other node.")
    parser.add_argument("--period", type=float, default=0.0, help="Interval of messages in s; 0 = only answers.")
    parser.add_argument("--thrust", type=float, default=0.0, help="Constant force of the propeller in N.")
    parser.add_argument("--modem", choices=sorted(MODEMS), default="ofdm")
    a = parser.parse_args()
    talker = Talker(MODEMS[a.modem](), a.address, a.to, a.period)
    try:
        with Broker(a.vehicle, ("127.0.0.1", a.port), lockstep=0.1) as broker:
            broker.subscribe_frames(EARS)
            for step in broker.steps():
                talker.act(broker, step)
                broker.answer({"propeller": a.thrust})
    except WaveSimError as error:
        print(f"{a.vehicle}: {error}", file=sys.stderr)
        return error.exit_code
    print(f"{a.vehicle}: {talker.sent} sent, {talker.answered} answered, {talker.heard} heard", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
