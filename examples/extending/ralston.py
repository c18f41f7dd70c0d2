"""An integrator of one's own: Ralston's method of the second order (1962), whose bound of the error is the least."""

from wavesim_server.dynamics.extension_points import Integrator

RALSTON = Integrator("ralston", times=(0.0, 2 / 3), stages=((), (2 / 3,)), weights=(1 / 4, 3 / 4), stable=1.8)
