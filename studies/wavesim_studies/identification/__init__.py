"""Identification: coefficients of a model fitted to recorded trials.

from wavesim_studies.identification import ShootingOptions, fit, parse_unknowns, read_trial

trial = read_trial(Path("lake.csv"), model)
unknowns = parse_unknowns(["linear-drag/N_r", "delay"], model, list(trial.channels), 1)
result = fit(model, [trial], unknowns, ShootingOptions())
"""

from wavesim_studies.identification.fit import FitResult, assess, fit, profile, reversed_signs
from wavesim_studies.identification.model_files import write_model
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
