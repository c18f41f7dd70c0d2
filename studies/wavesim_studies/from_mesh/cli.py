"""Commands of the group ``wavesim vehicles``: a model from the mesh of its hull, and ensembles of a model."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from wavesim_sdk.cli import json_option
from wavesim_sdk.cli_numbers import Quantity
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.output_files import check_writable
from wavesim_sdk.terminal_text import echo
from wavesim_server.cli_vehicles import find_model, models_option

UNITS = ("m", "cm", "mm", "inch")
AXES = ("x", "-x", "y", "-y", "z", "-z")
SHAPES = ("mesh", "convex", "parts", "remesh")

_MESH_OPTIONS = [
    click.option(
        "--unit", type=click.Choice(UNITS), help="Unit of the file; default: guessed from its size and stated."
    ),
    click.option("--up", type=click.Choice(AXES), help="Axis of the file that points up; default: guessed and stated."),
    click.option(
        "--forward", type=click.Choice(AXES), help="Axis of the file that points forward; default: guessed and stated."
    ),
    click.option(
        "--origin",
        type=click.Choice(("middle", "file", "buoyancy")),
        default="middle",
        show_default=True,
        help="Origin of the body: the middle of the box around the mesh, the origin of the file, or the centre of buoyancy.",
    ),
    click.option(
        "--shape",
        type=click.Choice(SHAPES),
        default="mesh",
        show_default=True,
        help="Surface of the hull: the mesh itself, one convex hull, the convex hulls of its parts, or a new mesh around "
        "its volume.",
    ),
    click.option("--fill-holes", is_flag=True, help="Cover all holes of the mesh with flat lids, also large ones."),
    click.option(
        "--hull-part",
        "hull_parts",
        multiple=True,
        metavar="PART",
        help="Part of the mesh that displaces water; default: all parts but thrusters and fins. Repeatable.",
    ),
]
_MASS_OPTIONS = [
    click.option("--mass", type=Quantity("mass", low=1e-3), required=True, help="Mass in kg."),
    click.option(
        "--type",
        "kind",
        type=click.Choice(("underwater", "surface")),
        default="underwater",
        show_default=True,
        help="Type of the vehicle.",
    ),
    click.option(
        "--centre",
        type=(Quantity("length"),) * 3,
        metavar="X Y Z",
        help="Centre of mass from the origin: forward, starboard, down, in m; default: assumed and stated.",
    ),
    click.option(
        "--inertia",
        type=(Quantity(low=0.0),) * 3,
        metavar="XX YY ZZ",
        help="Moments of inertia about the centre of mass in kg m2; default: evenly distributed mass.",
    ),
    click.option(
        "--displacement",
        type=Quantity("mass", low=1e-3),
        help="Mass of the displaced sea water in kg, for a hull that water floods; default: that of the mesh.",
    ),
    click.option(
        "--speed",
        type=Quantity("speed", low=0.05, high=30.0),
        default=1.5,
        show_default=True,
        help="Design speed in m/s.",
    ),
]
_ACTUATOR_OPTIONS = [
    click.option(
        "--thruster",
        "thrusters",
        multiple=True,
        metavar='"NAME X Y Z DX DY DZ [MAX]"',
        help="Thruster: position in m, direction and maximum force in N. Repeatable.",
    ),
    click.option(
        "--thruster-part",
        "thruster_parts",
        multiple=True,
        metavar="PART[=MAX]",
        help="Part of the mesh that is a thruster, and its maximum force in N. Repeatable.",
    ),
    click.option(
        "--fin",
        "fins",
        multiple=True,
        metavar='"NAME X Y Z NX NY NZ AREA [ASPECT]"',
        help="Fin: position in m, direction of its force, area in m2 and effective aspect ratio. Repeatable.",
    ),
    click.option(
        "--fin-part", "fin_parts", multiple=True, metavar="PART", help="Part of the mesh that is a fin. Repeatable."
    ),
    click.option("--bare", is_flag=True, help="Assume no thrusters and fins if none are stated."),
]


def _with(options: list[Any]) -> Callable[[Any], Any]:
    return lambda command: functools.reduce(lambda made, option: option(made), reversed(options), command)


@click.command("from-mesh")
@click.argument("hull", type=click.Path(path_type=Path))
@_with([*_MASS_OPTIONS, *_MESH_OPTIONS, *_ACTUATOR_OPTIONS])
@click.option(
    "--added-mass",
    "method",
    type=click.Choice(("panels", "ellipsoid")),
    help="Method for the added mass; default: panels if Capytaine is installed.",
)
@click.option(
    "--open-frame",
    "frame",
    is_flag=True,
    help="Compute added mass and drag as the sum of parts that shield each other.",
)
@click.option("--name", default="", help="Name of the model; default: the name of the file.")
@click.option("--out", type=click.Path(path_type=Path), help="Models file to write; default: NAME.xml.")
@json_option
def from_mesh(hull: Path, name: str, out: Path | None, as_json: bool, **given: Any) -> None:
    """Compute a model from the mesh of a hull.

    HULL is an STL, OBJ, PLY, OFF, glTF (.glb), FBX or STEP file. The command writes the models file, the mesh of <hull>,
    the drawing, a report about the source of each number, and the uncertainties from which `wavesim vehicles ensemble`
    draws. It shows speed, turning circle, natural periods and bollard pull. Progress goes to standard error, with --json
    as one JSON object in each line.
    """
    from wavesim_studies.from_mesh import actuators, flow, report
    from wavesim_studies.from_mesh.balance import DENSITY, MassOptions
    from wavesim_studies.from_mesh.mesh_preparation import MeshOptions
    from wavesim_studies.from_mesh.steps import StepLog

    made_name = name or actuators.valid_name(hull.stem)
    target = out or Path(f"{made_name}.xml")
    if target.suffix.lower() != ".xml":
        raise click.BadParameter(f"'{target}' must end in .xml", param_hint="--out")
    check_writable(target)
    displaced = given["displacement"]
    request = flow.VehicleRequest(
        hull,
        made_name,
        MeshOptions(
            given["unit"] or "", given["up"] or "", given["forward"] or "", given["origin"], given["shape"],
            given["fill_holes"], given["mass"], given["hull_parts"],
        ),
        MassOptions(
            given["mass"], given["kind"], given["centre"], given["inertia"],
            None if displaced is None else displaced / DENSITY,
        ),
        given["speed"], given["method"] or "", given["frame"], given["thrusters"], given["thruster_parts"],
        given["fins"], given["fin_parts"], given["bare"],
    )  # fmt: skip
    made = flow.make_vehicle(request, target, StepLog(flow.STEPS, as_json))
    if as_json:
        echo(flow.as_data(made))
        return
    for note in made.notes:
        echo(f"note: {note}", err=True)
    for line in report.sheet_lines(made.sheet):
        echo(line)
    echo(f"time: {sum(t.seconds for t in made.times):.1f} s")
    for path in made.files:
        echo(f"wrote {path}")


@click.command()
@click.argument("name")
@models_option
@click.option(
    "--uncertainty",
    type=click.Path(path_type=Path),
    required=True,
    help="JSON file with the uncertain coefficients, from `from-mesh` or from `wavesim identify fit --json`.",
)
@click.option("--members", type=click.IntRange(2, 999), default=16, show_default=True, help="Number of models to draw.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Seed of the random numbers.")
@click.option("--out", type=click.Path(path_type=Path), help="Models file to write; default: NAME-ensemble.xml.")
@click.option("--campaign", type=click.Path(path_type=Path), help="Also write a campaign file to complete (.xml).")
def ensemble(
    name: str,
    models: Path | None,
    uncertainty: Path,
    members: int,
    seed: int,
    out: Path | None,
    campaign: Path | None,
) -> None:
    """Draw an ensemble of model NAME from uncertainties.

    The members NAME-001, NAME-002, ... differ in the coefficients that the file lists. The file NAME-ensemble.csv lists
    the drawn values. A campaign compares the members, and a batch or a fleet may contain them, too.
    """
    import csv

    from wavesim_studies.from_mesh import ensemble as ensembles

    target = out or Path(f"{name}-ensemble.xml")
    table = target.with_suffix(".csv")
    for path in (target, table, campaign):
        check_writable(path)
    model = find_model(name, models)
    if Path(model.place.rpartition(":")[0]).resolve().parent != target.resolve().parent and (
        model.hull or model.appearance
    ):
        raise ConfigError(f"{target} must be in the folder of the model, because the members refer to the same mesh")
    coefficients = ensembles.read_uncertainty(uncertainty)
    values = ensembles.draw(coefficients, members, seed)
    names = [f"{name}-{k:03d}" for k in range(1, members + 1)]
    target.write_text(ensembles.members_file(model, coefficients, values, names), encoding="utf-8")
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["member", *(c.path for c in coefficients)])
        writer.writerows([[n, *(f"{v:.6g}" for v in row)] for n, row in zip(names, values, strict=True)])
    echo(f'wrote {target}; use it with <models><include file="{target.name}"/></models>')
    echo(f"wrote {table}")
    if campaign is not None:
        campaign.write_text(ensembles.campaign_file(name, names), encoding="utf-8")
        echo(f"wrote {campaign}; set its config and its program")
