"""Run bodies with the extensions in this folder and print the results as JSON. Install the folder first (``pip install
.``).

python sail.py
"""

import json

from wavesim_server import Simulation
from wavesim_world.config import load_text

MODEL = """<models><model name="hull" type="underwater" active="{active}"><cylinder length="2 m" radius="0.2 m"/>
<mass value="250 kg" centre="0 0 {low} m"/><inertia xx="5" yy="80" zz="80"/><buoyancy volume="{volume} m3"/>
<added-mass diagonal="50 240 240 0 70 70"/><linear-drag diagonal="{drag}"/>{more}</model></models>"""
DROGUE = (
    '<term name="drogue"><coefficient name="drag" value="60"/><coefficient name="x" value="0"/>'
    '<coefficient name="y" value="{y}"/><coefficient name="z" value="0"/></term>'
)
WEIGHT = (
    '<actuator name="weight" type="sliding-weight" unit="m" minimum="-0.2" maximum="0.2" rate="0.05">'
    '<coefficient name="mass" value="25"/></actuator>'
)


def simulation(integrator: str, ms: float, **of_model: str) -> Simulation:
    model = MODEL.format(volume=250.0 / 1025.0, **of_model)
    world = f'<time step="{ms} ms" integrator="{integrator}"/><world density="1025 kg/m3"><bed depth="1000 m"/></world>'
    return Simulation(load_text(f"<wavesim>{world}{model}</wavesim>"))


def dragged(integrator: str, ms: float, y: float = 0.0) -> list[float]:
    """Return the surge speed and yaw rate of a hull with a drogue at (0, y, 0), 2 s after a start at 2 m/s. The hull
    only surges and yaws.
    """
    sim = simulation(integrator, ms, active="u r", low="0", drag="0 0 0 0 0 0", more=DROGUE.format(y=y))
    row = sim.enter("a", "hull", (0.0, 0.0, 100.0))
    sim.set_pose(row, velocity=[2.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    sim.advance(round(2000 / ms))
    state = sim.state()[row]
    return [float(state["v_WB_B"][0]), float(state["w_WB_B"][2])]


def trimmed(seconds: float) -> float:
    """Return the tangent of the pitch angle ``seconds`` s after a command that moves the weight 0.1 m forward."""
    sim = simulation("rk4", 100.0, active="u v w p q r", low="0.05", drag="50 50 50 20 200 50", more=WEIGHT)
    row = sim.enter("a", "hull", (0.0, 0.0, 100.0))
    sim.command(row, {"weight": 0.1})
    sim.advance(round(seconds / 0.1))
    w, x, y, z = sim.state()["q_WB"][row]
    return float(2.0 * (w * y - z * x) / (1.0 - 2.0 * (x * x + y * y)))  # roll is zero


print(
    json.dumps(
        {
            "rk4": dragged("rk4", 20.0),
            "ralston": [dragged("ralston", ms)[0] for ms in (100.0, 50.0, 25.0)],
            "off the middle": dragged("rk4", 20.0, 0.1),
            "trimmed": trimmed(30.0),
        }
    )
)
