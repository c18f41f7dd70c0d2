"""One simulated run as a WaVeSim log and as a ROS 2 bag: both give the same fit. Instruments away from the origin of the
body measure what a rigid body has at their places, and vehicles start at rest in water of any density.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from rosbags.highlevel import AnyReader
from rosbags.rosbag2 import Writer
from rosbags.typesys import Stores, get_typestore

from tests.studies.lake import COLUMN, sail, steps
from wavesim_sdk import frames
from wavesim_sdk.errors import LogError
from wavesim_sdk.log import read
from wavesim_sdk.tables import ACTUATION
from wavesim_server.logbook.navigation_rosbag import write_rosbag
from wavesim_server.study import equilibrium_depth
from wavesim_studies.identification import (
    MeasuredSeries,
    RecordedTrial,
    ShootingOptions,
    TrialSource,
    cli,
    manoeuvre_plan,
    parse_unknowns,
    predict,
    read_trial,
)
from wavesim_studies.identification import recorded_trials as rt
from wavesim_studies.identification.coefficients import ModelCoefficients
from wavesim_studies.identification.shooting import ShootingProblem
from wavesim_studies.navigation import lab_logs
from wavesim_world.config import library, load_text
from wavesim_world.config.build import read_models

pytestmark = [pytest.mark.xdist_group("identification")]
GPS, DVL = (0.6, 0.4, -1.2), (0.8, -0.3, 0.3)  #: mounting positions in m
WORLD = f"""<wavesim seed="5"><time step="20 ms"/><world latitude="63.4 deg" longitude="10.4 deg"><bed depth="20 m"/></world>
<fleet><vehicle name="boat" model="otter" position="30 -20 0 m" attitude="0 0 40 deg" speed="1 m/s" client="none">
<sensors inherit="no"><ahrs/><gps rate="5 Hz" hacc="0.2 m" correlation="0 s" position="{" ".join(map(str, GPS))} m"/>
<dvl rate="5 Hz" bottom_sigma="0.01 m/s" position="{" ".join(map(str, DVL))} m" attitude="0 0 45 deg"/></sensors></vehicle></fleet></wavesim>"""
PLANTED = {"linear-drag/X_u": 1.3, "quadratic-drag/N_r": 0.7}
COMMANDS = {"port": steps([9.0, 14.0, 6.0], 7.0), "starboard": steps([9.0, 5.0, 13.0, 7.0], 8.0)}
FIT = [x for path in PLANTED for x in ("--fit", path)]


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(cli.identify, [*map(str, arguments)])


def planted() -> dict[str, float]:
    c = ModelCoefficients(library()["otter"])
    return {path: c.value(path) * factor for path, factor in PLANTED.items()}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of a boat with other coefficients than its model, with a Doppler log and an antenna away from its origin."""
    path = tmp_path_factory.mktemp("own") / "run.mcap"
    loaded = load_text(WORLD)
    real = ModelCoefficients(library()["otter"]).model_with(planted())
    loaded = replace(loaded, models={**loaded.models, "otter": real})

    def program(time: float, state: Any, dt: float) -> dict[str, float]:
        return {name: f(time + 1e-9) for name, f in COMMANDS.items()}

    lab_logs.record(loaded, "boat", path, 40.0, 5, program, every=0.1, state=0.1)
    return path


