"""Arrivals, rays and transmission loss without a simulation: against the log of one, closed forms and each other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.physics.sea import PLAIN, node, run, sea
from wavesim_sdk.errors import InvalidArgument
from wavesim_server.acoustics import loss_planes, propagation_model
from wavesim_server.acoustics.loss_planes import HorizontalPlane, VerticalPlane, transmission_loss
from wavesim_server.acoustics.propagation_model import PropagationModel
from wavesim_world.config import LoadedConfig, load, load_text
from wavesim_world.ocean.sound import munk

Make = Callable[..., LoadedConfig]
#: received on every path, however weak
WEAK = PLAIN.replace("10 kHz", "1 Hz").replace("60 dB", "-200 dB").replace("10 ms", "3 s")
LEVEL, SLOPE = '<bed depth="100 m"/>', '<bed depth="100 m" slope_north="0.02" slope_east="-0.01"/>'
A, B = (0.0, 0.0, 20.0), (1500.0, 200.0, 60.0)
SEAS = {
    "constant": (LEVEL, "", 3),
    "constant over a slope": (SLOPE, "", 2),
    "gradient": (LEVEL, 'profile="gradient" gradient="-0.02 "', 0),
    "water": (LEVEL, 'profile="water"', 3),
    "water without echoes": (LEVEL, 'profile="water"', 0),
    "water over a slope": (SLOPE, 'profile="water"', 2),
}


def model_of(
    world: str, attributes: str = "", order: int = 0, folder: Path | None = None, bottom: str = ""
) -> PropagationModel:
    inner = f'<multipath order="{order}" {bottom}/>' if order else ""
    return PropagationModel(
        load_text(f"<wavesim><world>{world}</world><acoustics {attributes}>{inner}</acoustics></wavesim>", folder)
    )


@pytest.mark.parametrize("kind", SEAS)
def test_arrivals_are_those_of_a_simulation(config: Make, kind: str) -> None:
    world, attributes, order = SEAS[kind]
    inner = f'<multipath order="{order}" surface_loss="1 dB"/>' if order else ""
    sim = sea(config, "20 ms", WEAK, world=world, noise="-200 dB", extra=attributes, inner=inner)
    sender, hearer = node(sim, "a", 0, A[0], y=A[1], z=A[2]), node(sim, "b", 0, B[0], y=B[1], z=B[2])
    sim.ping(sender, 25e3)
    _, receptions = run(sim, 5.0)
    logged = np.sort(receptions[receptions["receiver"] == hearer], order="arrival_ns")
    found = PropagationModel(sim.loaded).arrivals(A, B, frequency=25e3)
    followed = found[found["followed"]]
    assert len(logged) == len(followed) and len(found) >= len(logged)
    assert np.abs(logged["arrival_ns"] * 1e-9 - followed["time"]).max() <= 1.001e-9
    assert np.abs(200.0 - followed["loss"] - logged["level"]).max() < 1e-6
    assert np.abs(logged["range"] - followed["length"]).max() < 1e-6
    assert (logged["surface"] == followed["surface"]).all() and (logged["bottom"] == followed["bottom"]).all()
    parts = sum(found[name] for name in ("spreading", "absorption", "surface_loss", "bottom_loss"))
    assert np.abs(parts - found["loss"]).max() < 1e-9
    assert (found["surface_loss"] == pytest.approx(found["surface"])) if order else True
    assert found["straight_line_error"] == pytest.approx(1500.0 * found["time"] - math.dist(A, B), abs=1e-9)


@pytest.mark.parametrize("kind", SEAS)
def test_rays(kind: str) -> None:
    """Each ray ends at the receiver; its length, its travel time and its first direction follow from its points."""
    world, attributes, order = SEAS[kind]
    model = model_of(world, attributes, order)
    table, tracks = model.arrivals(A, B), model.ray_tracks(A, B)
    assert len(table) == len(tracks) > 0
    for row, track in zip(table, tracks, strict=True):
        assert track[0, [2, 3, 1]] == pytest.approx(A, abs=1e-6) and track[-1, [2, 3, 1]] == pytest.approx(B, abs=2e-3)
        points = track[:, [2, 3, 1]]
        chord = np.diff(points, axis=0)
        length = np.sqrt((chord * chord).sum(axis=1))
        assert length.sum() == pytest.approx(row["length"], rel=1e-6)
        speed = model.sound_speed(points)
        mean = 0.5 * (speed[1:] + speed[:-1])
        assert (length / mean).sum() == pytest.approx(row["time"], rel=1e-6)
        first = chord[0] / length[0]
        assert math.atan2(first[1], first[0]) == pytest.approx(row["launch_bearing"], abs=1e-3)
        assert math.asin(first[2]) == pytest.approx(row["launch_elevation"], abs=3e-3)


@pytest.mark.parametrize("kind", SEAS)
def test_reciprocity(kind: str) -> None:
    world, attributes, order = SEAS[kind]
    model = model_of(world, attributes, order)
    there, back = model.arrivals(A, B), model.arrivals(B, A)
    assert len(there) == len(back)
    assert np.abs(there["time"] - back["time"]).max() < 1e-9
    assert there["launch_elevation"] == pytest.approx(-back["arrival_elevation"], abs=1e-6)


def test_a_volume(root: Path) -> None:
    """Through the front of an example: the sound speed that the tool shows is the one that the rays feel."""
    model = PropagationModel(load(root / "examples/trials/front.xml"))
    a, b = (-1000.0, 0.0, 30.0), (1000.0, 300.0, 60.0)
    there, back = model.arrivals(a, b), model.arrivals(b, a)
    assert len(there) == len(back) == 1 and abs(there["time"][0] - back["time"][0]) < 1e-9
    points = model.ray_tracks(a, b)[0][:, [2, 3, 1]]
    fine = np.concatenate([np.linspace(p, q, 20, endpoint=False) for p, q in itertools.pairwise(points)])
    chord = np.diff(np.vstack([fine, points[-1]]), axis=0)
    middle = fine + 0.5 * chord
    assert (np.sqrt((chord * chord).sum(axis=1)) / model.sound_speed(middle)).sum() == pytest.approx(
        there["time"][0], abs=2e-6
    )
    later = model.arrivals(a, b, 1200.0)
    assert abs(later["time"][0] - there["time"][0]) > 1e-5, "the front has moved"


def test_what_blocks() -> None:
    pier = '<obstacles><pier position="750 100 50 m" radius="5 m" height="100 m"/></obstacles>'
    table = model_of(LEVEL + pier, order=2).arrivals(A, B)
    assert set(table["blocked_by"]) == {"pier 1"}
    hill = '<bed depth="100 m"><bump height="-80 m" north="750 m" east="100 m" alpha="0.02 1/m" beta="0.02 1/m"/></bed>'
    assert "sea bed" in model_of(hill).arrivals(A, B)["blocked_by"]


@pytest.mark.parametrize(
    ("source", "receiver", "message"),
    [
        ((0.0, 0.0, -3.0), B, "the source is 3 m above the surface; use a depth from 0 to 100 m"),
        (A, (0.0, 0.0, 150.0), "the receiver is 50 m below the bed; use a depth from 0 to 100 m"),
        (A, (-6000.0, 0.0, 1.0), "the receiver is on land, 20 m above the surface"),
        (A, A, "source and receiver are at the same position"),
        (A, (0.0, math.nan, 1.0), "the receiver must have three finite numbers"),
    ],
)
def test_positions_out_of_the_water(source: Any, receiver: Any, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        model_of('<bed depth="100 m" slope_north="0.02"/>').arrivals(source, receiver)


def test_lloyd_mirror() -> None:
    """One reflection at the surface, over a bottom that reflects nothing: the closed form of a source and its image."""
    silent = 'bottom_density="1" bottom_speed="1500 m/s" bottom_attenuation="0"'
    model = model_of('<bed depth="200 m"/>', 'absorption="0 dB/m"', 1, bottom=silent)
    ranges, depths = np.linspace(100.0, 1500.0, 57), np.linspace(5.0, 185.0, 37)
    plane = VerticalPlane(0.3, ranges, depths)
    r, z = np.broadcast_arrays(ranges[None, :], depths[:, None])
    one, two = np.hypot(r, z - 25.0), np.hypot(r, z + 25.0)
    k = 2.0 * np.pi * 150.0 / 1500.0
    for coherent in (False, True):
        found = transmission_loss(model, (0.0, 0.0, 25.0), plane, frequency=150.0, coherent=coherent)
        exact = (
            np.abs(np.exp(-1j * k * one) / one - np.exp(-1j * k * two) / two) ** 2 if coherent else one**-2 + two**-2
        )
        wrong = np.abs(10.0 ** (-0.05 * found) - np.sqrt(exact)) * one  # relative to the direct path
        assert np.quantile(wrong, 0.99) < 0.01 and np.median(wrong) < 0.001, coherent


def test_the_horizontal_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loss around the depth of the source is 20 log r at long ranges, where the fan is refined around 0 deg."""
    angles = loss_planes.launch_angles(100)
    monkeypatch.setattr(loss_planes, "launch_angles", lambda: angles)
    ranges = np.array([500.0, 2e3, 1e4, 3e4, 1e5])
    plane = VerticalPlane(0.0, ranges, np.linspace(18.0, 22.0, 5))
    found = transmission_loss(model_of(LEVEL, 'absorption="0 dB/m"'), (0.0, 0.0, 20.0), plane)
    assert np.abs(found - 20.0 * np.log10(ranges)).max() < 0.01


