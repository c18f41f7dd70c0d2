"""Medium access protocols: throughput as in theory, the same run in any order, and a report that counts right."""

from __future__ import annotations

import importlib
import json
import math
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tests.conftest import run_trial
from wavesim_sdk.errors import InvalidArgument
from wavesim_sdk.tables import RECEPTION, SENT, Outcome
from wavesim_server import Simulation, cli
from wavesim_server.logbook import network_report
from wavesim_world.config import load, load_text

TWO = """<wavesim><time step="100 ms"/><world><bed depth="60 m"/></world><acoustics sound_speed="1500 m/s"/><fleet>
<buoy name="a" model="buoy" position="0 0 20 m"><transducer recharge="0 s"><modem address="1" preamble="0 s"/></transducer></buoy>
<buoy name="b" model="buoy" position="75 0 20 m"><transducer recharge="0 s"><modem address="2" preamble="0 s"/></transducer></buoy>
</fleet></wavesim>"""


@pytest.fixture
def folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(root / "examples/mac"))
    return root / "examples/mac"


def test_two_nodes_that_send_at_the_same_time_are_deaf() -> None:
    """Counted by hand: 0.1 s packets, 0.05 s apart. The first two overlap at both ends, the last two do not."""
    sim = Simulation(load_text(TWO))
    sim.enter_residents()
    for row, to, times in ((sim.row_of("a"), 2, (1.0, 2.0)), (sim.row_of("b"), 1, (1.04, 2.2))):
        for at in times:
            assert row is not None
            sim.send(row, b"12345678", to, at=round(at * 1e9))
    sim.advance(30)
    table = network_report.network_table(*sim.take_signals(), 3.0)
    assert (table["offered"], table["sent"], table["deliveries_possible"], table["delivered"]) == (4, 4, 4, 2)
    assert table["lost"] == {"transmitting": 2} and table["fairness"] == 1.0
    assert table["sent_load"] == pytest.approx(0.4 / 3.0) and table["throughput"] == pytest.approx(0.1 / 3.0)
    assert table["delay_s"]["50 %"] == pytest.approx(0.15, abs=1e-3), "75 m and 64 bits"
    intensity = 10.0 ** ((188.0 - 120.0) / 10.0) / (1025.0 * 1500.0)
    assert table["energy_per_bit_j"] == pytest.approx(4.0 * math.pi * intensity * 0.4 / 128.0)


def signals(outcomes: Iterable[tuple[int, int, int, Outcome]]) -> tuple[Any, Any]:
    """Records of packets: (source row, destination address, receiver row, outcome). Row k has the address k + 1."""
    rows = list(outcomes)
    sent, receptions = np.zeros(len(rows), SENT.dtype), np.zeros(len(rows), RECEPTION.dtype)
    for k, (source, to, receiver, outcome) in enumerate(rows):
        both = {"id": k + 1, "source": source, "kind": 1, "from_address": source + 1, "to_address": to, "duration": 0.5}
        for name, value in both.items():
            sent[k][name] = receptions[k][name] = value
        sent[k]["payload_bytes"], receptions[k]["receiver"], receptions[k]["outcome"] = 4, receiver, outcome
    return sent, receptions


def test_only_the_destination_counts() -> None:
    sent, receptions = signals(
        [
            (0, 3, 2, Outcome.HEARD),
            (0, 3, 2, Outcome.COLLISION),
            (0, 3, 1, Outcome.HEARD),  # overheard; at its destination there is no record
            (1, 0, 0, Outcome.HEARD),  # to all
            (1, 0, 2, Outcome.HEARD),
        ]
    )
    table = network_report.network_table(sent, receptions, 10.0, {2: 3})
    assert (table["deliveries_possible"], table["delivered"]) == (5, 3)
    assert table["lost"] == {"collision": 1, network_report.MISSING: 1}
    assert table["fairness"] == pytest.approx((1 + 2) ** 2 / (2 * (1 + 4)))
    assert [n["delivered"] for n in table["nodes"]] == [1, 2, 0]
    with pytest.raises(InvalidArgument, match="must be positive"):
        network_report.network_table(sent, receptions, 0.0)


@pytest.mark.parametrize(
    "chosen", [("aloha", 1.0, 0.5), ("ring", 2.0, 1.0, 0.005), ("disc", 1.0, 0.8, 0.25), ("tdma", 0.5, 2.0)]
)
def test_the_throughput_is_that_of_theory(folder: Path, chosen: tuple[Any, ...]) -> None:
    study = importlib.import_module("throughput")
    case = study.Case(*chosen)
    found, error, sent = study.measured(case, 12_000 if case.protocol == "tdma" else 3000)
    assert found == pytest.approx(study.expected(case, sent), abs=max(3.0 * error, 0.05 * found))


