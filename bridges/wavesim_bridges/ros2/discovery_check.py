"""Diagnosis for a node without peers. It counts the participants in the node's DDS domain, and finds other domains in
use on this machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsParticipant
from cyclonedds.core import DDSException
from cyclonedds.domain import DomainParticipant

QUIET_S = 10.0  #: wall time in s after which a node without any matching reader or writer is reported
MAX_DOMAIN = 100  #: highest domain to check, because the ports of higher domains overlap with ephemeral ports
PORTS, FIRST, PORTS_PER_DOMAIN = (
    7400,
    10,
    250,
    #: base port, offset of the first participant, and number of ports per domain: participants of a domain listen on
    #: ports 7400 + 250 domain + 10, 12, ...; multicast uses 7400 + 250 domain
)
_SOCKETS = Path("/proc/net/udp")


def domains_of(ports: Iterable[int]) -> list[int]:
    """Find the domains that have participants, from the open UDP ports."""
    found = set()
    for port in ports:
        domain, place = divmod(port - PORTS, PORTS_PER_DOMAIN)
        if 0 <= domain <= MAX_DOMAIN and (place == 0 or (place >= FIRST and place % 2 == 0)):
            found.add(domain)
    return sorted(found)


def _ports() -> list[int]:
    """List the UDP ports that are open on this machine. The list is empty if the system does not provide this
    information.
    """
    try:
        rows = _SOCKETS.read_text().splitlines()[1:]
        return [int(row.split()[1].rpartition(":")[2], 16) for row in rows]
    except (OSError, ValueError, IndexError):
        return []


def verdict(domain: int, others: int, domains: Iterable[int]) -> str:
    """Explain in one line why a node has no peers. ``others`` is the number of other participants in its domain."""
    if others:
        return (
            f"{others} other participant{'s are' if others > 1 else ' is'} in DDS domain {domain}, but none uses a topic "
            "of this vehicle: check its name and --layout"
        )
    elsewhere = [d for d in domains if d != domain]
    there = (
        f" There may be participants in DDS domain {' or '.join(map(str, elsewhere))}: check --domain or ROS_DOMAIN_ID."
        if elsewhere
        else ""
    )
    return (
        f"no other participant in DDS domain {domain} on this machine.{there} Set ROS_DOMAIN_ID={domain} for your nodes and "
        "do not use rmw_zenoh. Run the nodes on this machine's network; start containers with --network host"
    )


async def check_discovery(
    participant: DomainParticipant, domain: int, met: Callable[[], bool], say: Callable[[str], None]
) -> None:
    """Report once if no peer has appeared after ``QUIET_S``."""
    await asyncio.sleep(QUIET_S)
    if met():
        return
    try:
        found = BuiltinDataReader(participant, BuiltinTopicDcpsParticipant).take(1000)
    except DDSException:
        return
    own = str(participant.get_guid())
    others = sum(sample.sample_info.valid_data and str(sample.key) != own for sample in found)
    say(verdict(domain, others, domains_of(_ports())))
