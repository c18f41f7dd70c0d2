"""On-board program for a BlueROV2: a learned policy alone holds the position of the vehicle.

    python learned.py --config ../trials/learned.xml --vehicle rov [--policy station-keeping.npz]

The policy was trained for the task StationKeeping, with samples from copies of the vehicle that differ in current,
thrust, weight and delay. `wavesim learn train StationKeeping` trains another policy. Here the policy receives the same
observations (docs/learning.md). It keeps the vehicle at the first waypoint, heading north.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

import program
from wavesim_sdk.algebra import vecmat
from wavesim_sdk.broker import Broker, Step
from wavesim_sdk.elementary import expm1, sin_cos
from wavesim_sdk.errors import BrokerError
from wavesim_sdk.frames import euler, rotation
from wavesim_world.config import BodyConfig, LoadedConfig

BOUND = 10.0  #: limit of every number that the policy receives
SHARE = 0.5  #: fraction of the episode that has passed; constant here, because there are no episodes


class Rov:
    """Controller: it computes the observation, evaluates the network and commands the thrusters."""

    def __init__(self, loaded: LoadedConfig, body: BodyConfig, options: argparse.Namespace) -> None:
        model = loaded.model(body.model)
        self.names = [t.name for t in model.thruster]
        self.most = min(min(-t.minimum, t.maximum) for t in model.thruster)
        goal = body.waypoint[0]
        self.goal = np.array([goal.north, goal.east, goal.depth])
        self.command = np.zeros(len(self.names))
        try:
            with np.load(options.policy, allow_pickle=False) as file:
                if "form" in file.files:
                    raise ValueError(f"this program evaluates networks with tanh only, got '{file['form']}'")
                self.layers = [file[f"arr_{k}"].astype(float) for k in range(len(file.files))]
        except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
            raise BrokerError(f"{options.policy} does not contain a valid policy: {error}") from None

    def act(self, step: Step, broker: Broker) -> tuple[dict[str, float], None]:
        motion = step.state.motion
        if motion is None:
            raise BrokerError('the policy needs the true state; set truth="full" for this vehicle in the configuration')
        x = self.observation(np.array(motion))
        for k in range(0, len(self.layers), 2):
            x = vecmat(x, self.layers[k]) + self.layers[k + 1]
            if k + 2 < len(self.layers):
                grown = expm1(2.0 * np.clip(x, -20.0, 20.0))
                x = grown / (grown + 2.0)  # hyperbolic tangent
        self.command = np.clip(x, -1.0, 1.0)
        return dict(zip(self.names, (self.most * self.command).tolist(), strict=True)), None

    def observation(self, motion: Any) -> Any:
        """Return the observation that docs/learning.md defines, from a state of 13 numbers."""
        R_WB = rotation(motion[3:7])
        s, c = sin_cos(float(euler(motion[3:7])[2]))
        away = vecmat(self.goal - motion[:3], R_WB)
        observation = [*away, -s, c, *R_WB[2], *motion[7:13], 0.0, 0.0, 0.0, s, c, SHARE, *self.command]
        return np.clip(np.array(observation), -BOUND, BOUND)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--policy", type=Path, default=Path(__file__).with_name("station-keeping.npz"))


if __name__ == "__main__":
    sys.exit(program.run(__doc__, Rov, options))
