"""A slow, obvious twin of the dynamics kernel: NumPy matrices, one vehicle, textbook form."""

from __future__ import annotations

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.arrays import Floats
from wavesim_server.dynamics.model_compiler import HORIZONTAL_DOFS, derivative_factors, mass_matrices
from wavesim_server.dynamics.sizes import SLOT_ANGLE, SLOT_BALLAST, SLOT_BUCKET, SLOT_FIN
from wavesim_world.config import Model, matrix
from wavesim_world.config.actuators import Fin
from wavesim_world.config.vehicle import CrossFlow


def skew(v: Floats) -> Floats:
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def coriolis(M: Floats, nu: Floats) -> Floats:
    """Fossen 2021, eq. 3.46."""
    a = M[:3, :3] @ nu[:3] + M[:3, 3:] @ nu[3:]
    b = M[3:, :3] @ nu[:3] + M[3:, 3:] @ nu[3:]
    C = np.zeros((6, 6))
    C[:3, 3:] = C[3:, :3] = -skew(a)
    C[3:, 3:] = -skew(b)
    return C


class Twin:
    """A deeply submerged vehicle with constant actuators."""

    def __init__(self, model: Model, density: float, gravity: float, current: Floats, commands: Floats) -> None:
        self.model, self.current, self.commands = model, current, commands
        self.density = density
        self.MRB, self.MA = mass_matrices(model)
        self.MAs = 0.5 * (self.MA + self.MA.T)
        self.plane = model.coriolis_added == "plane"
        self.MAc = self.MAs * np.outer(HORIZONTAL_DOFS, HORIZONTAL_DOFS) if self.plane else self.MAs
        self.Minv = np.linalg.inv(self.MRB + self.MA)
        self.DL, self.DQ, self.L = matrix(model.linear_drag), matrix(model.quadratic_drag), matrix(model.lift)
        self.W = model.mass.value * gravity
        self.B = density * gravity * (model.buoyancy.volume if model.buoyancy else 0.0)
        self.rg = np.array(model.mass.centre)
        self.rb = np.array(model.buoyancy.centre if model.buoyancy else (0.0, 0.0, 0.0))
        self.gravity = gravity
        if model.restoring is not None:
            self.W = self.B = 0.0

    def derivative(self, x: Floats) -> Floats:
        q, nu = x[3:7], x[7:13]
        R = frames.rotation(q)
        vc = R.T @ self.current
        nu_r = nu - np.concatenate([vc, np.zeros(3)])
        nu_d = nu_r.copy()  # what drag and memory feel: of hulls on the surface the vertical speed
        if self.plane:
            nu_d[2] = R[2] @ nu_r[:3]
        tau = self.thrusters(nu_r) + self.extra(x, R, nu_r, nu_d)
        for k, f in enumerate(self.model.fin):
            if f.law != "linear":
                continue
            normal, at = np.array(f.normal) / np.linalg.norm(f.normal), np.array(f.position)
            v = nu_r[:3] + np.cross(nu[3:], at)
            inflow = normal @ v if f.inflow else 0.0
            force = (
                0.5 * self.density * f.area * f.lift_slope * abs(v[0]) * (v[0] * self.commands[SLOT_FIN + k] - inflow)
            )
            if f.stall:
                force = self.stalled(f, self.commands[SLOT_FIN + k], v[0], float(normal @ v), force)
            tau += np.concatenate([normal * force, np.cross(at, normal * force)])
        down = R.T @ np.array([0.0, 0.0, 1.0])
        tau[:3] += (self.W - self.B) * down
        tau[3:] += np.cross(self.rg, self.W * down) - np.cross(self.rb, self.B * down)
        tau -= self.DL @ nu_d + abs(nu_r[0]) * self.L @ nu_r + self.DQ @ (np.abs(nu_d) * nu_d)
        tau -= coriolis(self.MRB, nu) @ nu + coriolis(self.MAc, nu_r) @ nu_r
        if self.plane:
            tau += self.MA[:, 2] * (nu_r[0] * nu_r[4] - nu_r[1] * nu_r[3])
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

    def stalled(self, f: Fin, angle: float, along: float, over: float, linear: float) -> float:
        """By angles: the linear law to the stall, then Viterna and Corrigan's form for the normal force."""
        angle, along = angle * np.copysign(1.0, along), abs(along)
        if abs(angle * along - over) <= f.stall * along:
            return linear
        attack = angle - np.arctan2(over, along)
        flow = angle - np.copysign(f.stall, attack)  # tangent of the flow's angle at the stall
        begin = abs(angle - np.arctan(flow))
        attached = f.lift_slope * f.stall * np.cos(np.arctan(flow)) ** 2
        a = min(abs(attack), np.pi - begin)
        shape = (np.cos(a) ** 2 / np.sin(a)) / (np.cos(begin) ** 2 / np.sin(begin))
        cn = f.plate * np.sin(a) + (attached - f.plate * np.sin(begin)) * shape
        q = 0.5 * self.density * f.area
        matrix_holds = 0.0 if f.inflow else q * f.lift_slope * along * over
        return float(np.copysign(q * cn * (along**2 + over**2), attack) + matrix_holds)

    def thrusters(self, nu_r: Floats) -> Floats:
        """Every law, azimuth and deflector, one thruster after the other."""
        tau = np.zeros(6)
        for k, t in enumerate(self.model.thruster):
            d = np.array(t.direction) / np.linalg.norm(t.direction)
            at = np.array(t.position)
            n = self.commands[k]
            c1, c2, c3 = t.coefficients if n > 0 or not t.reverse else t.reverse
            ua = d @ (nu_r[:3] + np.cross(nu_r[3:], at)) if t.inflow == "along" else np.linalg.norm(nu_r[:3])
            ua *= 1.0 - t.wake
            torque = 0.0
            if t.open_water is None:
                thrust = c1 * n + c2 * n * abs(n) + c3 * abs(n) * ua
            else:
                o = t.open_water
                j = ua / (n * o.diameter)
                if o.rows:
                    table = np.array(o.rows).reshape(-1, 2)
                    kt, kq = np.interp(j, table[:, 0], table[:, 1]), 0.0
                else:
                    kt, kq = (c[0] + (c[1] * j if n > 0 else 0.0) for c in (o.kt, o.kq))
                    kt, kq = float(kt), float(kq)
                thrust = (1 - o.deduction) * self.density * o.diameter**4 * kt * n * abs(n)
                torque = o.torque_share * self.density * o.diameter**5 * kq * n * abs(n)
            if t.thrust_limit:
                thrust = max(-t.thrust_limit, min(t.thrust_limit, thrust))
            f = d * thrust
            if t.swivel is not None or t.deflector is not None:
                angle = self.commands[SLOT_ANGLE + k]
                along = thrust * np.cos(angle) * (self.commands[SLOT_BUCKET + k] if t.deflector else 1.0)
                f = d * along + np.array([-d[1], d[0], 0.0]) * thrust * np.sin(angle)
            tau += np.concatenate([f, np.cross(at, f) + d * torque])
        return tau

    def extra(self, x: Floats, R: Floats, nu_r: Floats, nu_d: Floats) -> Floats:
        """The optional terms, each as its source has it."""
        m, tau = self.model, np.zeros(6)
        u, w = nu_r[0], nu_r[2]
        U = float(np.linalg.norm(nu_r[:3]))
        if m.restoring is not None:
            phi, theta, _ = frames.euler(x[3:7])
            tau -= matrix(m.restoring) @ np.array([0, 0, x[2] - m.restoring.z, phi, theta, 0])
        for load in m.load:
            weight = R.T @ np.array([0, 0, load.mass * self.gravity])
            tau += np.concatenate([weight, np.cross(load.position, weight)])
        for k, tank in enumerate(m.ballast):
            weight = R.T @ np.array([0, 0, self.commands[SLOT_BALLAST + k] * self.gravity])
            tau += np.concatenate([weight, np.cross(tank.position, weight)])
        if m.cross_flow is not None:
            c = m.cross_flow
            for i, j, sign, linear, turn in ((1, 5, 1.0, c.sway, c.yaw), (2, 4, -1.0, c.heave, c.pitch)):
                turn = linear if turn < 0 else turn
                a, b = nu_d[i], sign * nu_d[j]
                if i == 1 and abs(a) < c.still:
                    continue
                s, lengths = self.strips(c, a, b)
                f = lengths * (a + b * s) * np.abs(a + b * s)
                tau[i] -= linear * f.sum()
                tau[j] -= sign * turn * (s * f).sum()
        if m.surge_friction is not None:
            c = m.surge_friction
            rn = max(abs(u) * c.length / c.viscosity, 1000.0)
            tau[0] -= c.factor * (0.075 / (np.log10(rn) - 2) ** 2 + c.residual) * u * abs(u)
        if m.fading_drag is not None:
            tau -= np.array(m.fading_drag.diagonal) * np.exp(-m.fading_drag.fade * U) * nu_r
        if m.body_lift is not None:
            c = m.body_lift
            aspect = c.span**2 / c.area
            alpha = np.arctan2(w, u)
            cl = np.pi * aspect / (1 + np.sqrt(1 + (aspect / 2) ** 2)) * alpha
            cd = c.drag + cl**2 / (np.pi * c.efficiency * aspect)
            f = 0.5 * self.density * c.area * U**2
            tau[0] += f * (cl * np.sin(alpha) - cd * np.cos(alpha))
            tau[2] -= f * (cd * np.sin(alpha) + cl * np.cos(alpha))
        if m.coriolis_without:
            C = coriolis(self.MAs, nu_r)
            for e in m.coriolis_without.split():
                tau[int(e[0]) - 1] += C[int(e[0]) - 1, int(e[1]) - 1] * nu_r[int(e[1]) - 1]
        if m.derivatives is not None:
            d = m.derivatives
            for item in m.derivatives.derivative:
                axis, factors = derivative_factors(item.name)
                value = item.value
                speed = d.speed or U
                for factor in factors:
                    if factor[0] == "d":
                        value *= self.commands[SLOT_FIN + (int(factor[1]) - 1 if factor[1:].isdigit() else 0)]
                        continue
                    motion = nu_r["uvwpqr".index(factor[-1])]
                    if d.system == "prime":
                        motion /= speed / d.length if factor[-1] in "pqr" else speed
                    value *= abs(motion) if factor[0] == "a" else motion
                if d.system == "prime":
                    value *= 0.5 * self.density * d.length ** (2 + (axis > 2)) * speed**2
                tau[axis] += value
        for k, f in enumerate(m.fin):
            angle = self.commands[SLOT_FIN + k]
            chord = np.array(f.chord) / np.linalg.norm(f.chord)
            normal = np.array(f.normal) / np.linalg.norm(f.normal)
            if f.law == "coefficients":
                span = np.cross(chord, normal)
                across = U**2 - (nu_r[:3] @ span) ** 2 if f.speed == "plane" else U**2
                tau += across * (np.array(f.per_angle) * angle + np.array(f.per_square) * angle**2)
            elif f.law == "aerofoil":
                local = nu_r[:3] + np.cross(nu_r[3:], f.position)
                along, over = local @ chord, local @ normal
                attack = (np.degrees(angle - np.arctan2(over, along)) + 180.0) % 360.0 - 180.0
                rows = np.array(f.aerofoil.rows).reshape(-1, 3)  # type: ignore[union-attr]
                cl, cd = (np.interp(attack, rows[:, 0], rows[:, k]) for k in (1, 2))
                size = 0.5 * self.density * f.area * np.hypot(along, over)
                force = size * ((-cl * over - cd * along) * chord + (cl * along - cd * over) * normal)
                tau += np.concatenate([force, np.cross(f.position, force)])
        return tau

    def strips(self, c: CrossFlow, a: float, b: float) -> tuple[Floats, Floats]:
        """Places and lengths of the strips of a hull: Gauss points, apart on both sides of where the flow changes sides."""
        cuts = [c.centre - c.length / 2, c.centre + c.length / 2]
        if b and cuts[0] < -a / b < cuts[1]:
            cuts.insert(1, -a / b)
        points, weights = np.polynomial.legendre.leggauss(4)
        half = np.diff(cuts)[:, None] / 2
        return (np.array(cuts[:-1])[:, None] + half * (points + 1)).ravel(), (half * weights).ravel()

    def step(self, x: Floats, h: float) -> Floats:
        k1 = self.derivative(x)
        k2 = self.derivative(x + h / 2 * k1)
        k3 = self.derivative(x + h / 2 * k2)
        k4 = self.derivative(x + h * k3)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        x[3:7] /= np.linalg.norm(x[3:7])
        return x
