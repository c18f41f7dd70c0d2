"""Files of fitted models, which record what was fitted to which data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lxml import etree

from wavesim_sdk import __version__
from wavesim_sdk.errors import ConfigError
from wavesim_studies.identification.coefficients import ModelCoefficients
from wavesim_studies.identification.model_fit import FitResult
from wavesim_studies.identification.prediction import TrialPrediction
from wavesim_world.config import Model
from wavesim_world.config.build import read_models


def describe_fit(result: FitResult, name: str) -> str:
    """Return sentences for the source of a fitted model: the values with their standard deviations, and the data."""
    shipped = ModelCoefficients(result.problem.model)
    fitted, open_, others = [], [], []
    for k, u in enumerate(result.unknowns):
        text = f"{u.path} {result.value(k):.4g} +- {result.sd(k):.2g}"
        if u.kind != "coefficient":
            if u.log < 0:
                others.append(f"{text} {u.unit}")
        elif result.uncertainty.informed(k):
            fitted.append(f"{text} (was {shipped.value(u.path):.4g})")
        else:
            open_.append(u.path)
    data = ", ".join(f"{t.name} ({t.seconds:.0f} s, SHA-256 {t.digest[:12]})" for t in result.problem.trials)
    parts = [
        f"Fitted by `wavesim identify` {__version__} from `{name}`: {'; '.join(fitted) or 'nothing'}. Data: {data}."
    ]
    if open_:
        parts.append(f"Not determined by the data, so at the prior: {', '.join(open_)}.")
    if others:
        parts.append(f"Fitted beside the model, for these logs: {'; '.join(others)}.")
    if licences := sorted({t.licence for t in result.problem.trials if t.licence}):
        parts.append(f"Licence of the data: {', '.join(licences)}.")
    return " ".join(parts)


def describe_checks(predictions: Sequence[TrialPrediction]) -> str:
    """Return a sentence for the validation of a fitted model: its errors on trials that the fit did not use."""
    parts = []
    for p in predictions:
        errors = [f"{c} {e.rms:.3g} rms ({100.0 * e.explained:.1f} % of the variance)" for c, e in p.errors.items()]
        errors += [f"{d:.2g} m from the track after {h:.3g} s" for h, d in p.distances.items()]
        parts.append(f"{p.trial.name} ({p.trial.seconds:.0f} s): {', '.join(errors)}")
    return (
        f"Predicted trials that the fit did not use: {'; '.join(parts)}."
        if parts
        else "Not compared with other trials."
    )


def write_model(result: FitResult, out: Path, name: str, predictions: Sequence[TrialPrediction] = ()) -> Model:
    """Write the fitted model as a models file, and return it. Raise ConfigError if the file exists."""
    if out.exists():
        raise ConfigError(f"{out} already exists; choose another file, because fitted models never replace others")
    coefficients = ModelCoefficients(result.problem.model)
    element = coefficients.element_with(result.problem.coefficients(result.solution.x))
    old = result.problem.model
    element.set("name", name)
    element.set("title", f"{old.title or old.name}, fitted to recorded trials")
    element.set("source", f"{old.source} {describe_fit(result, old.name)}".strip())
    element.set("validated", describe_checks(predictions))
    element.tail = "\n"
    root = etree.Element("models")
    root.text = "\n  "
    root.append(element)
    text = etree.tostring(root, encoding="unicode") + "\n"
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write the file: {error.strerror}", str(out)) from None
    return read_models(out)[name]
