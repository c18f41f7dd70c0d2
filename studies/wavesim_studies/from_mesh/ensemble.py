"""Ensembles of a model: copies whose uncertain coefficients are drawn from their distributions.

The uncertainties are those of `wavesim vehicles from-mesh` or of `wavesim identify fit --json`. A coefficient with a
log-normal distribution keeps its sign, and its median is the value of the model. In a matrix, only the diagonal is
drawn; the entry of row i and column j is multiplied by sqrt(f_i f_j), so that an added mass stays positive definite.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from lxml import etree

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_studies.identification.coefficients import FORCES, VELOCITIES, ModelCoefficients
from wavesim_world.config import Model
from wavesim_world.config.build import build
from wavesim_world.config.validation import check_model, matrix
from wavesim_world.config.vehicle import Matrix6

DISTRIBUTIONS = ("log-normal", "normal")


class UncertainCoefficient(NamedTuple):
    """Coefficient by its path: value and standard deviation in SI units, and distribution (`log-normal` or `normal`).
    Coefficients of the same group share their random number, because they have the same cause of error.
    """

    path: str
    value: float
    sd: float
    distribution: str
    group: str


def read_uncertainty(path: Path) -> list[UncertainCoefficient]:
    """Read the uncertain coefficients in a JSON file. Raises ConfigError if the file is invalid."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read the file: {error.strerror}", str(path)) from None
    except ValueError:
        raise ConfigError("the file is not valid JSON", str(path)) from None
    rows = content.get("unknowns") if isinstance(content, dict) else None
    if not isinstance(rows, list):
        raise ConfigError("the file has no list 'unknowns'", str(path))
    found = []
    for row in rows:
        try:
            one = UncertainCoefficient(
                str(row["path"]),
                float(row["value"]),
                float(row["sd"]),
                str(row.get("distribution", "normal")),
                str(row.get("group") or row["path"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ConfigError("each entry of 'unknowns' needs 'path', 'value' and 'sd'", str(path)) from None
        if "/" not in one.path or one.path.partition("/")[0] in ("offset", "bias", "shift"):
            continue  # of a fit: it belongs to the log, not to the model
        if not (math.isfinite(one.value) and math.isfinite(one.sd) and one.sd >= 0.0):
            raise ConfigError(f"'{one.path}': the value and its standard deviation must be finite", str(path))
        if one.distribution not in DISTRIBUTIONS:
            raise ConfigError(
                f"'{one.path}': unknown distribution '{one.distribution}': use {', '.join(DISTRIBUTIONS)}", str(path)
            )
        if one.distribution == "log-normal" and one.value == 0.0:
            raise ConfigError(f"'{one.path}': a log-normal distribution needs a value other than 0", str(path))
        found.append(one)
    if not found:
        raise ConfigError("the file lists no coefficient of a model", str(path))
    return found


def draw(coefficients: Sequence[UncertainCoefficient], members: int, seed: int) -> Floats:
    """Return values (members, coefficients) from a Latin hypercube."""
    from scipy import stats
    from scipy.stats import qmc

    groups = list(dict.fromkeys(c.group for c in coefficients))
    shares = qmc.LatinHypercube(len(groups), rng=np.random.default_rng(seed)).random(members)
    z = stats.norm.ppf(np.clip(shares, 1e-12, 1.0 - 1e-12))
    columns = []
    for c in coefficients:
        mine = z[:, groups.index(c.group)]
        if c.distribution == "normal":
            columns.append(c.value + c.sd * mine)
        else:
            spread = math.sqrt(math.log1p((c.sd / c.value) ** 2))
            columns.append(c.value * np.exp(spread * mine))
    return np.asarray(np.stack(columns, axis=1))


def members_file(
    model: Model, coefficients: Sequence[UncertainCoefficient], values: Floats, names: Sequence[str]
) -> str:
    """Return the text of a models file with one model for each row of ``values``. Raises ConfigError for a path that
    the model does not have, or for a member that cannot be simulated.
    """
    source = ModelCoefficients(model)
    for c in coefficients:
        source.value(c.path)  # an unknown path is reported before any member is made
    root = etree.Element("models")
    for name, row in zip(names, values, strict=True):
        given = {c.path: float(v) for c, v in zip(coefficients, row, strict=True)}
        element = source.element_with(given | _coupled(model, given))
        element.set("name", name)
        element.set("title", f"{model.title or model.name}, member {name} of an ensemble")
        element.tail = "\n  "
        check_model(build(element, Model, str(source.path)))
        root.append(element)
    root.text = "\n  "
    root[-1].tail = "\n"
    return etree.tostring(root, encoding="unicode") + "\n"


def _coupled(model: Model, given: dict[str, float]) -> dict[str, float]:
    """Return the entries beside the diagonals of the matrices whose diagonals are given."""
    found: dict[str, float] = {}
    for tag in {path.partition("/")[0] for path in given}:
        element: Any = getattr(model, tag.replace("-", "_"), None)
        if not isinstance(element, Matrix6):
            continue
        m = matrix(element)
        factor = np.ones(6)
        for k in range(6):
            drawn = given.get(f"{tag}/{FORCES[k]}_{VELOCITIES[k]}")
            if drawn is not None and m[k, k] and drawn / m[k, k] > 0.0:
                factor[k] = drawn / m[k, k]
        for i, j in np.argwhere(m - np.diag(np.diag(m))).tolist():
            path = f"{tag}/{FORCES[i]}_{VELOCITIES[j]}"
            if path not in given and factor[i] * factor[j] != 1.0:
                found[path] = float(m[i, j] * math.sqrt(factor[i] * factor[j]))
    return found


def campaign_file(model: str, names: Sequence[str]) -> str:
    """Return the text of a campaign that runs each member once. Its configuration must have a vehicle of this name."""
    return (
        f'<campaign name="{model}-ensemble" config="CONFIG.xml">\n'
        '  <run kind="lab" program="PROGRAM.py:FUNCTION" duration="60 s"/>\n'
        f'  <factor name="member" values="{" | ".join(names)}"><key path="fleet/vehicle[{model}]/model"/></factor>\n'
        "</campaign>\n"
    )
