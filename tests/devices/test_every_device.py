"""Each device of `wavesim device`: half and malformed commands, 1 MB of noise, a host that never reads, and two hosts at
once. All bytes are counted, invalid commands as well, and nothing is fatal.
"""

from __future__ import annotations

import dataclasses
import queue
import threading
from collections.abc import Callable
from typing import Any

import click
import pytest

from wavesim_conformance.broker import NAME
from wavesim_conformance.device import DeviceServer, PortChecker, places_of
from wavesim_devices import serve
from wavesim_devices.check import WITHOUT_NAME
from wavesim_devices.cli import device
from wavesim_sdk.errors import WaveSimError

#: options of each device that needs some, and valid commands of its protocol
MODEM = "--address 3"
DEVICES: dict[str, tuple[str, tuple[bytes, ...]]] = {
    "benthos": (f"{MODEM} --tcp 0", (b"AT\r", b"@TxRate=5\r", b"ATR4\r")),
    "boat": ("--nmea0183 tcp:0 --nmea2000 tcp:0 --signalk tcp:0", ()),
    "dvl": ("--tcp 0", (b"CS\r", b"===\r", b"PD4\r")),
    "imagenex": ("--tcp 0", (b"\xfe\x44\x10\x0a\0\0\x43\0\x14\1\x14\x3c\x0a\3\6\1\0\0\0\x19\x08\6\0\0\0\x64\xfd",)),
    "keller": ("--tcp 0", (b"\xfa\x30\x04\x43", b"\xfa\x49\x01\xa1\xa7", b"\xfa\x45\xe3\x82")),
    "lauv-actuators": (
        "--pilot --motor tcp:0 --servos tcp:0",
        (b"\x2a\x01\x00\xab", b"\x2a\x03\x02\xc0\x64\x8f", b"\x2a\x02\x01\x0a\xa3", b"\x2a\x03\x09\x00\x80\xa0"),
    ),
    "m64": ("--tcp 0", (b"wcv\n", b"wcq,8,12345678\n")),
    "micron": (
        "--tcp 0",
        (b"@0008\x08\x00\xff\x02\x03\x17\x80\x02\n", b"@000C\x0c\x00\xff\x02\x07\x19\x80\x02\0\0\0\0\n"),
    ),
    "micromodem": (f"{MODEM} --tcp 0", (b"$CCMPC,3,4*00\r\n", b"$CCCFQ,ALL\r\n")),
    "microstrain": ("--tcp 0", (b"\xcc", b"\xe9", b"\xe5\x00\x04\x00", b"\xc4\xc1\x29\xc8", b"\xfa\x75\xb4")),
    "minisvs": ("--tcp 0", (b"#", b"M1\r\n", b"S\r\n")),
    "nanomodem": (f"{MODEM} --tcp 0", (b"$?", b"$P005", b"$B05hello", b"$XTG")),
    "nmea": ("--tcp 0", ()),
    "nucleus": ("--command tcp:0 --stream tcp:0 --serial pty:", (b"nortek\r\n", b"GETALL\r\n", b"START\r\n")),
    "omniscan": ("--tcp 0", (b"BR\x02\x00\x06\x00\x00\x00\x05\x00\x9f\x00",)),
    "ping1d": ("--tcp 0", (b"BR\x02\x00\x06\x00\x00\x00\x05\x00\x9f\x00",)),
    "ping360": ("--tcp 0", (b"BR\x02\x00\x06\x00\x00\x00\x05\x00\x9f\x00",)),
    "popoto": (f"{MODEM} --command tcp:0", (b'{"Command": "GetValue", "Arguments": "RemoteID 0"}\n',)),
    "s2c": (f"{MODEM} --net tcp:0", (b"AT?S\n", b"AT*SENDIM,5,4,ack,hello\n", b"ATZ0\n")),
    "sbe37": ("--tcp 0", (b"TS\r\n", b"DS\r\n", b"INTERVAL=5\r\n")),
    "sbe45": ("--tcp 0", (b"TS\r\n", b"DS\r\n")),
    "seatrac": ("--beacon 3 --tcp 0", (b"#0161C0\r\n", b"#020000\r\n")),
    "surveyor": ("--tcp 0", (b"BR\x02\x00\x06\x00\x00\x00\x05\x00\x9f\x00",)),
    "sylphase": ("--stream tcp:0", ()),
    "uasp": (
        "--command tcp:0",
        (b'{"action": "version"}\n', b'{"action": "get", "param": "time"}\n', b'{"action": "odata", "data": "AAAA"}\n'),
    ),
    "ublox": ("--tcp 0", (b"\xb5\x62\x0a\x04\x00\x00\x0e\x34",)),
    "unet": (
        f"{MODEM} --fjage tcp:0 --baseband",
        (
            b'{"action": "agents", "id": "1"}\n',
            b'{"alive": true}\n',
            b'{"action": "send", "message": {"clazz": "org.arl.unet.bb.TxBasebandSignalReq", "data": {"msgID": "1", "perf": '
            b'"REQUEST", "sender": "g", "recipient": "phy", "signal": [1, 0, -1, 0]}}}\n',
        ),
    ),
    "usbl": ("--beacon 1=4 --tcp 0", ()),
    "vectornav": ("--tcp 0", (b"$VNRRG,01*XX\r\n", b"$VNWRG,06,1*XX\r\n")),
    "waterlinked-dvl": (
        "--json tcp:0 --pd6 tcp:0 --pd4 tcp:0 --http tcp:0 --serial pty:",
        (b'{"command": "get_config"}\r\n', b"wcv\n", b"GET /api/v1/about HTTP/1.1\r\nHost: a\r\n\r\n"),
    ),
    "waterlinked-sonar": ("--http tcp:0", (b"GET /api/v1/integration/about HTTP/1.1\r\nHost: a\r\n\r\n",)),
    "waterlinked-ugps": ("--http tcp:0", (b"GET /api/v1/about HTTP/1.1\r\nHost: a\r\n\r\n",)),
    "xsens": ("--tcp 0", (b"\xfa\xff\x30\x00\xd1", b"\xfa\xff\x10\x00\xf1")),
}
#: devices that only send: they have no commands
TALKERS = {"boat", "nmea", "sylphase", "usbl"}


