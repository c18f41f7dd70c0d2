"""Run in an environment that has acomms: use two Micro-Modems for at least some seconds, and print what acomms decoded
as JSON.

Arguments: serial ports of modems 1 and 2, a folder for acomms' log, and the seconds.
"""

import json
import logging
import sys
import time
from queue import Empty, Queue

from acomms.micromodem import Micromodem

FLEXIBLE = bytes(range(20))


class Warnings(logging.Handler):
    """Collects acomms' warnings."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def answer(queue: Queue, kind: str, timeout: float = 30.0) -> list[str]:
    """Return the fields of the next sentence of a kind."""
    limit = time.monotonic() + timeout
    while time.monotonic() < limit:
        try:
            message = queue.get(timeout=0.5)
        except Empty:
            continue
        if message["type"] == kind:
            return message["params"]
    raise SystemExit(f"no {kind}")


def main(ports: list[str], folder: str, seconds: float) -> None:
    modems, said, warnings = [], [], Warnings()
    for name, port in zip("ab", ports, strict=True):
        modem = Micromodem(name, log_path=folder)
        modem._daemon_log.addHandler(warnings)
        modem.connect_serial(port)
        said.append(Queue())
        modem.attach_incoming_msg_queue(said[-1])
        modem.set_config("REV", 0)  # acomms gives up what it does at each CAREV
        modems.append(modem)
    a, b = modems
    packets, statistics, times, flexible = Queue(), Queue(), Queue(), Queue()
    b.attach_packetrx_queue(packets)
    b.attach_incoming_cst_queue(statistics)
    b.fdp_listeners.append(flexible.put)
    a.attach_incoming_sntta_queue(times)
    found = {"addresses": [a.id, b.id], "info": a.fw_at_least("2.0.0"), "TAT": a.set_config("TAT", 20) is not None}
    found |= {"pings": [], "packets": [], "travel_times": [], "mini": [], "flexible": []}
    end, rate = time.monotonic() + seconds, 0
    while rate < 7 or time.monotonic() < end:
        a.send_ping(2)
        found["pings"].append([float(v) for v in answer(said[0], "CAMPR")])
        a.write_nmea({"type": "CCMUC", "params": [1, 2, f"{rate:04X}"]})
        found["mini"].append(answer(said[1], "CAMUA"))
        answer(said[0], "CATXF")
        a.send_pnt(26000, 3, 3, 1500, [25000, 27000, 28000, 29000], False)
        found["travel_times"].append(times.get(timeout=30).travel_times)
        answer(said[0], "SNTTA")
        content = bytes((7 * k + rate) % 256 for k in range((32, 192, 192, 512, 512, 2048, 192)[rate % 7]))
        a.send_packet_data(2, content, rate_num=rate % 7, ack=True)
        packet = packets.get(timeout=60)
        answer(said[0], "CAACK")
        answer(said[1], "CATXF")  # of the acknowledgement
        good = b"".join(bytes(f.data) for f in packet.frames) == content
        found["packets"].append([rate % 7, good, len(packet.frames)])
        a.write_nmea({"type": "CCTDP", "params": [2, 1, 0, 0, FLEXIBLE.hex()]})
        answer(said[1], "CARDP")
        answer(said[0], "CATXF")
        found["flexible"].append(bytes(flexible.get(timeout=30).databytes) == FLEXIBLE)
        rate += 1
    received = [statistics.get() for _ in range(statistics.qsize())]
    found["statistics"] = [[c["mode"], c["snr_in"], c["dop"], c["carrier"]] for c in received]
    found["warnings"] = sorted(set(warnings.texts))
    print(json.dumps(found))


main(sys.argv[1:3], sys.argv[3], float(sys.argv[4]))
