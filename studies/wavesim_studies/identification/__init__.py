"""Identification: coefficients of a model fitted to recorded trials.

from wavesim_studies.identification import ShootingOptions, fit, parse_unknowns, read_trial

trial = read_trial(Path("lake.csv"), model)
unknowns = parse_unknowns(["linear-drag/N_r", "delay"], model, list(trial.channels), 1)
result = fit(model, [trial], unknowns, ShootingOptions())
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wavesim_studies.identification.model_files import write_model
    from wavesim_studies.identification.model_fit import FitResult, assess, fit, profile, reversed_signs
    from wavesim_studies.identification.prediction import TrialPrediction, predict
    from wavesim_studies.identification.recorded_trials import MeasuredSeries, RecordedTrial
    from wavesim_studies.identification.shooting import ShootingOptions
    from wavesim_studies.identification.trial_files import TrialSource, read_trial
    from wavesim_studies.identification.unknowns import FittedUnknown, parse_unknowns

__all__ = [
    "FitResult",
    "FittedUnknown",
    "MeasuredSeries",
    "RecordedTrial",
    "ShootingOptions",
    "TrialPrediction",
    "TrialSource",
    "assess",
    "fit",
    "parse_unknowns",
    "predict",
    "profile",
    "read_trial",
    "reversed_signs",
    "write_model",
]

_MODULES = {
    "FitResult": "model_fit",
    "FittedUnknown": "unknowns",
    "MeasuredSeries": "recorded_trials",
    "RecordedTrial": "recorded_trials",
    "ShootingOptions": "shooting",
    "TrialPrediction": "prediction",
    "TrialSource": "trial_files",
    "assess": "model_fit",
    "fit": "model_fit",
    "parse_unknowns": "unknowns",
    "predict": "prediction",
    "profile": "model_fit",
    "read_trial": "trial_files",
    "reversed_signs": "model_fit",
    "write_model": "model_files",
}


def __getattr__(name: str) -> Any:
    """Import a module only on first use, because the command line must work without the libraries of the fit."""
    if name in _MODULES:
        return getattr(importlib.import_module(f"wavesim_studies.identification.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
