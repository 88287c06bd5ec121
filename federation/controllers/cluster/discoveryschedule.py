"""When a member's API is discovered: about once a minute, and at once when something says that it has changed.

A definition that we delivered says so, and a cache of a kind that the last discovery lacks: somebody has installed the
definition in the member. Both come a moment before the member's discovery shows the kind, so it is repeated for a
while. No I/O; `apidiscovery.py` discovers.
"""

from collections.abc import Collection, Iterable, Mapping

from federation.apimachinery.clock import Clock
from federation.apimachinery.resources import Object, Resource
from federation.controllers.cluster.apidiscovery import ServedType, served_by, to_served


class DiscoverySchedule:
    """The types of the last discovery, those that are expected to appear, and the time of the next discovery."""

    def __init__(self, clock: Clock, *, period_s: float, retry_s: float, definition_timeout_s: float) -> None:
        """`retry_s` is the first pause after a failure. Types are awaited for `definition_timeout_s`."""
        self._clock = clock
        self._period_s = period_s
        self._retry_s = retry_s
        self._definition_timeout_s = definition_timeout_s
        self.served: frozenset[ServedType] = frozenset()
        self._awaited: dict[ServedType, float] = {}
        self._in_vain: set[ServedType] = set()
        """Types that the member answers for and that its discovery did not show in time: they wait for the period."""
        self._due_s = float("-inf")
        self._pause_s = 0.0
        self._is_expired = False
        """Whether `expire` was called since the last discovery began, which may have missed what has changed."""

    @property
    def is_due(self) -> bool:
        """Whether the API is to be discovered now."""
        return self._clock.monotonic() >= self._due_s

    @property
    def is_awaiting(self) -> bool:
        """Whether types are expected that no discovery has shown yet."""
        return bool(self._awaited)

    def saw_definition(self, old: Object | None, new: Object | None) -> bool:
        """Return whether a change of the member's copy of a definition makes a discovery due."""
        before, after = served_by(old), served_by(new)
        gained = after - before - self.served
        if not gained and not before - after:
            return False
        self._await(gained)
        return True

    def wants(self, resource: Resource) -> bool:
        """Return whether a kind that is federated from now on makes a discovery due: the last one may be too old."""
        if not self.served or (resource.group, resource.version, resource.kind) in self.served:
            return False
        self.expire()
        return True

    def saw_kind(self, resource: Resource) -> bool:
        """Return whether an answer of the member for a resource makes a discovery due: the last one lacks it.

        Once for a type that is not shown then, so that a member cannot make us ask without end.
        """
        type_ = (resource.group, resource.version, resource.kind)
        if not self.served or type_ in self.served or type_ in self._awaited or type_ in self._in_vain:
            return False
        self._await((type_,))
        return True

    def _await(self, types: Iterable[ServedType]) -> None:
        until_s = self._clock.monotonic() + self._definition_timeout_s
        self._awaited.update(dict.fromkeys(types, until_s))
        self.expire()

    def expire(self) -> None:
        """Let the next discovery be due now, also if one is under way."""
        self._is_expired = True
        self._due_s = float("-inf")

    def begin(self) -> None:
        """Record that a discovery begins."""
        self._is_expired = False

    def record(self, types: Iterable[Mapping[str, str]], *, is_partial: bool) -> None:
        """Record a discovery; with awaited types that it lacks, the next one stays due. `is_partial`: some failed."""
        self.served = to_served(types)
        self._in_vain -= self.served
        self._give_up(self.served)
        if not self._awaited:
            self._schedule(has_failed=is_partial)

    def record_failure(self) -> None:
        """Record a discovery without an answer."""
        self._give_up()
        self._schedule(has_failed=True)

    def _give_up(self, shown: Collection[ServedType] = ()) -> None:
        """Await neither the types that are shown nor those whose time has passed."""
        now_s = self._clock.monotonic()
        awaited = {type_: until_s for type_, until_s in self._awaited.items() if type_ not in shown}
        self._awaited = {type_: until_s for type_, until_s in awaited.items() if until_s > now_s}
        self._in_vain |= awaited.keys() - self._awaited.keys()

    def _schedule(self, *, has_failed: bool) -> None:
        """Set the time of the next discovery: after its period, or sooner when a part of this one failed.

        Each failure in a row doubles the pause. Health checks wait for a discovery, and a member with a broken group
        would be asked for all of them with every probe.
        """
        pause_s = max(2 * self._pause_s, self._retry_s)
        self._pause_s = min(pause_s, self._period_s) if has_failed else 0.0
        if not self._is_expired:
            self._due_s = self._clock.monotonic() + (self._pause_s or self._period_s)
