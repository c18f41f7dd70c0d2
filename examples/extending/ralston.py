"""A custom integrator: Ralston's second-order method (1962), which has the smallest error bound of its order."""

from wavesim_server.dynamics.extension_points import Integrator

RALSTON = Integrator("ralston", times=(0.0, 2 / 3), stages=((), (2 / 3,)), weights=(1 / 4, 3 / 4), stable=1.8)