@pytest.mark.parametrize("kind", ["constant", "water over a slope"])
def test_loss_in_a_plane_is_the_sum_over_eigenrays(kind: str) -> None:
    world, attributes, order = SEAS[kind]
    model = model_of(world, attributes, order)
    bearing, ranges, depths = 0.4, np.linspace(150.0, 2550.0, 7), np.linspace(4.0, 92.0, 9)
    found = transmission_loss(model, A, VerticalPlane(bearing, ranges, depths))
    wrong = []
    for i, z in enumerate(depths):
        for j, r in enumerate(ranges):
            table = model.arrivals(A, (r * math.cos(bearing), r * math.sin(bearing), z))
            wrong.append(found[i, j] + 10.0 * math.log10((10.0 ** (-0.1 * table["loss"])).sum()))
    assert np.median(np.abs(wrong)) < 0.03 and np.quantile(np.abs(wrong), 0.9) < 0.1


def test_loss_in_a_munk_profile(tmp_path: Path) -> None:
    """Against eigenray sums, away from caustics, in a deep channel with convergence zones and a shadow."""
    z = np.linspace(0.0, 5000.0, 51)
    (tmp_path / "munk.txt").write_text("".join(f"{d} {c}\n" for d, c in zip(z, munk(z), strict=True)))
    world, attributes = '<bed depth="5000 m"/>', 'profile="file" file="munk.txt" absorption="0 dB/m"'
    model = model_of(world, attributes, folder=tmp_path)
    source, ranges, depths = (0.0, 0.0, 1000.0), np.linspace(4e3, 60e3, 8), np.linspace(200.0, 4200.0, 6)
    found = transmission_loss(model, source, VerticalPlane(0.0, ranges, depths), frequency=50.0)
    wrong, shadows = [], 0
    for i, depth in enumerate(depths):
        for j, r in enumerate(ranges):
            table = model.arrivals(source, (r, 0.0, depth), frequency=50.0)
            if len(table):
                wrong.append(abs(found[i, j] + 10.0 * math.log10((10.0 ** (-0.1 * table["loss"])).sum())))
            else:
                shadows += 1
                assert found[i, j] == loss_planes.MAX_LOSS_DB
    assert shadows > 0 and np.median(wrong) < 0.3 and np.quantile(wrong, 0.8) < 1.5


