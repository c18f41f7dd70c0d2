"""Resolution of a server's NAME (on this machine) or HOST:PORT to a network address."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Sequence

from wavesim_sdk.errors import ConfigError, InvalidArgument
from wavesim_sdk.names import shorten
from wavesim_sdk.wire import local

__all__ = ["DEFAULT_PORT", "DEFAULT_SERVER", "SERVER_VARIABLE", "ServerName", "address_of"]

DEFAULT_PORT = 9750
DEFAULT_SERVER = ("127.0.0.1", DEFAULT_PORT)
SERVER_VARIABLE = "WAVESIM_SERVER"  #: environment variable that selects the default server

ServerName = str | tuple[str, int]


def address_of(server: ServerName | None) -> tuple[str, int]:
    """Return the address of a server that is given as ``(host, port)``, as ``"host:port"``, or as the name of a server
    on this machine.

    If None is given, the WAVESIM_SERVER variable selects the server; if this variable is not set, port 9750 on this
    machine is used. Raises ConfigError if the text is invalid, and NotRunning if no server with that name is running
    here.
    """
    server = server if server is not None else os.environ.get(SERVER_VARIABLE) or DEFAULT_SERVER
    if not isinstance(server, str):
        if not (
            isinstance(server, Sequence) and len(server) == 2 and isinstance(server[0], str) and type(server[1]) is int
        ):
            raise InvalidArgument(f'server must be a name, "HOST:PORT" or (host, port), got {shorten(server)}')
        return server[0], server[1]
    host, colon, port = server.rpartition(":")
    if colon:
        if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
            raise ConfigError(f"invalid server '{server}': use its name or HOST:PORT, with a port from 1 to 65535")
        return host.strip("[]"), int(port)
    if (inside := local.find_server_by_name(server)) is not None:
        return inside.address
    try:
        from wavesim_sdk.commander import Commander  # only for a server name, which needs the commander queue
    except ModuleNotFoundError as missing:
        raise ConfigError(
            f"server '{server}': a server can be found by its name only on its own machine, and only with '{missing.name}' "
            "(pip install 'wavesim-sdk[local]'); otherwise, use HOST:PORT"
        ) from None

    with Commander(server) as commander:
        address = commander.send("status").data.get("address") or ("", 0)
    if not address[0]:
        raise ConfigError(f"the server '{server}' does not report its address; use HOST:PORT")
    at = ipaddress.ip_address(address[0])
    if at.is_unspecified:  # it listens on all interfaces
        return ("::1" if at.version == 6 else "127.0.0.1"), int(address[1])
    return str(at), int(address[1])
