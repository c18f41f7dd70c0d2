"""Carrier sense, compiled: changes of the channel between busy and idle at a node.

The channel is busy while the node transmits, and while at least one signal arrives that the node would detect if no other
signal interfered. A packet of another modulation, and a packet that is lost in a collision, therefore make the channel busy.
Signals below the threshold or out of the band do not. Only nodes with ``carrier_sense`` have such changes.
"""

from __future__ import annotations

from wavesim_kernels.compiler import device_function
from wavesim_server.acoustics import medium_arrays as a
from wavesim_server.acoustics.event_queues import push_event
from wavesim_server.acoustics.medium_arrays import Medium
from wavesim_server.acoustics.transducer_motion import clock_reading


@device_function
def is_too_weak(m: Medium, j: int, is_packet: bool, level: float, noise: float) -> bool:
    """Return whether a node cannot detect a signal with this level in this noise, even if nothing else interferes.

    A modem with a curve detects packets by the limit of the curve.
    """
    node = m.nodes[j]
    if node.curve > 0 and is_packet:
        return bool(level - noise < node.curve_snr)
    return bool(level - noise < node.snr) if node.snr == node.snr else bool(level < node.threshold)


@device_function
def _record_change(m: Medium, j: int, time: float, busy: int) -> None:
    counters = m.counters[0]
    record = m.channel_states[counters.channel_states]
    counters.channel_states += 1
    record.receiver, record.busy = j, busy
    record.time_ns, record.clock_ns = round(time * 1e9), round(clock_reading(m, j, time) * 1e9)


@device_function
def _occupy(m: Medium, j: int, time: float) -> None:
    m.nodes[j].sensed += 1
    if m.nodes[j].sensed == 1:
        _record_change(m, j, time, 1)


@device_function
def _vacate(m: Medium, j: int, time: float) -> None:
    m.nodes[j].sensed -= 1
    if m.nodes[j].sensed == 0:
        _record_change(m, j, time, 0)


@device_function
def sense_transmission(m: Medium, j: int) -> None:
    """Mark the channel as busy at a node that begins to transmit, and schedule the end of its transmission."""
    node = m.nodes[j]
    if node.carrier_sense != 0:
        _occupy(m, j, node.sending_from)
        push_event(m, node.sending_until, a.TRANSMISSION_END, j, node.entry, j)


@device_function
def end_transmission(m: Medium, j: int, entry: int, time: float) -> None:
    """Process the end of a transmission of a node. ``entry`` is the node's counter of entries at its start."""
    node = m.nodes[j]
    if node.active != 0 and node.entry == entry:
        _vacate(m, j, time)


@device_function
def sense_arrival(m: Medium, slot: int, j: int, is_packet: bool, noise: float) -> None:
    """Mark the channel as busy at a node where a reception begins, if the signal is strong enough."""
    node, hearing = m.nodes[j], m.hearings[slot]
    hearing.sensed = 0
    if node.carrier_sense != 0 and not is_too_weak(m, j, is_packet, hearing.level, noise):
        hearing.sensed = 1
        _occupy(m, j, hearing.arrival)


@device_function
def sense_end(m: Medium, slot: int, j: int) -> None:
    """Update the channel at the end of a reception, unless the node that began it has left."""
    node, hearing = m.nodes[j], m.hearings[slot]
    if hearing.sensed != 0 and node.active != 0 and node.since <= hearing.arrival:
        _vacate(m, j, hearing.end)