class Served:
    """A device of `wavesim device` in a thread, at a scripted server."""

    def __init__(self, server: DeviceServer, monkeypatch: pytest.MonkeyPatch, name: str, options: str) -> None:
        self.said: queue.Queue[str] = queue.Queue()
        self.devices: list[serve.ServedDevice] = []
        self.error: BaseException | None = None
        make, run = serve.ServedDevice, serve.serve_devices

        def keep(*args: Any, **more: Any) -> serve.ServedDevice:
            self.devices.append(make(*args, **more))
            return self.devices[-1]

        def heard(place: serve.DeviceOptions, *kinds: Any) -> Any:
            return run(dataclasses.replace(place, report=self.said.put), *kinds)

        monkeypatch.setattr(serve, "ServedDevice", keep)
        monkeypatch.setattr(serve, "serve_devices", heard)
        words = [name, NAME, "--port", str(server.address[1]), "--lockstep", "0.1", *options.split()]
        self.thread = threading.Thread(target=self._run, args=(device, words), daemon=True)
        self.thread.start()

    def _run(self, command: click.Command, words: list[str]) -> None:
        try:
            command.main(words, standalone_mode=False)
        except BaseException as error:  # the test looks at it
            self.error = error
            self.said.put(f"ended: {error!r}")


def test_every_device_is_here() -> None:
    assert DEVICES.keys() == device.commands.keys() - set(WITHOUT_NAME)


@pytest.mark.parametrize("name", DEVICES)
def test_no_host_harms_a_device(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options, samples = DEVICES[name]
    with DeviceServer() as server:
        served = Served(server, monkeypatch, name, options)
        places: list[str] = []
        number = 3 if name == "boat" else 1
        for _ in range(number):
            places += places_of(served.said.get(timeout=20))
        assert server.advance(), served.error
        checker = PortChecker(places, server.advance, samples)
        broken = [f for f in checker.run() if not f.ok]
        said = [served.said.get() for _ in range(served.said.qsize())]
        assert not broken and not said, (broken, said, served.error)
        counts: Callable[[str], int] = lambda what: sum(d.counts[what] for d in served.devices)  # noqa: E731
        errors = sum(d.errors for d in served.devices)
        assert counts("received") >= checker.sent
        assert counts("failures") == 0
        assert (errors > 0) == (name not in TALKERS), errors
        server.bye(NAME)
        served.thread.join(10.0)
        assert isinstance(served.error, WaveSimError) and "the test is over" in str(served.error)
