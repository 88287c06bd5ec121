"""The rule about volumes: nothing starts on an empty volume without the word of somebody who may say it. Pure.

Volumes do not move between clusters by themselves. A replica that leaves a cluster leaves its volume there, and the
one that replaces it elsewhere starts with an empty one. `permit_volumes` says of each cluster that a decision takes
replicas from whether they may go, and by which word, or must wait for an approval, and by which way they would leave.
Every way out of a cluster passes it: the schedule controller asks it about each decision, plans about each move that
they foresee, and `fedctl doctor --data` about each way that is possible.

Reference: docs/reference/guard.md.
Decision: docs/decisions/0205-one-permit-for-volumes.md
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

_NOTHING: Mapping[str, "Way"] = MappingProxyType({})


class Way(StrEnum):
    """How replicas leave a cluster."""

    PROJECT = "its project does not have the cluster any more"
    MEMBERSHIP = "the cluster leaves the federation, or has left it"
    LOSS = "the cluster is lost or drained"
    APPLICATION = "it is unhealthy there"
    POLICY = "another policy, or another content of it"
    PROFILE = "another SchedulingProfile"
    LABELS = "labels of clusters"
    TAINTS = "taints of clusters"
    CLUSTERS = "other clusters or kinds that they serve"
    MIGRATION = "its pods do not run there"
    PRIORITY = "it gives way to a workload with a higher priority"
    PARTNERS = "workloads that it must be together with"
    SPREAD = "a WorkloadSpread"
    SIZE = "its replicas or requests"
    START = "it has no place, and there are volumes of an earlier object of its name"
    UNKNOWN = "another input of the decision"


class Word(StrEnum):
    """Whose word lets replicas leave their volumes."""

    SCALING = "its user scaled it"
    ANNOTATION = "its user changed its scheduling annotations"
    FAILOVER = "its policy says failover.mode: Auto"
    RETURN = "it returns to its volumes in a cluster that it left when that was lost"
    APPROVAL = "an approved PlacementHold"


TRIGGERS: Mapping[str, Way] = {
    "policyContentHash": Way.POLICY,
    "policyName": Way.POLICY,
    "profileHash": Way.PROFILE,
    "clusterLabelsHashes": Way.LABELS,
    "clusterTaintsHashes": Way.TAINTS,
    "tolerationsEnded": Way.TAINTS,
    "clusters": Way.CLUSTERS,
    "clusterAPIResourceTypesHashes": Way.CLUSTERS,
    "clustersLeft": Way.PROJECT,
    "clustersAvoided": Way.APPLICATION,
    "autoMigrationInfo": Way.MIGRATION,
    "controlAnnotationsHash": Way.PRIORITY,
    "partnersAway": Way.PARTNERS,
    "workloadSpreadHash": Way.SPREAD,
    "replicaCount": Way.SIZE,
    "resourceRequest": Way.SIZE,
}
"""The way by the scheduling trigger that changed, the most telling first."""


@dataclass(frozen=True, slots=True)
class Departure:
    """The facts about one decision on an object with volumes.

    `before` and `after` are placements: cluster → replicas, None for those of the template; `wanted` are these.
    """

    volumes: str
    """A description of the volumes that do not move, "" for none."""
    before: Mapping[str, int | None]
    after: Mapping[str, int | None]
    wanted: int | None = None
    changed: frozenset[str] = frozenset()
    """The scheduling triggers that changed since the last decision."""
    outside: AbstractSet[str] = frozenset()
    """Clusters that left the object's project."""
    departed: AbstractSet[str] = frozenset()
    """Clusters that leave the federation, or are no members."""
    evicting: AbstractSet[str] = frozenset()
    """Clusters that are lost or drained: failover decides what leaves them."""
    copied: AbstractSet[str] = frozenset()
    """Drained clusters whose volumes can be copied, as the workload's user wants: an approval lets it leave."""
    unhealthy: AbstractSet[str] = frozenset()
    """Clusters in which the workload is unhealthy, so that its policy takes it away."""
    fails_over: bool = False
    """Whether the policy says `failover.mode: Auto`."""
    homes: AbstractSet[str] = frozenset()
    """Clusters that replicas return to, because they left them when these were lost."""
    held: AbstractSet[str] = frozenset()
    """Clusters of the move that is held already."""
    approved: AbstractSet[str] = frozenset()
    """Clusters of a held move that was approved."""
    is_start: bool = False
    """Whether the object has no place. Then `before` says where volumes of its name are: the number of replicas that
    find theirs, None for any number."""
    clashing: AbstractSet[str] = frozenset()
    """Clusters of a start whose volumes a share may not find: `EarlierVolumes.clashing`."""


@dataclass(frozen=True, slots=True)
class VolumePermit:
    """The answer by cluster: what waits for an approval, what stays because of failover's rules, what may go."""

    volumes: str = ""
    waits: Mapping[str, Way] = field(default_factory=lambda: _NOTHING)
    stays: AbstractSet[str] = frozenset()
    goes: Mapping[str, Word] = field(default_factory=dict)

    @property
    def approved(self) -> frozenset[str]:
        """The clusters that the object may leave because somebody approved it."""
        return frozenset(name for name, word in self.goes.items() if word is Word.APPROVAL)


FREE = VolumePermit()
"""The answer about an object that leaves no volume."""


