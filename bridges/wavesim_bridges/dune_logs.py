"""Reader for DUNE logs, `Data.lsf` and `Data.lsf.gz`: IMC packets one after the other, as DUNE serialises them
for the network.
"""

from __future__ import annotations

import contextlib
import gzip
import struct
import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np

from wavesim_bridges import imc
from wavesim_bridges.core import MalformedMessage
from wavesim_bridges.imc_codec import CRC_SIZE, HEADER_SIZE, MESSAGES, SYNC, ImcPacket, read
from wavesim_sdk.errors import LogError
from wavesim_sdk.recorded_messages import RecordedFile, RecordedMessages

#: synchronisation numbers of IMC 5.4 and 5.5, which have the same navigation messages
VERSIONS = (SYNC, SYNC + 1)
MOST_BYTES = 8 * 1024**3  #: maximum size of a decompressed log


def read_messages(path: Path, wanted: Collection[str]) -> RecordedFile:
    """Return the messages of the requested types, from the vehicle that logged the most of them. Raise LogError if
    the file is not such a log.
    """
    data = _content(path)
    names = {kind.ID: kind.__name__ for kind in MESSAGES.values() if kind.__name__ in wanted}
    packets: list[ImcPacket] = []
    others: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    labels: dict[tuple[int, int], str] = {}
    for number, packet in _packets(data, faults):
        if number not in names and number != imc.EntityInfo.ID:
            others[MESSAGES[number].__name__ if number in MESSAGES else f"message {number}"] += 1
            continue
        try:
            found = read(packet, VERSIONS)
        except MalformedMessage as error:
            faults[f"{names.get(number, 'EntityInfo')}: {error}"] += 1
            continue
        if isinstance(found.message, imc.EntityInfo):
            labels[found.source, found.message.id] = found.message.label
        else:
            packets.append(found)
    if not packets and not others:
        raise LogError(f"cannot read {path}: it contains no IMC packets")
    systems = Counter(p.source for p in packets)
    made = RecordedFile([], dict(others))
    made.notes += [f"{n} damaged parts were skipped ({why})" for why, n in faults.items()]
    if len(systems) > 1:
        (own, most), *rest = systems.most_common()
        ignored = ", ".join(f"{system:#06x}" for system, _ in rest)
        made.notes.append(f"system {own:#06x} is used ({most} messages), and not {ignored}")
    grouped: dict[tuple[int, str], list[ImcPacket]] = defaultdict(list)
    for p in packets:
        if p.source == systems.most_common(1)[0][0]:
            grouped[p.source_entity, type(p.message).__name__].append(p)
    for (entity, kind), group in sorted(grouped.items()):
        label = labels.get((group[0].source, entity), str(entity))
        made.messages.append(_messages(kind, label, group))
    return made


def _content(path: Path) -> bytes:
    """Return the decompressed content of a log. A truncated compressed file gives the part that can be read."""
    try:
        if not path.name.lower().endswith(".gz"):
            return path.read_bytes()
        parts, size = [], 0
        with gzip.open(path) as file, contextlib.suppress(EOFError, zlib.error):
            while part := file.read(1 << 20):
                parts.append(part)
                size += len(part)
                if size > MOST_BYTES:
                    raise LogError(f"{path} is too large: it decompresses to more than {MOST_BYTES >> 30} GiB")
        return b"".join(parts)
    except OSError as error:
        raise LogError(f"cannot read {path}: {error.strerror or error}") from None


def _packets(data: bytes, faults: Counter[str]) -> Iterator[tuple[int, bytes]]:
    """Yield the message number and the bytes of each packet. Bytes between packets are skipped and counted."""
    starts = {struct.pack(order + "H", v): order for v in VERSIONS for order in "<>"}
    at, end, lost = 0, len(data), False
    while at + HEADER_SIZE + CRC_SIZE <= end:
        order = starts.get(data[at : at + 2])
        if order is None:
            faults["bytes outside of packets"] += not lost
            lost = True
            at = min((k for k in (data.find(s, at + 1) for s in starts) if k > 0), default=end)
            continue
        number, size = struct.unpack_from(order + "HH", data, at + 2)
        after = at + HEADER_SIZE + size + CRC_SIZE
        if after > end or (after + 2 <= end and data[after : after + 2] not in starts):
            if after > end and not lost:
                faults["the file ends within a packet"] += 1
            lost = True
            at += 1
            continue
        lost = False
        yield number, data[at:after]
        at = after
    if at < end and not lost:
        faults["the file ends within a packet"] += 1


def _messages(kind: str, label: str, group: list[ImcPacket]) -> RecordedMessages:
    columns = {}
    for name, first in vars(group[0].message).items():
        if isinstance(first, int | float):
            columns[name] = np.array([getattr(p.message, name) for p in group], float)
    time = np.array([p.time for p in group])
    return RecordedMessages(f"{kind} ({label})", kind, time, columns, None, label)