def test_a_horizontal_plane() -> None:
    """The same in all directions over a level bed, and equal to vertical planes over a slope."""
    level = HorizontalPlane(50.0, np.linspace(-600.0, 600.0, 7), np.linspace(-600.0, 600.0, 7))
    found = transmission_loss(model_of(LEVEL, order=1), (0.0, 0.0, 20.0), level)
    assert found == pytest.approx(found.T) and found == pytest.approx(found[::-1])
    model = model_of(SLOPE, order=1)
    found = transmission_loss(model, (0.0, 0.0, 20.0), level)
    for i, j in ((0, 3), (6, 3), (3, 0), (3, 6), (6, 6)):
        n, e = float(level.north[i]), float(level.east[j])
        plane = VerticalPlane(math.atan2(e, n), np.array([math.hypot(n, e), 1500.0]), np.array([50.0, 60.0]))
        assert found[i, j] == pytest.approx(transmission_loss(model, (0.0, 0.0, 20.0), plane)[0, 0], abs=0.2)


def test_a_section() -> None:
    section = model_of(SLOPE, 'profile="gradient"').sound_speed_section((0.0, 0.0, 5.0), (1000.0, 0.0, 5.0))
    assert section.bed == pytest.approx(100.0 + 0.02 * section.ranges)
    inside = section.depths[:, None] <= section.bed
    assert np.isnan(section.speed[~inside]).all()
    exact = np.broadcast_to(1500.0 + 0.016 * section.depths[:, None], section.speed.shape)
    shallow = inside & (section.depths[:, None] < 99.0)
    assert section.speed[shallow] == pytest.approx(exact[shallow])
    table = propagation_model.arrivals(load_text("<wavesim/>"), A, (100.0, 0.0, 20.0))
    assert table["time"] == pytest.approx([100.0 / 1500.0])
