"""Requests that need a right, for brokers and observers."""

from __future__ import annotations

from collections.abc import Sequence

from wavesim_sdk import arguments, commands
from wavesim_sdk.errors import BrokerError, InvalidArgument, UnknownName
from wavesim_sdk.fences import check_fence
from wavesim_sdk.wire import items
from wavesim_sdk.wire.client import ClientSession
from wavesim_sdk.wire.items import AnyRequest
from wavesim_sdk.wire.schema import Malformed
from wavesim_sdk.wire.state import missing_name_text

__all__ = ["PrivilegedRequests"]


class PrivilegedRequests:
    """Requests that need a right (`<network><grant>`). Each method returns the number by which the answer or the
    refusal identifies the request.
    """

    session: ClientSession

    def request(self, request: AnyRequest, more: int = 0) -> int:
        """Send any request and return its number. ``more`` is the number of requests by which this one may exceed the
        usual number of unacknowledged requests.
        """
        try:
            return self.session.request(request, more)
        except Malformed as malformed:
            raise arguments.request_error(request, malformed) from None
        except (ValueError, OverflowError) as error:
            raise BrokerError(f"cannot send this request: {error}") from None

    def control(self, verb: str, value: float | None = None) -> int:
        """Control the simulation clock (requires the `control` right).

        The verbs are start, pause, step (ticks), speed (factor; 0 = as fast as possible), stop, reset, rewind (time in
        s) and shutdown.
        """
        return self.request(items.Control(verb, None if value is None else arguments.number("value", value)))

    def snapshot(self, action: str, name: str) -> int:
        """Save the complete state of the simulation under a name in the server's memory, restore it, or remove it
        (requires the `control` right). The actions are save, restore and remove.
        """
        try:
            return self.request(commands.check_plausible(items.SnapshotAction(action, name)))
        except ValueError as error:
            raise InvalidArgument(str(error)) from None

    def fault(self, part: str, kind: str, amount: float = 0.0, *, field: str = "", body: str = "") -> int:
        """Set a fault on an actuator, a sensor or one field of a sensor, or clear it (kind ``none``). Requires the
        `fault` right.
        """
        return self.request(items.Fault(body, part, kind, arguments.number("amount", amount), field))

    def push(
        self,
        force: Sequence[float],
        torque: Sequence[float] = (0.0, 0.0, 0.0),
        *,
        duration: float | None = None,
        body: str = "",
    ) -> int:
        """Apply an external force (N) and moment (N m) in B until the next push, or for ``duration`` seconds of
        simulation time (requires the `push` right).
        """
        wrench = arguments.numbers("force", force, 3, "N"), arguments.numbers("torque", torque, 3, "N m")
        limit = None if duration is None else arguments.number("duration", duration)
        return self.request(items.Push(body, *wrench, limit))

    def pose(
        self,
        position: Sequence[float] | None = None,
        attitude: Sequence[float] | None = None,
        velocity: Sequence[float] | None = None,
        *,
        body: str = "",
    ) -> int:
        """Set the position (m, in W), attitude (rad) and velocity (m/s and rad/s, in B) of a body; None = unchanged.
        Requires the `pose` right.
        """
        p = None if position is None else arguments.position("position", position)
        a = None if attitude is None else arguments.attitude("attitude", attitude)
        v = None if velocity is None else arguments.numbers("velocity", velocity, 6, "m/s, rad/s: u v w p q r")
        return self.request(items.Pose(body, p, a, v))

    def allocate(self, matrix: Sequence[Sequence[float]], *, body: str = "") -> int:
        """Replace the thruster allocation matrix, which has six rows with one value per thruster (requires the
        `allocate` right).
        """
        rows = tuple(v for row in matrix for v in arguments.numbers("each row of matrix", row, len(row), "N, N m"))
        return self.request(items.Allocate(body, rows))

    def weather(self, **values: float) -> int:
        """Change the current, wind and waves (requires the `weather` right).

        The values are current_north, current_east, current_down, wind_speed (m/s), wind_direction (rad), wave_height
        (m), wave_peak (rad/s) and wave_direction (rad).
        """
        try:
            return self.request(items.Weather(**values))
        except TypeError:
            known = items.Weather.__dataclass_fields__
            strange = next((name for name in values if name not in known), "")
            raise UnknownName(missing_name_text("the weather has no value named", strange, known)) from None

    def fence(self, name: str, corners: Sequence[Sequence[float]], keep: str = "inside") -> int:
        """Add a fence, or replace the fence with this name (requires the `fence` right).

        ``corners`` lists the north and east coordinates (m, in W) of the corners, in order around the area. Vehicles
        must stay ``inside`` or ``outside``.
        """
        points = [arguments.numbers("each corner", c, 2, "m: north, east", 1e6) for c in corners]
        if len(points) > items.MAX_ITEM_CORNERS:
            raise InvalidArgument(f"corners must contain at most {items.MAX_ITEM_CORNERS} corners, got {len(points)}")
        request = items.Fence(arguments.short_name("name", name), keep, tuple(v for p in points for v in p))
        try:
            check_fence(request)
        except ValueError as error:
            raise InvalidArgument(str(error)) from None
        return self.request(request)

    def remove_fence(self, name: str) -> int:
        """Remove a fence (requires the `fence` right)."""
        return self.request(items.Fence(arguments.short_name("name", name)))

    _missions = 0

    def mission(self, waypoints: Sequence[Sequence[float]], *, body: str = "") -> int:
        """Send waypoints (north, east and down in m, in frame W; speed in m/s) to the pilot of a body that accepts
        missions (requires the `mission` right).

        A long mission requires several requests; the method returns the number of the last one.
        """
        self._missions += 1
        try:
            parts = commands.split_mission(waypoints, self._missions, body)
        except (ValueError, TypeError) as error:
            raise InvalidArgument(f"waypoints: {error}") from None
        return [self.request(part) for part in parts][-1]

    def vehicle_command(self, action: str, point: Sequence[float] | None = None, *, body: str = "") -> int:
        """Send a command to the program that drives a body: goto, loiter, return, pause, resume or abort (requires the
        `mission` right).

        ``point`` consists of north, east and down in m (W), and the speed in m/s; a speed of 0 selects the vehicle's
        default cruise speed. Only ``goto`` needs a point. The answer to this request comes from the program.
        """
        at = None if point is None else arguments.numbers("point", point, 4, "m, m/s")
        try:
            command = commands.check_plausible(items.VehicleCommand(body, action, at))
        except ValueError as error:
            raise InvalidArgument(str(error)) from None
        return self.request(command)
