"""The one way to name a server: its NAME if it runs on this machine, else HOST:PORT."""

from __future__ import annotations

import ipaddress
import os

from wavesim_sdk.errors import ConfigError

DEFAULT_PORT = 9750
DEFAULT_SERVER = ("127.0.0.1", DEFAULT_PORT)
SERVER_VARIABLE = "WAVESIM_SERVER"  #: names the server that is meant where none is named

ServerName = str | tuple[str, int]


def address_of(server: ServerName | None) -> tuple[str, int]:
    """Where a server listens: that of ``(host, port)``, ``"host:port"`` or of a server's name on this machine.

    None: the one that the variable WAVESIM_SERVER names, or port 9750 of this machine. ConfigError if it says nothing of the
    kind, NotRunning if no such server runs here.
    """
    server = server if server is not None else os.environ.get(SERVER_VARIABLE) or DEFAULT_SERVER
    if not isinstance(server, str):
        return server
    host, colon, port = server.rpartition(":")
    if colon:
        if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
            raise ConfigError(f"'{server}' is no server: write its name, or HOST:PORT")
        return host.strip("[]"), int(port)
    from wavesim_sdk.commander import Commander  # only who names a server of this machine needs its queues

    with Commander(server) as commander:
        address = commander.send("status").data.get("address") or ("", 0)
    if not address[0]:
        raise ConfigError(f"the server '{server}' does not tell where it listens: write HOST:PORT")
    at = ipaddress.ip_address(address[0])
    if at.is_unspecified:  # it listens everywhere
        return ("::1" if at.version == 6 else "127.0.0.1"), int(address[1])
    return str(at), int(address[1])
