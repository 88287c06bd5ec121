"""The causes that a move counts for: the policy, the profile, the type or the clusters behind it. Pure.

The schedule controller counts by them, and plans foresee with them what it will hold.
"""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from federation.planning.guard.ledger import Cause
from federation.planning.guard.losses import Blame, blame
from federation.planning.guard.volumepermit import VolumePermit, Way


@dataclass(frozen=True, slots=True)
class Mover:
    """The policy, profile, type and namespace of an object that moves; "" is the namespace of cluster-scoped ones."""

    policy_namespace: str
    policy: str
    profile: str
    type_name: str
    namespace: str
    project: str = ""


def _blame_of(volumes: VolumePermit) -> frozenset[Blame]:
    """Return what a move counts for that waits because of its volumes; nothing if the triggers say it."""
    ways = volumes.waits.values()
    if Way.START in ways:
        return frozenset({Blame.POLICY})
    return frozenset({Blame.PROJECT}) if Way.PROJECT in ways else frozenset()


def blamed_for(
    changed: Iterable[str],
    before: Mapping[str, int | None],
    lost: AbstractSet[str],
    volumes: VolumePermit,
    share: float,
) -> frozenset[Blame]:
    """Return what a move away from the clusters `lost` counts for, nothing if the guard does not judge it.

    `changed` are the triggers of its decision. With a share of 1 the guard judges only moves that leave volumes.
    """
    blamed = blame(frozenset(changed), before) if lost else frozenset()
    if volumes.waits:
        return _blame_of(volumes) or blamed or frozenset({Blame.CLUSTERS})
    return blamed if share < 1 else frozenset()


def causes_of_move(blamed: AbstractSet[Blame], mover: Mover, lost: AbstractSet[str]) -> Iterator[Cause]:
    """Yield the causes in the order in which one of them is named; `lost` are the clusters that the object leaves."""
    if Blame.PROJECT in blamed:
        yield Cause("Project", "", mover.project)
    if Blame.POLICY in blamed:
        kind = "PropagationPolicy" if mover.policy_namespace else "ClusterPropagationPolicy"
        yield Cause(kind, mover.policy_namespace, mover.policy)
        if mover.namespace:
            # Many policies with a few objects each: one release of a tenant may change all of them.
            yield Cause("Namespace", "", mover.namespace)
    if Blame.PROFILE in blamed:
        yield Cause("SchedulingProfile", "", mover.profile or "default")
    if Blame.TYPE in blamed:
        yield Cause("FederatedTypeConfig", "", mover.type_name)
    if Blame.CLUSTERS in blamed:
        for cluster in sorted(lost):
            yield Cause("FederatedCluster", "", cluster)
