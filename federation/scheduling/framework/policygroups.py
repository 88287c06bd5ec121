"""The ordered groups of clusters of a policy, as part of the scheduling unit. `orderedgroups.py` works with them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from federation.api.selectors import ClusterTerms
from federation.apimachinery.selectors import SelectorError
from federation.scheduling.framework.shapekeys import ShapeKey


class GroupUse(StrEnum):
    """Whether a group is used if the groups before it cannot take the whole workload, or for what has no room there."""

    FALLBACK = "Fallback"
    OVERFLOW = "Overflow"


class GroupMove(StrEnum):
    """The groups that a decision may place replicas in: only those in use, others if they are not enough, or any."""

    STAY = "Stay"
    IF_NEEDED = "IfNeeded"
    RETURN = "Return"


@dataclass(frozen=True, slots=True)
class OrderedGroup:
    """One of a policy's groups of clusters, which are used in their order; empty conditions match every cluster.

    `returns`: its replicas return to an earlier group that has room for them.
    """

    name: str
    use: GroupUse = GroupUse.FALLBACK
    returns: bool = False
    clusters: frozenset[str] = frozenset()
    selector: tuple[tuple[str, str], ...] = ()
    terms: ClusterTerms | None = None

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether a cluster is in the group; a malformed term matches none."""
        if self.clusters and name not in self.clusters:
            return False
        if any(labels.get(key) != value for key, value in self.selector):
            return False
        try:
            return self.terms is None or self.terms.matches(name, labels)
        except SelectorError:
            return False


GROUPS: ShapeKey[tuple[OrderedGroup, ...]] = ShapeKey("groups", ())
GROUP_MOVE = ShapeKey("group_move", GroupMove.IF_NEEDED)
