"""The index of all leaders and followers in both directions, updated one leader at a time.

An update costs as much as the leader has followers. The clusters of a follower are counted rather than computed from
its leaders, so that the cost of a pull secret does not grow with the number of workloads that share it. An index lives
as long as its controller and is rebuilt at start.
"""

from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from federation.planning.followers.references import Identity, Reference

_NOWHERE: frozenset[str] = frozenset()
_NO_LEADERS: frozenset[Identity] = frozenset()


class FollowerIndex:
    """The followers of each leader, and the leaders and clusters of each follower."""

    def __init__(self) -> None:
        self._followers: dict[Identity, dict[Identity, frozenset[str]]] = {}
        self._leaders: dict[Identity, set[Identity]] = {}
        self._counts: dict[Identity, Counter[str]] = {}

    def put(self, leader: Identity, followers: Mapping[Reference, frozenset[str]]) -> set[Identity]:
        """Replace the followers of a leader, {} for none; return the followers that changed."""
        before = self._followers.get(leader, {})
        after = {Identity(ref.group, ref.kind, leader.namespace, ref.name): to for ref, to in followers.items()}
        changed = {follower for follower in before.keys() | after.keys() if before.get(follower) != after.get(follower)}
        for follower in changed:
            self._move(leader, follower, before.get(follower), after.get(follower))
        if after:
            self._followers[leader] = after
        else:
            self._followers.pop(leader, None)
        return changed

    def leaders_of(self, follower: Identity) -> AbstractSet[Identity]:
        """Return the leaders of an object; the set is the index's own and changes with it."""
        return self._leaders.get(follower, _NO_LEADERS)

    def followers_of(self, leader: Identity) -> Mapping[Identity, frozenset[str]]:
        """Return the followers of a leader, and their clusters."""
        return self._followers.get(leader, {})

    def clusters_of(self, follower: Identity) -> frozenset[str]:
        """Return the clusters of all leaders of an object."""
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
