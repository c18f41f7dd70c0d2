"""Calls of all kernels, with the types of arguments that programs use. ``make wheels`` compiles what they call.

A new kernel that nothing here calls makes the build fail with its name.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np


def exercise_kernels() -> None:
    from wavesim_kernels import fourier

    fourier.transform(np.zeros(8), np.zeros(8))


def exercise_server() -> None:
    from wavesim_server import Lab, compiling, start_clearance, study
    from wavesim_server.dynamics import shapes
    from wavesim_world.config.build import library

    compiling.exercise_all(threads=2)
    compiling.exercise_hydrophones()
    # device functions that Python calls: for bodies that start close to each other, and for those that float
    body = start_clearance.model_geometry(library()["lauv"], (0.0, 0.0, 5.0), (0.0, 0.0, 0.0))
    shapes.distance(body, body, np.zeros((16, 3)), np.zeros(3), np.zeros(3))
    for model in library().values():
        study.equilibrium_depth(model, 1025.0)
    lab = Lab("<wavesim><fleet><sensors><ctd/><ahrs/></sensors></fleet></wavesim>")
    lab.enter("auv", "lauv", (0.0, 0.0, 5.0))
    lab.advance(30)
    lab.listen(0, False)
    lab.listen(0, True)
    exercise_sound_between_points()


def exercise_sound_between_points() -> None:
    """Call the kernels of ``wavesim acoustics``, also that for a sound field, which no file is needed for."""
    from wavesim_server.acoustics import arrival_search, loss_planes
    from wavesim_server.acoustics.propagation_model import PropagationModel
    from wavesim_world.config import load_text

    model = PropagationModel(load_text("<wavesim/>"))
    model.arrivals((0.0, 0.0, 5.0), (50.0, 0.0, 5.0))
    loss_planes.transmission_loss(
        model,
        (0.0, 0.0, 5.0),
        loss_planes.VerticalPlane(0.0, np.linspace(10.0, 50.0, 3), np.linspace(0.0, 10.0, 3)),
    )
    arrival_search.fill_speeds(model.table, 0.0, np.zeros((0, 3)), np.zeros(0))


def exercise_emulators() -> None:
    from importlib.metadata import entry_points

    from wavesim_emulators.hydrophone import synthesis
    from wavesim_emulators.sonar import ray_kernels
    from wavesim_emulators.sonar.camera import CameraEmulator
    from wavesim_emulators.sonar.design import SonarDesign
    from wavesim_emulators.sonar.emulator import SONAR_TYPES, SonarEmulator
    from wavesim_emulators.sonar.imaging import SonarPose
    from wavesim_world.config import load_text
    from wavesim_world.sonars import presets

    world = "<wavesim><world><bed depth='30 m'/></world><shared vehicles='4' signals='16'/></wavesim>"
    sonar = SonarEmulator(load_text(world, Path()))
    sonar.warm_up()
    ray_kernels.ray_directions(
        np.eye(3), np.zeros(1), np.zeros(1), np.empty((1, 1, 3), np.float32)
    )  # if there are meshes
    here = SonarPose(np.zeros(3), np.eye(3), np.ones(3), np.ones(3))
    for preset in {p.kind: p for p in presets.PRESETS.values()}.values():
        few = replace(preset, beams=min(preset.beams, 4))
        for length in (2.0, 0.1):  # bins longer and shorter than the pulse
            made = SonarDesign(few, length, 64, bits=16, labels=True)
            SONAR_TYPES[preset.kind](made, sonar.world, 0.0, 1).ping(here, 0)
    CameraEmulator(load_text(world, Path())).warm_up()
    synthesis.load_kernels()
    for entry in entry_points(group="wavesim.emulators"):
        if entry.value.startswith("wavesim_emulators."):
            entry.load().load_kernels()


def exercise_studies() -> None:
    from wavesim_studies.learning.core import Core
    from wavesim_studies.learning.custom import Task
    from wavesim_studies.learning.custom_core import CustomCore
    from wavesim_studies.learning.team_core import VectorLocalisation
    from wavesim_studies.navigation import FilterDesign, estimate
    from wavesim_studies.navigation.filter import compile_filter

    class Still(Task):
        observations = uniforms = normals = 1

        def observe(self, s: Any) -> Any:
            return s.normal

        def reward(self, s: Any) -> Any:
            return s.time

    for core in (Core("StationKeeping", 8), CustomCore(Still(), 8)):
        core.seed(0)
        core.reset_copies()
        core.step(np.zeros((8, core.actions), np.float32))
    teams = VectorLocalisation(1, 2)
    teams.reset(0)
    teams.step(np.zeros((1, 2, teams.actions), np.float32))
    teams.place(0, 0, (0.0, 0.0, 20.0))
    compile_filter()
    start = FilterDesign().start(0.0, np.zeros(3), np.zeros(3), (1.0, 0.0, 0.0, 0.0), [1.0] * 5)
    imu = np.array([[0.1, 0.0, 0.0, -9.81, 0.0, 0.0, 0.0]])
    estimate(FilterDesign(), start, imu, [], imu[:, 0], smooth=True).smoothed()


EXERCISES = {
    "wavesim_kernels": exercise_kernels,
    "wavesim_server": exercise_server,
    "wavesim_emulators": exercise_emulators,
    "wavesim_studies": exercise_studies,
}
