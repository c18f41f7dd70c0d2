"""JANUS (STANAG 4748): a transmitter and a receiver for the digital underwater signalling standard.

The package needs only NumPy, and on-board programs can use it::

    packet, cargo = message(b"surface now", station=3)
    samples = Transmission(packet, cargo).samples(48_000)
    receiver = JanusReceiver(48_000)
    receptions = receiver.push(samples) + receiver.finish()
"""

from wavesim_sdk.janus.packet import Message, Packet, cargo_size, message
from wavesim_sdk.janus.receiver import JanusReceiver, JanusReception
from wavesim_sdk.janus.waveform import INITIAL_BAND, ParameterSet, Transmission

__all__ = [
    "INITIAL_BAND",
    "JanusReceiver",
    "JanusReception",
    "Message",
    "Packet",
    "ParameterSet",
    "Transmission",
    "cargo_size",
    "message",
]