@pytest.fixture(scope="module")
def bag(log: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run as a bag: the exported topics of the instruments, and a topic with the commands of each actuator. An
    import map beside it states the mountings.
    """
    folder = tmp_path_factory.mktemp("bag")
    found = read(log)
    list(write_rosbag(found, folder / "exported"))
    store: Any = get_typestore(Stores.ROS2_HUMBLE)
    number = store.types["std_msgs/msg/Float64"]
    with AnyReader([folder / "exported"], default_typestore=store) as source, Writer(folder / "bag", version=9) as made:
        topics = {
            c.topic: made.add_connection(c.topic, c.msgtype, typestore=store)
            for c in source.connections
            if not c.topic.endswith("odom")  # the truth
        }
        begin = min(received for _, received, _ in source.messages())
        for connection, received, raw in source.messages():
            if connection.topic in topics:
                made.write(topics[connection.topic], received, raw)
        actuation = found.get("/actuation/boat", ACTUATION)
        zero = begin - min(int(s.time_ns[0]) for t, s in found.series.items() if t.startswith(("/sensor", "/state")))
        for k, name in enumerate(COMMANDS):
            topic = made.add_connection(f"/{name}", "std_msgs/msg/Float64", typestore=store)
            for time, command in zip(actuation.time_ns, actuation.records["command"][:, k], strict=True):
                message = store.serialize_cdr(number(float(command)), "std_msgs/msg/Float64")
                made.write(topic, zero + int(time), message)
    (folder / "boat.xml").write_text(found.metadata["configuration"])
    (folder / "map.xml").write_text('<import vehicle="boat" configuration="boat.xml"/>')
    return folder / "bag"


def test_a_log_and_a_bag_of_one_run_give_the_same_fit(log: Path, bag: Path) -> None:
    """The planted coefficients come back from both, although no instrument is at the origin of the body."""
    found = []
    commands = [x for name in COMMANDS for x in ("--command", f"{name}=/{name}:data")]
    for arguments in ([log], [bag, "--map", bag.parent / "map.xml", *commands]):
        done = run("fit", "otter", *arguments, *FIT, "--json")
        assert done.exit_code == 0, (done.output, done.exception)
        found.append({u["path"]: u for u in json.loads(done.stdout)["unknowns"]})
    for path, true in planted().items():
        own, other = (f[path] for f in found)
        assert abs(own["value"] - true) < 3.0 * own["sd"] < 0.1 * true, path
        assert other["value"] == pytest.approx(own["value"], abs=0.05 * own["sd"]), path
        assert other["sd"] == pytest.approx(own["sd"], rel=0.05), path


def test_without_its_mounting_a_doppler_log_contradicts_the_model(log: Path) -> None:
    model = library()["otter"]
    trial = read_trial(log, model)
    assert {c: s.arm for c, s in trial.channels.items() if any(s.arm)} == {
        "north": GPS, "east": GPS, "surge": DVL, "sway": DVL, "heave": DVL
    }  # fmt: skip
    bare = replace(trial, channels={c: replace(s, arm=rt.ORIGIN) for c, s in trial.channels.items()})
    real = ModelCoefficients(model).model_with(planted())
    right, wrong = (predict(real, t, ShootingOptions()) for t in (trial, bare))
    assert right.errors["sway"].rms < 0.02 < 0.1 < wrong.errors["sway"].rms
    assert max(right.distances.values()) < 1.0


def test_the_true_states_of_a_log_are_those_of_its_model(log: Path) -> None:
    model = library()["otter"]
    trial = read_trial(log, model, TrialSource(true_states=True))
    assert not any(any(s.arm) for s in trial.channels.values())
    made = predict(ModelCoefficients(model).model_with(planted()), trial, ShootingOptions(period=0.01))
    assert made.errors["yaw_rate"].explained > 0.999 and made.errors["surge"].explained > 0.999


@pytest.mark.parametrize(
    ("commands", "message"),
    [
        ([], "name the topics of the commands with --command"),
        (["--command", "port=/prt:data"], "has no topic '/prt'"),
        (["--command", "port=/port:value"], "have no number at 'value'"),
        (["--command", "helm=/port:data"], "with an actuator"),
    ],
)
def test_a_wrong_command_topic_gives_one_clear_message(bag: Path, commands: list[str], message: str) -> None:
    done = run("fit", "otter", bag, *commands, *FIT)
    assert isinstance(done.exception, LogError) and message in str(done.exception)


# ------------------------------------------------------------------ places of instruments


def test_an_instrument_measures_the_motion_of_its_place() -> None:
    """Positions are those of a point of the body, and velocities their difference quotients along its axes."""
    random = np.random.default_rng(3)
    state, arm, dt = random.uniform(-1.0, 1.0, 12), np.array([0.7, -0.4, 1.1]), 1e-6
    R = frames.rotation(frames.quaternion(*state[3:6]))
    w = state[9:12]
    turned = R @ (np.eye(3) + dt * np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]]))
    place, later = state[:3] + R @ arm, state[:3] + R @ state[6:9] * dt + turned @ arm
    velocity, current = (later - place) / dt, np.array([0.3, -0.2, 0.0])
    expected = dict(zip(("north", "east", "depth"), place, strict=True))
    expected |= dict(zip(("surge", "sway", "heave"), R.T @ velocity, strict=True))
    expected |= dict(zip(("water_surge", "water_sway"), R.T @ (velocity - current), strict=False))
    expected |= {"speed": math.hypot(*velocity[:2]), "heading": state[5], "yaw_rate": state[11]}
    for channel, value in expected.items():
        made = rt.predicted(channel, state[:, None], current[:, None], tuple(arm))
        assert made == pytest.approx([value], abs=1e-6), channel


def test_a_map_states_the_places_of_instruments(tmp_path: Path) -> None:
    """A start state from instruments away from the origin is that of instruments at the origin."""
    trial = sail(library()["otter"], COMMANDS, 10.0, channels=tuple(COLUMN), noise=0.0, velocity=[1.0, 0, 0, 0, 0, 0])
    t = trial.channels["north"].time
    states = np.stack([trial.channels[c].value for c in COLUMN])
    still = np.zeros((3, len(t)))
    tables = {"fixes": (("north", "east", "depth"), GPS), "speeds": (("surge", "sway", "heave"), DVL)}
    rest = [c for c in COLUMN if all(c not in names for names, _ in tables.values())]
    for name, (names, arm) in {**tables, "others": (rest, rt.ORIGIN)}.items():
        table = [t, *(rt.predicted(c, states, still, arm) for c in names)]
        head = ",".join(["time", *names])
        np.savetxt(tmp_path / f"{name}.csv", np.stack(table, axis=1), delimiter=",", header=head, comments="")
    t = trial.commands["port"].time
    table = np.stack([t, *(s.value for s in trial.commands.values())], axis=1)
    np.savetxt(tmp_path / "motors.csv", table, delimiter=",", header="time,port,starboard", comments="")
    (tmp_path / "map.xml").write_text(
        '<trial><table file="motors.csv" columns="time=time port=port starboard=starboard"/>'
        + f'<table file="others.csv" columns="time=time {" ".join(f"{c}={c}" for c in rest)}"/>'
        + "".join(
            f'<table file="{name}.csv" position="{" ".join(map(str, arm))} m" '
            f'columns="time=time {" ".join(f"{c}={c}" for c in names)}"/>'
            for name, (names, arm) in tables.items()
        )
        + "</trial>"
    )
    found = read_trial(tmp_path, library()["otter"], TrialSource(map_file=tmp_path / "map.xml"))
    for at in (3.0, 5.0, 8.0):
        wanted = rt.interpolated_start(trial, at, np.zeros(12))
        np.testing.assert_allclose(rt.interpolated_start(found, at, np.zeros(12)), wanted, atol=2e-3)
        bare = replace(found, channels={c: replace(s, arm=rt.ORIGIN) for c, s in found.channels.items()})
        assert np.abs(rt.interpolated_start(bare, at, np.zeros(12)) - wanted).max() > 0.3


# ------------------------------------------------------------------ density

RAFT = """<models><model name="raft" type="surface" active="r"><box length="1 m" width="0.3 m" height="0.3 m"/><mass value="20 kg"/>
<inertia xx="1" yy="1" zz="2"/><added-mass diagonal="0 0 0 0 0 0"/><derivatives system="dimensional">
<derivative name="N_r" value="-5"/><derivative name="N_d1" value="-3"/></derivatives>
<fin name="rudder" law="derivatives" limit="35 deg" lag="0 s"/></model></models>"""


def test_a_vehicle_starts_at_rest_in_the_density_of_its_world(tmp_path: Path) -> None:
    """A raft of 0.3 m2 and 20 kg floats 3.4 mm deeper in water of 970 kg/m3 than in sea water."""
    (tmp_path / "raft.xml").write_text(RAFT)
    model = read_models(tmp_path / "raft.xml")["raft"]
    t = np.arange(0.0, 10.0, 0.1)
    held, rate = MeasuredSeries(t, 0.2 * np.sign(np.sin(t))), MeasuredSeries(t, 0.1 * np.cos(t))
    trial = RecordedTrial("raft", "", {"rudder": held}, {"yaw_rate": rate})
    unknowns = parse_unknowns(["derivatives/N_r"], model, ["yaw_rate"], 1)
    depths = {}
    for density in (970.0, 1025.0):
        options = ShootingOptions(world=f'<world density="{density:g} kg/m3"><bed depth="100 m"/></world>')
        problem = ShootingProblem(model, [trial], unknowns, options)
        planned = manoeuvre_plan.plan(model, unknowns, ("depth", "yaw_rate"), options, 10.0)
        depths[density] = equilibrium_depth(model, density)
        assert problem.starts[2] == pytest.approx(depths[density], abs=1e-9)
        for p in planned:
            assert p.trial.channels["depth"].value == pytest.approx(depths[density], abs=1e-6), p.name
    assert depths[970.0] - depths[1025.0] == pytest.approx(20.0 / 0.3 * (1.0 / 970.0 - 1.0 / 1025.0), rel=1e-6)