def permit_volumes(facts: Departure) -> VolumePermit:
    """Return which volumes the decision would leave behind, and on whose word."""
    if facts.is_start:
        return _permit_start(facts)
    losing = _losing(facts) if facts.volumes else ()
    if not losing:
        return FREE
    goes: dict[str, Word] = {}
    waits: dict[str, Way] = {}
    stays: set[str] = set()
    for name in losing:
        word = _word(facts, name)
        if word is not None:
            goes[name] = word
        elif _is_kept_by_failover(facts, name):
            stays.add(name)
        else:
            waits[name] = way_out(facts, name)
    return VolumePermit(facts.volumes, waits, frozenset(stays), goes)


def _permit_start(facts: Departure) -> VolumePermit:
    """Return which volumes stay unused while the object starts with empty ones elsewhere.

    Replicas that have no place yet would get one elsewhere later, so they count as well. What is said in advance, such
    as `failover.mode: Auto`, is about an object that runs. Only an approval counts here.
    """
    found = {name: 0 if name in facts.clashing else count for name, count in facts.before.items()}
    if not _is_short(facts) and not any(_starts_empty(name, count, found) for name, count in facts.after.items()):
        return FREE
    unused = [name for name in sorted(facts.before) if _is_unused(facts, name)]
    return VolumePermit(
        facts.volumes,
        {name: Way.START for name in unused if name not in facts.approved},
        goes={name: Word.APPROVAL for name in unused if name in facts.approved},
    )


def _is_short(facts: Departure) -> bool:
    """Return whether the decision has no place for some replicas."""
    counts = facts.after.values()
    return None not in counts and sum(count or 0 for count in counts) < (facts.wanted or 0)


def _starts_empty(cluster: str, count: int | None, found: Mapping[str, int | None]) -> bool:
    """Return whether a replica in the cluster would start with empty volumes; a copy uses what its cluster has."""
    if cluster not in found:
        return count != 0
    usable = found[cluster]
    return count is not None and usable is not None and count > usable


def _is_unused(facts: Departure, cluster: str) -> bool:
    """Return whether volumes in the cluster would have no replica."""
    found, count = facts.before[cluster], facts.after.get(cluster, 0)
    if count is None:
        return False
    return count == 0 or (found is not None and (cluster in facts.clashing or count < found))


def way_out(facts: Departure, cluster: str) -> Way:
    """Return how replicas leave the cluster."""
    if cluster in facts.outside:
        return Way.PROJECT
    if cluster in facts.departed:
        return Way.MEMBERSHIP
    if cluster in facts.unhealthy:
        return Way.APPLICATION
    if cluster in facts.evicting and not facts.changed & _OF_WISHES:
        return Way.LOSS
    return next((way for trigger, way in TRIGGERS.items() if trigger in facts.changed), Way.UNKNOWN)


_OF_WISHES = frozenset(("policyContentHash", "policyName", "profileHash"))
OF_TAINTS = frozenset(("clusterTaintsHashes", "tolerationsEnded"))
"""Triggers that a lost or drained cluster changes."""


def _is_kept_by_failover(facts: Departure, cluster: str) -> bool:
    """Return whether only the cluster's taints take replicas away from it, so that failover keeps them without a hold.

    A move that was held before the cluster was tainted stays held: its cause is still there.
    """
    is_held = cluster in facts.held and bool(facts.changed - OF_TAINTS)
    is_free = cluster in facts.outside or cluster in facts.departed or cluster in facts.copied
    return cluster in facts.evicting and not (is_free or is_held)


def _word(facts: Departure, cluster: str) -> Word | None:
    """Return the word by which replicas may leave the cluster, None without any."""
    if cluster in facts.approved:
        return Word.APPROVAL
    if _is_annotated(facts.changed):
        return Word.ANNOTATION
    if facts.homes and cluster not in facts.outside and _gaining(facts) <= facts.homes:
        return Word.RETURN
    # Of a cluster that leaves the federation, failover awaits no grace time.
    is_failing = cluster in facts.evicting or cluster in facts.unhealthy
    if facts.fails_over and is_failing and cluster not in facts.departed:
        return Word.FAILOVER
    return Word.SCALING if _is_scaled_down(facts) else None


def _is_annotated(changed: frozenset[str]) -> bool:
    """Return whether the user changed an annotation that says where the object is placed.

    Annotations that the control plane writes are no word of the user.
    """
    return "schedulingAnnotationsHash" in changed and "controlAnnotationsHash" not in changed


def _is_scaled_down(facts: Departure) -> bool:
    """Return whether the losses are not more than the replicas that the user does not want any more."""
    before = facts.before.values()
    if facts.wanted is None or None in before or None in facts.after.values():
        return False
    surplus = max(0, sum(count or 0 for count in before) - facts.wanted)
    return sum(max(0, _loss(facts, name)) for name in facts.before) <= surplus


def _gaining(facts: Departure) -> frozenset[str]:
    """Return the clusters that get further replicas."""
    return frozenset(
        name
        for name, count in facts.after.items()
        if name not in facts.before or (count or 0) > (facts.before[name] or 0)
    )


def _losing(facts: Departure) -> list[str]:
    """Return the clusters from which replicas leave, with their volumes."""
    return sorted(name for name in facts.before if _loss(facts, name) > 0)


def _loss(facts: Departure, name: str) -> int:
    """Return how many replicas leave the cluster; a copy counts as one replica at least."""
    copies = max(1, facts.wanted or 1)
    old, new = facts.before[name], facts.after.get(name, 0)
    return (copies if old is None else old) - (copies if new is None else new)
