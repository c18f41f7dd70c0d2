"""Pure functions that evaluate a JOIN and make the answers to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgpack

from wavesim_sdk.wire import codec
from wavesim_sdk.wire.codec import Dropped
from wavesim_sdk.wire.key_file import ANY_CLIENT, KeyHolder
from wavesim_sdk.wire.messages import HEADER_BYTES, MAGIC, MIN_HELLO, Join, Refusal, Resumption, Role, Type, Welcome
from wavesim_sdk.wire.schema import Malformed, schema_of
from wavesim_sdk.wire.session import NotAdmitted, Session

_WHOLE = schema_of(Join)


def cookie_and_nonce(payload: tuple[Any, ...]) -> tuple[bytes, int]:
    """Return the cookie and the nonce of a JOIN. Raises Dropped if they are invalid, because the JOIN cannot be
    answered without them.
    """
    if len(payload) < 2 or type(payload[0]) is not bytes or type(payload[1]) is not int or not 0 <= payload[1] < 2**64:
        raise Dropped("fields")
    return payload[0], payload[1]


def check_key(holder: KeyHolder, name: str, has_own_key: Callable[[str], bool]) -> None:
    """Raise NotAdmitted unless a key is valid for a join with this name. A key for all names is not valid for a name
    that has its own key, so that a join under such a name proves the client's identity.
    """
    if holder.is_retired:
        raise NotAdmitted(Refusal.KEY, "this key was replaced; join with the new key")
    if holder.name not in (ANY_CLIENT, name):
        raise NotAdmitted(Refusal.KEY, f"this key belongs to '{holder.name}'")
    if holder.name == ANY_CLIENT and has_own_key(name):
        raise NotAdmitted(Refusal.KEY, f"'{name}' has its own key; a key for all names is not valid for it")


def resolve_join(
    payload: tuple[Any, ...],
    check_key: Callable[[str], None],
    find_previous: Callable[[Join], Session | None],
    pilots: Mapping[str, Session],
    takeover: bool,
) -> tuple[Join, Session | None, Resumption]:
    """Return the JOIN message, the earlier session that it continues (or None), and the kind of continuation.

    Raises NotAdmitted if the join is invalid or refused, or if ``check_key`` finds that the key is not valid for the
    name. ``find_previous`` returns the live session that the field `previous` of a join refers to.
    """
    try:
        join = _WHOLE.decode(payload)
        role = Role(join.role)
    except Malformed as malformed:
        raise NotAdmitted(Refusal.BAD_VALUE, str(malformed)) from None
    except ValueError:
        raise NotAdmitted(Refusal.BAD_VALUE, f"role: unknown role {payload[3]}") from None
    if join.lockstep_ns and role not in (Role.PILOT, Role.INSTRUMENT):
        raise NotAdmitted(Refusal.BAD_VALUE, "lockstep_ns: only a pilot or an instrument can request lockstep")
    check_key(join.name)
    if join.previous:
        previous = find_previous(join)
        if previous is None or previous.is_suspended or (previous.name, previous.join.role) != (join.name, join.role):
            raise NotAdmitted(
                Refusal.EXPIRED,
                f"'{join.name}' has no live session with that token and role; join again without a previous token",
            )
        return join, previous, Resumption.RESUMED
    current_pilot = pilots.get(join.name) if role is Role.PILOT else None
    if current_pilot is None:
        return join, None, Resumption.NEW
    if not takeover:
        raise NotAdmitted(Refusal.NAME_IN_USE, f"'{join.name}' is in use by another client")
    return join, current_pilot, Resumption.TOOK_OVER


def make_welcome(session: Session, clock: tuple[int, int], keepalive: tuple[float, float]) -> Welcome:
    """Return the WELCOME of a session, with the current tick and run state."""
    a = session.admission
    return Welcome(
        session.nonce,
        a.id,
        session.join.role,
        session.resumed,
        a.step_ns,
        a.sound_speed,
        *clock,
        a.state_period_ns,
        session.join.lockstep_ns,
        *keepalive,
        len(a.actuators),
        len(a.sensors),
        a.rights,
    )


def version_1_refusal(data: bytes) -> bytes:
    """Return a REFUSE in the format of version 1 as the answer to a HELLO of version 1; return an empty byte string for
    any other datagram.

    The REFUSE is never longer than the HELLO.
    """
    if codec.protocol_version(data) != 1 or data[5] != Type.HELLO or len(data) < MIN_HELLO:
        return b""
    try:
        payload = codec.unpack_payload(data[HEADER_BYTES:], Type.HELLO)
    except Dropped:
        return b""
    if not payload or type(payload[0]) is not int:
        return b""
    plain: bytes = msgpack.packb([payload[0], int(Refusal.BAD_VALUE), "server speaks version 2"])
    return MAGIC + bytes((1, Type.REFUSE)) + bytes(HEADER_BYTES - 6) + plain
