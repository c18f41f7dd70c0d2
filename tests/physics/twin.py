"""A slow, obvious twin of the dynamics kernel: NumPy matrices, one vehicle, textbook form."""

from __future__ import annotations

from typing import Any

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.config import Model, matrix
from wavesim_server.dynamics.kind import mass_matrices

Array = np.ndarray[Any, np.dtype[np.float64]]


def skew(v: Array) -> Array:
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def coriolis(M: Array, nu: Array) -> Array:
    """Fossen 2021, eq. 3.46."""
    a = M[:3, :3] @ nu[:3] + M[:3, 3:] @ nu[3:]
    b = M[3:, :3] @ nu[:3] + M[3:, 3:] @ nu[3:]
    C = np.zeros((6, 6))
    C[:3, 3:] = C[3:, :3] = -skew(a)
    C[3:, 3:] = -skew(b)
    return C


class Twin:
    """A deeply submerged vehicle with constant actuators."""

    def __init__(self, model: Model, density: float, gravity: float, current: Array, commands: Array) -> None:
        self.model, self.current, self.commands = model, current, commands
        self.density = density
        self.MRB, self.MA = mass_matrices(model)
        self.MAs = 0.5 * (self.MA + self.MA.T)
        self.Minv = np.linalg.inv(self.MRB + self.MA)
        self.DL, self.DQ, self.L = matrix(model.linear_drag), matrix(model.quadratic_drag), matrix(model.lift)
        self.W = model.mass.value * gravity
        assert model.buoyancy is not None
        self.B = density * gravity * model.buoyancy.volume
        self.rg, self.rb = np.array(model.mass.centre), np.array(model.buoyancy.centre)

    def derivative(self, x: Array) -> Array:
        q, nu = x[3:7], x[7:13]
        R = frames.rotation(q)
        vc = R.T @ self.current
        nu_r = nu - np.concatenate([vc, np.zeros(3)])
        tau = np.zeros(6)
        for k, t in enumerate(self.model.thruster):
            d = np.array(t.direction) / np.linalg.norm(t.direction)
            r = np.array(t.position)
            n = self.commands[k]
            c1, c2, c3 = t.coefficients
            ua = d @ (nu_r[:3] + np.cross(nu[3:], r))
            thrust = c1 * n + c2 * n * abs(n) + c3 * abs(n) * ua
            tau += np.concatenate([d * thrust, np.cross(r, d * thrust)])
        for k, f in enumerate(self.model.fin):
            normal, r = np.array(f.normal), np.array(f.position)
            v = nu_r[:3] + np.cross(nu[3:], r)
            inflow = normal @ v if f.inflow else 0.0
            force = 0.5 * self.density * f.area * f.lift_slope * abs(v[0]) * (v[0] * self.commands[8 + k] - inflow)
            tau += np.concatenate([normal * force, np.cross(r, normal * force)])
        down = R.T @ np.array([0.0, 0.0, 1.0])
        tau[:3] += (self.W - self.B) * down
        tau[3:] += np.cross(self.rg, self.W * down) - np.cross(self.rb, self.B * down)
        tau -= (self.DL + abs(nu_r[0]) * self.L) @ nu_r + self.DQ @ (np.abs(nu_r) * nu_r)
        tau -= coriolis(self.MRB, nu) @ nu + coriolis(self.MAs, nu_r) @ nu_r
        dvc = np.concatenate([-np.cross(nu[3:], vc), np.zeros(3)])
        tau += self.MAs @ dvc
        w = nu[3:]
        dq = 0.5 * np.array(
            [
                -q[1] * w[0] - q[2] * w[1] - q[3] * w[2],
                q[0] * w[0] + q[2] * w[2] - q[3] * w[1],
                q[0] * w[1] + q[3] * w[0] - q[1] * w[2],
                q[0] * w[2] + q[1] * w[1] - q[2] * w[0],
            ]
        )
        return np.concatenate([R @ nu[:3], dq, self.Minv @ tau])

    def step(self, x: Array, h: float) -> Array:
        k1 = self.derivative(x)
        k2 = self.derivative(x + h / 2 * k1)
        k3 = self.derivative(x + h / 2 * k2)
        k4 = self.derivative(x + h * k3)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        x[3:7] /= np.linalg.norm(x[3:7])
        return x
