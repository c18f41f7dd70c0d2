"""Why nobody hears a node: who is in its DDS domain, and in which others there is somebody on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsParticipant
from cyclonedds.core import DDSException
from cyclonedds.domain import DomainParticipant

QUIET_S = 10.0  #: of wall time without a reader or writer of our topics, after which people are told
MAX_DOMAIN = 100  #: domains above have ports that the system gives to anybody
PORTS, FIRST, PORTS_PER_DOMAIN = (
    7400,
    10,
    250,
)  #: participants of a domain listen at 7400 + 250 domain + 10, 12, ..., by multicast at + 0
_SOCKETS = Path("/proc/net/udp")


def domains_of(ports: Iterable[int]) -> list[int]:
    """Domains that have participants, by the UDP ports that are open."""
    found = set()
    for port in ports:
        domain, place = divmod(port - PORTS, PORTS_PER_DOMAIN)
        if 0 <= domain <= MAX_DOMAIN and (place == 0 or (place >= FIRST and place % 2 == 0)):
            found.add(domain)
    return sorted(found)


def _ports() -> list[int]:
    """UDP ports that are open on this machine; none where the system does not tell."""
    try:
        rows = _SOCKETS.read_text().splitlines()[1:]
        return [int(row.split()[1].rpartition(":")[2], 16) for row in rows]
    except (OSError, ValueError, IndexError):
        return []


def verdict(domain: int, others: int, domains: Iterable[int]) -> str:
    """In one line, for a node that nobody has met: ``others`` participants are in its domain."""
    if others:
        return (
            f"{others} other participant{'s are' if others > 1 else ' is'} in DDS domain {domain}, but none uses a topic "
            "of this vehicle: are its name and --layout those that they expect?"
        )
    elsewhere = [d for d in domains if d != domain]
    there = f" There may be somebody in {', '.join(map(str, elsewhere))}: --domain, ROS_DOMAIN_ID?" if elsewhere else ""
    return (
        f"nobody else is in DDS domain {domain} on this machine.{there} Nodes must have ROS_DOMAIN_ID={domain}, no "
        "rmw_zenoh, and share this machine's network (containers: --network host)"
    )


async def check_discovery(
    participant: DomainParticipant, domain: int, met: Callable[[], bool], say: Callable[[str], None]
) -> None:
    """Tell once, if by then nobody was met."""
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
