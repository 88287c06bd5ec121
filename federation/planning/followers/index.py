"""All leaders and followers in both directions, kept up to date one leader at a time.

Putting a leader costs as much as it has followers, whatever else is known; where a follower goes is counted, not
computed from its leaders, so that a thousand workloads with one pull secret cost no more each than the first.
Lives as long as the controller that feeds it; not shared between processes, and rebuilt at start.
"""

from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from federation.planning.followers.references import Identity, Reference

_NOWHERE: frozenset[str] = frozenset()
_NOBODY: frozenset[Identity] = frozenset()


class FollowerIndex:
    """Who leads whom, and to which clusters."""

    def __init__(self) -> None:
        self._led_by: dict[Identity, dict[Identity, frozenset[str]]] = {}
        self._leaders: dict[Identity, set[Identity]] = {}
        self._counts: dict[Identity, Counter[str]] = {}

    def put(self, leader: Identity, followers: Mapping[Reference, frozenset[str]]) -> set[Identity]:
        """Replace what a leader takes along, {} for nothing; return the followers that it makes a difference to."""
        before = self._led_by.get(leader, {})
        after = {Identity(ref.group, ref.kind, leader.namespace, ref.name): to for ref, to in followers.items()}
        changed = {one for one in before.keys() | after.keys() if before.get(one) != after.get(one)}
        for follower in changed:
            self._move(leader, follower, before.get(follower), after.get(follower))
        if after:
            self._led_by[leader] = after
        else:
            self._led_by.pop(leader, None)
        return changed

    def leaders_of(self, follower: Identity) -> AbstractSet[Identity]:
        """Return everybody who takes the object along; the set is the index's own and changes with it."""
        return self._leaders.get(follower, _NOBODY)

    def led_by(self, leader: Identity) -> Mapping[Identity, frozenset[str]]:
        """Return whom a leader takes along, and to which clusters."""
        return self._led_by.get(leader, {})

    def clusters_of(self, follower: Identity) -> frozenset[str]:
        """Return every cluster that some leader takes the object to."""
        counts = self._counts.get(follower)
        return frozenset(counts) if counts else _NOWHERE

    def _move(
        self, leader: Identity, follower: Identity, before: frozenset[str] | None, after: frozenset[str] | None
    ) -> None:
        counts, leaders = self._counts.setdefault(follower, Counter()), self._leaders.setdefault(follower, set())
        for cluster in before or ():
            counts[cluster] -= 1
            if not counts[cluster]:
                del counts[cluster]
        counts.update(after or ())
        if after is None:
            leaders.discard(leader)
        else:
            leaders.add(leader)
        if not leaders:
            del self._counts[follower], self._leaders[follower]
