"""Planar learned dead reckoning in several forms: dense and recurrent networks that predict a position, a velocity, or
a velocity and the yaw.

All forms except the last are those of a dissertation on a model boat (Panisim 2025), so that its comparison can be
repeated for any vehicle. Networks predict one step from the previous state. This state is the network's own prediction,
but in training, it is the reference. The last form, ``lstm-velocity-yaw``, has no such feedback: its memory replaces
the previous state, so that errors of the velocity cannot accumulate. It predicts the yaw as a correction of the
integrated turn rate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_sdk.errors import LogError, WaveSimError
from wavesim_studies.navigation.metrics import wrapped
from wavesim_studies.navigation.planar_runs import PlanarRun
from wavesim_studies.neural_networks import Adam, DenseNetwork, forward
from wavesim_studies.recurrent_network import RecurrentNetwork, start, step

X, Y, U, V, YAW = range(5)  #: columns of a state: position in m, velocity in B in m/s, yaw in rad
DENSE, UNITS = (64, 64), 32  #: sizes of the networks
SEQUENCE, STRIDE = 60, 20  #: length of training sequences, and distance between their starts, in steps
BATCH, BATCH_SEQUENCES = 512, 48
WRONG = 0.05  #: standard deviation in m/s of the error that is added to the previous velocity in training
LIMIT = 1e4  #: bound on every value of a state, because a prediction that feeds on itself may diverge


@dataclass(frozen=True)
class Form:
    """Inputs and outputs of the networks. ``inputs`` may contain the state (`position`, `velocity`, `yaw`);
    accelerations, turn rate and commands are always inputs.
    """

    inputs: tuple[str, ...]
    outputs: tuple[tuple[int, ...], ...]  #: columns of the state that each network predicts
    delta: bool  #: whether the networks predict changes
    recurrent: bool = False
    measured_yaw: bool = False  #: whether the yaw is measured by an AHRS
    gyro: bool = False  #: whether a correction to the integrated turn rate is predicted, not the change in yaw


VELOCITY, PLACE, TURN = (U, V), (X, Y), (U, V, YAW)
FORMS: dict[str, Form] = {
    "position": Form(("velocity", "position"), ((X, Y, U, V),), False),
    "delta": Form(("velocity", "position"), ((X, Y, U, V),), True),
    "decoupled": Form(("position",), ((X,), (Y,)), True),
    "velocity": Form(("velocity", "yaw"), (VELOCITY,), False, measured_yaw=True),
    "velocity-yaw": Form(("velocity", "yaw"), (TURN,), False),
    "velocity-yaw-delta": Form(("velocity", "yaw"), (TURN,), True),
    "lstm-position": Form(("position",), (PLACE,), False, recurrent=True),
    "lstm-delta": Form(("position",), (PLACE,), True, recurrent=True),
    "lstm-decoupled": Form(("position",), ((X,), (Y,)), True, recurrent=True),
    "lstm-velocity-yaw": Form((), (TURN,), True, recurrent=True, gyro=True),
}


def _states(run: PlanarRun, form: Form) -> Array:
    """Return the reference states (T, 5). The yaw is the measured heading if the form uses it, and otherwise the
    reference yaw.
    """
    if form.measured_yaw and not np.isfinite(run.heading).all():
        raise LogError(f"{run.name}: this form requires a measured heading")
    return np.concatenate([run.place, run.velocity, (run.heading if form.measured_yaw else run.yaw)[:, None]], axis=1)


def _sensed(run: PlanarRun) -> Array:
    return np.concatenate([run.measured, run.commands], axis=1)


def _inputs(form: Form, before: Array, sensed: Array) -> Array:
    """Return the inputs (N, F) of the networks, given previous states (N, 5) and sensed values (N, k)."""
    parts = [sensed]
    if "velocity" in form.inputs:
        parts.append(before[:, U : V + 1])
    if "position" in form.inputs:
        parts.append(before[:, : Y + 1])
    if "yaw" in form.inputs:
        parts += [np.sin(before[:, YAW : YAW + 1]), np.cos(before[:, YAW : YAW + 1])]
    return np.concatenate(parts, axis=1)


def _turned(run: PlanarRun) -> Array:
    """Return the yaw increments measured by the gyro, shape (T - 1,)."""
    return np.asarray(run.measured[1:, 2] * np.diff(run.time))


def _targets(form: Form, columns: tuple[int, ...], states: Array, turned: Array) -> Array:
    """Return the outputs (N, O) that a network should produce. A yaw that is not predicted as a change is represented
    by its sine and cosine.
    """
    before, now = states[:-1], states[1:]
    if not form.delta:
        found = [now[:, [k]] for k in columns if k != YAW]
        return np.concatenate(
            [*found, *((np.sin(now[:, [YAW]]), np.cos(now[:, [YAW]])) if YAW in columns else ())], axis=1
        )
    # without feedback, there is no previous velocity to which a change could be added
    found = [now[:, k] - (before[:, k] if _adds(form, k) else 0.0) for k in columns]
    if form.gyro:
        found[columns.index(YAW)] -= turned
    return np.stack(found, axis=1)


def _adds(form: Form, column: int) -> bool:
    return form.delta and (column in (X, Y, YAW) or "velocity" in form.inputs)


@dataclass
class FormNetwork:
    """One trained network of a form, with the scaling of its inputs and outputs."""

    parameters: list[Array]
    centre: Array
    scale: Array
    out_centre: Array
    out_scale: Array


@dataclass
class LearnedForm:
    """Trained networks of one form."""

    name: str
    networks: list[FormNetwork] = field(default_factory=list)

    @property
    def form(self) -> Form:
        """Inputs and outputs of the networks."""
        return FORMS[self.name]

    def run(self, run: PlanarRun) -> Array:
        """Return the predicted states (T, 5), starting from the reference state."""
        form, true, sensed, turned = self.form, _states(run, self.form), _sensed(run), _turned(run)
        found = np.empty_like(true)
        found[0] = true[0]
        memories = [start(n.parameters, 1) if form.recurrent else None for n in self.networks]
        for k in range(1, len(found)):
            now = found[k - 1].copy()
            x = _inputs(form, found[k - 1 : k], sensed[k : k + 1])
            for j, (columns, n) in enumerate(zip(form.outputs, self.networks, strict=True)):
                scaled = ((x - n.centre) / n.scale).astype(np.float32)
                if (memory := memories[j]) is not None:
                    y, memories[j] = step(n.parameters, scaled, memory)
                else:
                    y = forward(n.parameters, scaled)
                out = (n.out_centre + n.out_scale * y)[0]
                for place, column in enumerate(columns):
                    if column == YAW and not form.delta:
                        turn = np.arctan2(out[place], out[place + 1]) - now[YAW]
                        now[YAW] += wrapped(turn)
                    else:
                        now[column] = out[place] + (found[k - 1, column] if _adds(form, column) else 0.0)
            if form.gyro:
                now[YAW] += turned[k - 1]
            if form.measured_yaw:
                now[YAW] = true[k, YAW]
            if all(X not in columns for columns in form.outputs):
                now[: Y + 1] = found[k - 1, : Y + 1] + _way(found[k - 1], now, run.time[k] - run.time[k - 1])
            found[k] = np.clip(now, -LIMIT, LIMIT)
        return found

    def save(self, path: Path) -> None:
        """Write the networks to a .npz file."""
        arrays = [a for n in self.networks for a in (n.centre, n.scale, n.out_centre, n.out_scale, *n.parameters)]
        try:
            np.savez(path, np.array(self.name), np.array(len(self.networks)), *arrays)
        except OSError as error:
            raise WaveSimError(f"cannot write {path}: {error.strerror}") from None

    @classmethod
    def load(cls, path: Path) -> LearnedForm:
        """Read networks from a .npz file. Raise WaveSimError if the file is invalid."""
        from wavesim_studies.neural_networks import load

        (name, count, *arrays), _ = load(path, "planar network", 2)
        if (
            str(name) not in FORMS
            or count.ndim
            or count.dtype.kind not in "iu"
            or int(count) < 1
            or len(arrays) % int(count)
            or len(arrays) < 8 * int(count)
        ):
            raise WaveSimError(f"{path} does not contain a valid planar network")
        size = len(arrays) // int(count)
        parts = [arrays[k : k + size] for k in range(0, len(arrays), size)]
        return cls(str(name), [FormNetwork(a[4:], *a[:4]) for a in parts])


def _way(before: Array, now: Array, dt: float) -> Array:
    """Return the displacement (2) between two states, by the trapezoidal rule."""
    total = np.zeros(2)
    for s in (before, now):
        c, n = np.cos(s[YAW]), np.sin(s[YAW])
        total += 0.5 * dt * np.array([c * s[U] - n * s[V], n * s[U] + c * s[V]])
    return total


def train(
    name: str, runs: Sequence[PlanarRun], epochs: int, seed: int = 1, say: Callable[[str], None] = lambda _: None
) -> LearnedForm:
    """Train the networks of a form on all given runs."""
    form, made, random = FORMS[name], LearnedForm(name), np.random.default_rng(seed)
    states, sensed = [_states(r, form) for r in runs], [_sensed(r) for r in runs]
    for columns in form.outputs:
        x = [_inputs(form, s[:-1], m[1:]) for s, m in zip(states, sensed, strict=True)]
        y = [_targets(form, columns, s, _turned(r)) for s, r in zip(states, runs, strict=True)]
        every, wanted = np.concatenate(x), np.concatenate(y)
        centre, scale = every.mean(axis=0), np.maximum(every.std(axis=0), 1e-6)
        out_centre, out_scale = wanted.mean(axis=0), np.maximum(wanted.std(axis=0), 1e-9)
        ready = [((a - centre) / scale).astype(np.float32) for a in x]
        target = [((a - out_centre) / out_scale).astype(np.float32) for a in y]
        if form.recurrent:
            network = _train_recurrent(ready, target, epochs, random)
        else:
            network = _train_dense(form, columns, (ready, target), (scale, out_scale), epochs, random)
        made.networks.append(FormNetwork(network, centre, scale, out_centre, out_scale))
        say(f"{name}: network {len(made.networks)} of {len(form.outputs)} is trained")
    return made


def _train_dense(
    form: Form,
    columns: tuple[int, ...],
    pairs: tuple[list[Array], list[Array]],
    scales: tuple[Array, Array],
    epochs: int,
    random: Any,
) -> list[Array]:
    x, y = (np.concatenate(part) for part in pairs)
    network = DenseNetwork((x.shape[1], *DENSE, y.shape[1]), random, 0.1)
    adam, rate = Adam(network.parameters, 2e-3), 2e-3
    sensed = x.shape[1] - sum({"velocity": 2, "position": 2, "yaw": 2}[k] for k in form.inputs)
    for epoch in range(epochs):
        adam.rate = rate * (1.0 - 0.95 * epoch / epochs)
        order = random.permutation(len(x))
        for first in range(0, len(order), BATCH):
            at = order[first : first + BATCH]
            now, wanted = x[at], y[at]
            if "velocity" in form.inputs:  # the network learns to return to the velocity that the commands imply
                error = WRONG * random.standard_normal((len(at), 2))
                now = now.copy()
                now[:, sensed : sensed + 2] += (error / scales[0][sensed : sensed + 2]).astype(np.float32)
                if form.delta:
                    wanted = wanted.copy()
                    place = columns.index(U)
                    wanted[:, place : place + 2] -= (error / scales[1][place : place + 2]).astype(np.float32)
            adam.apply(network.gradients(((network(now) - wanted) / len(at)).astype(np.float32)))
    return network.parameters


def _train_recurrent(x: list[Array], y: list[Array], epochs: int, random: Any) -> list[Array]:
    parts = [
        (a[k : k + SEQUENCE], b[k : k + SEQUENCE])
        for a, b in zip(x, y, strict=True)
        for k in range(0, max(len(a) - SEQUENCE, 0) + 1, STRIDE)
        if len(a) >= SEQUENCE
    ]
    if not parts:
        raise LogError(f"recurrent networks need runs of at least {SEQUENCE + 1} steps")
    inputs, wanted = (np.stack([p[k] for p in parts], axis=1) for k in (0, 1))
    network = RecurrentNetwork(inputs.shape[2], UNITS, wanted.shape[2], random, 0.3)
    adam, rate = Adam(network.parameters, 5e-3), 5e-3
    for epoch in range(epochs):
        adam.rate = rate * (1.0 - 0.95 * epoch / epochs)
        order = random.permutation(inputs.shape[1])
        for first in range(0, len(order), BATCH_SEQUENCES):
            at = order[first : first + BATCH_SEQUENCES]
            error = network(inputs[:, at]) - wanted[:, at]
            adam.apply(network.gradients((error / (len(at) * SEQUENCE)).astype(np.float32)), most=1.0)
    return network.parameters


# ------------------------------------------------------------------ evaluation


def constant_speed(run: PlanarRun, velocity: Array, measured_yaw: bool) -> Array:
    """Return the states (T, 5) of dead reckoning at a constant velocity in B. The yaw is measured, or the integral of
    the measured turn rate.
    """
    yaw = (
        run.heading
        if measured_yaw
        else run.yaw[0] + np.concatenate([[0.0], np.cumsum(run.measured[1:, 2] * np.diff(run.time))])
    )
    found = np.column_stack([np.zeros((len(yaw), 2)), np.broadcast_to(velocity, (len(yaw), 2)), yaw])
    for k in range(1, len(yaw)):
        found[k, : Y + 1] = found[k - 1, : Y + 1] + _way(found[k - 1], found[k], run.time[k] - run.time[k - 1])
    return found


def errors(run: PlanarRun, states: Array) -> dict[str, float]:
    """Return the RMS and final error of the position (m), the final error in % of the distance, and the RMS error of
    the yaw (rad; NaN if only positions are known).
    """
    off = np.linalg.norm(states[:, : Y + 1] - run.place, axis=1)
    turn = states[:, YAW] - run.yaw if states.shape[1] > YAW else np.full(len(off), np.nan)
    turn = wrapped(turn)
    return {
        "rms": float(np.sqrt(np.mean(off**2))),
        "final": float(off[-1]),
        "percent": 100.0 * float(off[-1]) / max(run.distance, 1e-9),
        "yaw": float(np.sqrt(np.mean(turn**2))),
    }


def compare(
    runs: Sequence[PlanarRun],
    names: Sequence[str],
    epochs: int,
    seed: int = 1,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Train forms on the runs in the `train` split. Score them, and methods without learning, on each run in the `test`
    split.

    Return the trained forms, the errors by method and run, and the training time in s by form.
    """
    mine, unseen = ([r for r in runs if r.part in part] for part in (("train", "validation"), ("test",)))
    if not mine or not unseen:
        raise LogError(
            f"planar dead reckoning needs runs for training and for the test; got {len(mine)} and {len(unseen)}"
        )
    if len(different := {r.names: r.name for r in runs}) > 1:
        a, b, *_ = (f"{run} ({', '.join(names) or 'none'})" for names, run in different.items())
        raise LogError(f"the runs have commands for different actuators: {a} and {b}")
    usual = np.concatenate([r.velocity for r in mine]).mean(axis=0)
    found: dict[str, dict[str, dict[str, float]]] = {"constant speed, gyro": {}}
    for r in unseen:
        found["constant speed, gyro"][r.name] = errors(r, constant_speed(r, usual, False))
        if np.isfinite(r.heading).all():
            found.setdefault("constant speed, AHRS", {})[r.name] = errors(r, constant_speed(r, usual, True))
        if len(r.filtered):
            found.setdefault("filter without Doppler", {})[r.name] = errors(r, r.filtered)
    forms, seconds = {}, {}
    for name in names:
        begin = time.perf_counter()
        forms[name] = train(name, mine, epochs, seed, say)
        seconds[name] = time.perf_counter() - begin
        found[name] = {r.name: errors(r, forms[name].run(r)) for r in unseen}
    return {"forms": forms, "errors": found, "seconds": seconds, "train": len(mine), "test": len(unseen)}
