"""A custom actuator type: a weight that slides along the x axis. Its command is the forward position in m.

The body's mass already includes the weight, so moving it changes only the moment.
"""

from wavesim_kernels.compiler import always_inline
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics import work_rows as W
from wavesim_server.dynamics.extension_points import ActuatorType
from wavesim_server.dynamics.lanes import add_to, broadcast, load
from wavesim_server.dynamics.types import Floats


@always_inline
def force(block: Floats, params: Floats, first: int, slot: int, work: Floats) -> None:
    moment = broadcast(params, first) * broadcast(params, P.GRAVITY) * load(work, slot)  # m g x
    add_to(work, W.FORCE + 4, -moment * load(work, W.ROT + 8))  # x times the direction of gravity in B: row 3 of R_WB
    add_to(work, W.FORCE + 5, moment * load(work, W.ROT + 7))


SLIDING_WEIGHT = ActuatorType("sliding-weight", ("mass",), force)
