"""Clients of a siege: they keep to the protocol, and resume, leave, move, vanish, and are late."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from benchmarks.world.network import Address
from benchmarks.world.program import Program
from benchmarks.world.report import Broken
from benchmarks.world.world import BEGIN_S
from wavesim_sdk.wire import items
from wavesim_sdk.wire.client import Phase
from wavesim_sdk.wire.messages import (
    HEADER_BYTES,
    Join,
    Resumption,
    Role,
    Type,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.world.siege import Siege
    from wavesim_sdk.wire.state import State

UNKNOWN = 99  #: kind of request that does not exist; each request of it must be refused
MARK = "mark of the siege"  #: text of the notices about each newcomer's body


class Citizen(Program):
    """A client that keeps to the protocol. ``habits`` name what happens to it, each at a random time."""

    world: Siege

    def __init__(
        self, world: Siege, name: str, role: Role, body: str, ticks: int = 0, habits: Sequence[str] = ()
    ) -> None:
        super().__init__(world, name, world.stream(name), role, body)
        self.lockstep_ticks, self.thinks, self.habits = ticks, 0.02, list(habits)
        self.listens = 1
        self.said: dict[int, list[float]] = {}  #: tick -> command in the answer to its STEP
        self.must_fail: set[int] = set()  #: requests that must be refused
        self._sounds: dict[int, tuple[float, int, int]] = {}  # request -> time, and tick and steps at that time
        self._losing = 0  # number of copies of the next STEP that are lost
        loss = world.stream(f"{name}'s loss")
        self._loss = loss if loss.random() < 0.5 else None  # loss of events, but never of three datagrams in succession
        self._lost = 0
        self._busy_until = 0.0
        self.punctual = "dawdle" not in self.habits  #: whether it answers each STEP that it receives in time

    def start(self, now: float) -> None:
        """Start the program, and plan what happens to it."""
        super().start(now)
        end = BEGIN_S + self.world.length
        for habit in self.habits:
            if habit == "dawdle":
                continue  # see _think
            self.world.clock.at(self.random.uniform(now + 0.5, end - 0.9), HABITS[habit].__get__(self))
        self.world.clock.at(now + 0.2, self._work)

    def begin(self, join: Join, now: float, address: Address | None = None) -> None:
        super().begin(join, now, address)
        self.must_fail, self._sounds = set(), {}

    def request(self, request: Any) -> int:
        """Send a request and return its number; 0 if the program has not joined."""
        if not self._joined() or self.session is None:
            return 0
        self._due.at(self.world.clock.now)
        return self.session.request(request)

    def _work(self, now: float) -> None:
        """Do what pilots do: command, ask, emit sound, and try what is not permitted."""
        if self.world.calm or self.gone:
            return
        r = self.random
        if self._joined() and self.session is not None and now >= self._deaf:
            how = r.random()
            if self.role is Role.PILOT and not self.lockstep_ticks and how < 0.4:
                self.session.actuate([0.1] * len(self.session.body.actuators))
                self._due.at(now)
            elif how < 0.6 and self.body in ("auv", "usv") and self.role is Role.PILOT:
                if number := self.request(items.Ping(25_000.0)):
                    self._sounds[number] = now, self.tick, self.steps
            elif how < 0.75 and self.role is Role.PILOT:
                other = r.choice([b for b in ("auv", "usv", "drifter", "wreck") if b != self.body])
                if self.body != "usv":  # which may command others
                    self.must_fail.add(self.request(items.Push(other, (1.0, 0.0, 0.0))))
            elif self.role is Role.PILOT and how < 0.9:
                self.must_fail.add(self.request(items.Fault("", "nonesuch", "lost")))
            elif self.role is Role.PILOT:
                self.must_fail.add(self.session._outbox.push((UNKNOWN, 1)))
                self._due.at(now)
        self.world.clock.at(now + r.uniform(0.01, 0.06), self._work)

    # -- what it receives ----------------------------------------------------------------------------

    def _receive(self, data: bytes, source: Address, now: float) -> None:
        if self._losing and len(data) > HEADER_BYTES and data[5] == Type.STEP and now >= self._deaf:
            self._losing -= 1
            self.world.note("lost step", self.name)
            return
        if len(data) > HEADER_BYTES and data[5] == Type.EVENTS and self._loss is not None and not self.world.calm:
            self._lost = self._lost + 1 if self._lost < 2 and self._loss.random() < 0.3 else 0
            if self._lost:  # a STEP waits for the events before it, and each repetition may be lost, too
                self._harmed = max(self._harmed, now)
                return
        super()._receive(data, source, now)

    def _think(self, now: float) -> float | None:
        if now < self._busy_until:
            return None
        if self.world.calm or "dawdle" not in self.habits or self.random.random() > 0.2:
            return self.random.uniform(0.005, self.thinks)
        self._busy_until = now + self.random.uniform(1.05, 1.4)  # longer than the server waits
        return self._busy_until - now

    def _answer(self, state: State, now: float) -> None:
        if self.gone or not self._joined() or self.session is None:
            return
        command = [1e-4 * state.tick] * len(self.session.body.actuators)
        self.said[state.tick] = command
        self.session.done(state.tick, command)
        if self.world.calm and not self.session._outbox:
            self.world.answers.setdefault(self.session.token, now)
        self._due.at(now)

    def _state(self, state: State, now: float) -> None:
        super()._state(state, now)
        assert self.book is not None
        if self.book.events.heard < len(self.book.events.said):
            return  # the answers may be among the events that are lost and repeated
        for number, (asked, tick, steps) in list(self._sounds.items()):
            if self.book.answers[number]:
                del self._sounds[number]
            elif now - max(asked, self._harmed) > 1.5 and (
                self.steps - steps > 4 if self.lockstep_ticks else state.tick - tick > 10
            ):
                raise Broken(f"a sound without an answer: {self.name} asked number {number} {now - asked:.2f} s ago")

    def _happened(self, event: Any) -> None:
        super()._happened(event)
        match event:
            case items.Answer(number, ok, text):
                if ok and number in self.must_fail:
                    raise Broken(
                        f"executed without the right: {self.name} asked number {number} and was answered: {text}"
                    )
                if ok not in self.world.judge.executed.get(text, {ok}):
                    raise Broken(f"an answer that is not true: {self.name} received {event}")
            case items.Notice(time_ns, text) if text.startswith(MARK) and self.book is not None:
                welcome, book = self.welcome, self.world.books.get(self.session.token if self.session else 0)
                is_new = welcome is not None and welcome.resumed == Resumption.NEW and self.role is Role.PILOT
                if is_new and book is not None and time_ns < book.since * self._step_ns:
                    raise Broken(f"data of a former body: {self.name}, since {book.since * self._step_ns} ns: {event}")

    # -- what happens to it --------------------------------------------------------------------------

    def ail(self, now: float) -> None:
        """Stop hearing answers, then start again and resume the session."""
        for _ in range(3):
            self.request(items.Subscribe(None, 1, 0, 0, 0))
        self._harmed = self._deaf = now + 0.1
        self.world.clock.at(now + 0.11, self._revive)

    def _revive(self, now: float) -> None:
        if self._joined() and not self.gone and not self.world.calm:
            elsewhere = self.world.new_address() if self.random.random() < 0.5 else None
            self.begin(self.join(previous=self.last_token), now, elsewhere)

    def come_and_go(self, now: float) -> None:
        """Emit sound, leave and rejoin immediately, again and again."""
        if self.world.calm or self.gone:
            return
        session = self.session
        if self._joined() and session is not None and now - self.joined_at > 0.05:
            if self.role is Role.INSTRUMENT:
                for _ in range(3):
                    self.request(items.Ping(25_000.0))
            self.world.clock.at(now + 0.012, self._go_away)
            return
        self.world.clock.at(now + 0.02, self.come_and_go)

    def _go_away(self, now: float) -> None:
        if self.session is not None and self._joined():
            self.session.leave()
            self._due.at(now)
        self._come_back(now)

    def _come_back(self, now: float) -> None:
        if self.world.calm or self._quits or self.session is None:
            return
        if self.session.phase is Phase.CLOSED:
            self.begin(self.join(), now)
            self.world.clock.at(now + self.random.uniform(0.1, 0.5), self.come_and_go)
        else:
            self.world.clock.at(now + 0.002, self._come_back)

    def move(self, now: float) -> None:
        """Change the address."""
        if self._joined():
            self._harmed = now
            self._go(self.world.new_address())
            self._due.at(now)

    def vanish(self, now: float) -> None:
        """End without a farewell."""
        self.gone = True
        self.world.network.close(self.address)
        self._due.stop()

    def lose_steps(self, now: float) -> None:
        """Lose the first two copies of the next STEP."""
        self._losing = 2 if self._joined() and self.steps > 2 else 0


HABITS: dict[str, Callable[..., None]] = {
    "resume": Citizen.ail,
    "restless": Citizen.come_and_go,
    "move": Citizen.move,
    "vanish": Citizen.vanish,
    "lossy steps": Citizen.lose_steps,
}