def network(folder: Path, protocol: str, seconds: float, backwards: bool) -> list[tuple[Any, ...]]:
    library, node = importlib.import_module("library"), importlib.import_module("node")
    loaded: Any = load(folder / "network.xml")
    sim = Simulation(loaded)
    bodies = loaded.config.fleet.bodies[:: -1 if backwards else 1]
    for body in bodies:
        sim.enter(body.name)
    stations = {
        b.name: node.station_of(loaded, b.name, [*b.program.options.split(), "--protocol", protocol], sim.seed)
        for b in bodies
    }
    sent, receptions = library.run(sim, stations, seconds)
    assert len(sent) > 10
    addresses = {sim.row_of(b.name): loaded.transducer(b).modem.address for b in bodies}
    columns = ("emission_ns", "arrival_ns", "from_address", "outcome")
    return sorted((*(int(r[c]) for c in columns), addresses[int(r["receiver"])]) for r in receptions)


@pytest.mark.parametrize("protocol", ["slotted", "csma", "s-fama"])
def test_the_order_of_the_nodes_does_not_matter(folder: Path, protocol: str) -> None:
    assert network(folder, protocol, 40.0, False) == network(folder, protocol, 40.0, True)


@pytest.mark.parametrize("layout", ["crowd", "pair"])
def test_csma_and_s_fama_have_the_throughput_of_theory(folder: Path, layout: str) -> None:
    study = importlib.import_module("sensing")
    case = study.SensingCase(layout, 0.5)
    found, error = study.measured(case, 1200 if layout == "crowd" else 300)
    assert found == pytest.approx(study.expected(case, 0), abs=max(3.0 * error, 0.05 * found))


def test_csma_sends_the_packets_that_its_definition_allows(folder: Path) -> None:
    """Exactly: the receiver receives the same number of packets as by a count over all attempts and delays."""
    study = importlib.import_module("sensing")
    case = study.SensingCase("disc", 0.5, 1.5)
    found, _ = study.measured(case, 600)
    assert found == pytest.approx(study.counted(case, 600, 1), rel=1e-9)


def test_csma_sends_a_packet_later_if_the_channel_is_busy(folder: Path) -> None:
    csma, mac = importlib.import_module("csma"), importlib.import_module("mac")
    program = csma.Csma(mac.Node("a", 1, 1, 0, 2, 640.0, 0.0, 0.5, 0.05), retry=2.0)
    program.on_channel(mac.ChannelChange(1_000_000_000, True))
    assert program.on_packet(1_099_999_999, b"12345678", 2), "it does not know of the signal yet"
    program.on_channel(mac.ChannelChange(1_500_000_000, False))
    program.free = 0
    assert program.on_packet(1_100_000_000, b"1", 2) == [] and program.timer > 1_100_000_000
    sent: list[Any] = []
    while not sent:
        now = program.timer
        sent = program.on_timer(now)
    assert sent[0].payload == b"1" and sent[0].at == now >= 1_600_000_000 and program.timer is None


@pytest.mark.parametrize("protocol", ["maca-u", "csma", "s-fama"])
def test_brokers_give_the_signals_of_the_library_run(folder: Path, tmp_path: Path, name: str, protocol: str) -> None:
    copy = tmp_path / "mac"
    shutil.copytree(folder, copy)
    (copy / "network.xml").write_text((folder / "network.xml").read_text().replace("maca-u", protocol))
    done = run_trial(copy / "network.xml", tmp_path, name, "--in-process", "--duration", "40 s")
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.rglob("*.mcap")
    said = CliRunner().invoke(cli.log, ["network", str(path), "--json"])
    assert said.exit_code == 0, said.output
    table = json.loads(said.output)
    text = CliRunner().invoke(cli.log, ["network", str(path)]).output
    assert f"{table['sent']} sent" in text and "\nn10 " in text
    assert table["sent"] > 10 and table["deliveries_possible"] == table["sent"]
    log = importlib.import_module("wavesim_sdk.log").read(path)
    records = log.get("/acoustics/reception", RECEPTION).records
    number = {row: int(body["name"][1:]) for row, body in log.bodies.items()}  # node n7 has the address 7
    columns = ("emission_ns", "arrival_ns", "from_address", "outcome")
    found = sorted((*(int(r[c]) for c in columns), number[int(r["receiver"])]) for r in records)
    assert found == network(folder, protocol, 40.0, False)
