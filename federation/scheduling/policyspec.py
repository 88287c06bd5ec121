"""Compiled propagation policies.

A policy is compiled when it changes, not per object: a thousand Deployments under one policy share its tolerations,
terms and hashes. `policymatching.py` finds the policy of an object, `unit.py` combines the two.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import orjson
from msgspec import structs

from federation.api import names
from federation.api.selectors import compile_cluster_terms
from federation.apimachinery.hashing import fnv1_32
from federation.apimachinery.resources import GroupKind, group_kind_of
from federation.apimachinery.selectors import Selector, SelectorError, compile_label_selector
from federation.planning.failover.application import compile_application, compile_state
from federation.planning.failover.tolerance import FailoverMode, FailoverRules, Returning
from federation.planning.overrides.budget import rollout_problem
from federation.planning.placement.groupcounts import GroupLimit
from federation.planning.placement.topologydomains import SpreadConstraint
from federation.planning.waves.policychanges import FIELD as CHANGE_FIELD
from federation.planning.waves.policychanges import Reach, identity_of, labels_of, versions_of
from federation.planning.waves.waverules import to_annotation
from federation.scheduling.affinity.rules import WorkloadRule, compile_workload_rules
from federation.scheduling.framework.groupcounts import GROUP_LIMITS
from federation.scheduling.framework.policygroups import GROUPS, GroupUse, OrderedGroup
from federation.scheduling.framework.topology import TOPOLOGY_SPREAD
from federation.scheduling.framework.types import (
    NO_PREFERENCES,
    ClusterAffinity,
    Preferences,
    ReplicasStrategy,
    SchedulingMode,
    Toleration,
)

CHANGE_LENGTH_MAX = 200
"""Characters of the name of a change; the rest of a longer one is left out."""
_NOT_CONTENT = frozenset(
    (
        *("autoMigration", CHANGE_FIELD, "preemption", "priority", "resourceSelectors", "rollout"),
        *("schedulingPriority", "suspension"),
    )
)
"""Fields that do not affect placements, and so are not part of the content hash."""


class PolicyRef(NamedTuple):
    """A reference to a policy; `namespace` is "" for a ClusterPropagationPolicy."""

    namespace: str
    name: str

    def __str__(self) -> str:
        kind = "PropagationPolicy" if self.namespace else "ClusterPropagationPolicy"
        return f"{kind} {self.namespace}/{self.name}" if self.namespace else f"{kind} {self.name}"


class RescheduleWhen(NamedTuple):
    """The changes after which objects are rescheduled."""

    policy_content_changed: bool = True
    cluster_joined: bool = False
    cluster_labels_changed: bool = False
    cluster_api_resources_changed: bool = False


class Rescheduling(NamedTuple):
    """`spec.reschedulePolicy` and stickiness: what may move placed objects. `when` is None without such rules."""

    is_sticky: bool = False
    avoid_disruption: bool = True
    is_disabled: bool = False
    when: RescheduleWhen | None = None


class FailbackRules(NamedTuple):
    """How replicas return to a cluster that recovered capacity; an extension of this project."""

    stable_for: str = "5m"
    batch_size: int | str = "25%"

    def batch_of(self, replicas: int) -> int:
        """Return the batch size in replicas; percentages are rounded up."""
        if isinstance(self.batch_size, int):
            return max(0, self.batch_size)
        return -(-int(self.batch_size.removesuffix("%")) * replicas // 100)


@dataclass(frozen=True, slots=True)
class ResourceSelector:
    """Selects objects by kind in any version, name and labels; "" and None match any."""

    kind: GroupKind
    name: str = ""
    labels: Selector | None = None

    def matches(self, template: Mapping[str, Any]) -> bool:
        """Return whether the source object is selected."""
        if template.get("kind") != self.kind.kind or group_kind_of(template) != self.kind:
            return False
        metadata = template.get("metadata") or {}
        if self.name and metadata.get("name") != self.name:
            return False
        return self.labels is None or self.labels.matches(metadata.get("labels"))


PREFERENCES = {
    "minReplicas": "min_replicas",
    "maxReplicas": "max_replicas",
    "weight": "weights",
    "priority": "priorities",
}
"""Fields of a placement entry and their maps in `Preferences`."""
_ABSENT = {"minReplicas": 0}
"""Defaults by which a later entry for a cluster resets an earlier one."""


class MigrationRules(NamedTuple):
    """`spec.autoMigration`."""

    is_on: bool = False
    keep_unschedulable: bool = False
    threshold: str = "1m"
    """How long a pod is unschedulable before its replica leaves."""
    failback: FailbackRules = FailbackRules()


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """A compiled PropagationPolicy or ClusterPropagationPolicy. `shapes` are those of the units under it."""

    ref: PolicyRef
    mode: SchedulingMode
    strategy: ReplicasStrategy
    rescheduling: Rescheduling
    affinity: ClusterAffinity
    tolerations: tuple[Toleration, ...]
    max_clusters: int | None
    shapes: Mapping[str, Any]
    workload_rules: tuple[WorkloadRule, ...]
    preferences: Preferences
    profile: str
    is_followed: bool
    migration: MigrationRules
    failover: FailoverRules
    selectors: tuple[ResourceSelector, ...]
    content_hash: str
    priority: int = 0
    """The scheduling priority of its objects; higher first."""
    precedence: int = 0
    """Its priority among the policies that select an object; higher first."""
    preempts: bool = True
    """Whether it takes objects from the policy that their last decision followed."""
    rollout: str | None = None
    """The annotation with its rollout rules, None without any."""
    suspended: str = ""
    """Why its objects are not scheduled, "" if they are."""
    gang: str = ""
    """Always, Never, or "" where the kind of an object says whether its pods start together."""
    change: str = ""
    """The name of the change that wrote it last, "" without one."""
    earlier: "Policy | None" = None
    """The version that objects have which no wave of a change has reached."""
    reach: Reach | None = None
    """The objects that have this version, None for all."""
    version: str = ""
    """The name of the version for people, such as "change 3"; "" for the only one."""

    @property
    def versions(self) -> "tuple[Policy, ...]":
        """The policy itself, and its earlier version."""
        return (self,) if self.earlier is None else (self, self.earlier)

    def version_of(self, federated: Mapping[str, Any], *, is_labelled: bool) -> "Policy":
        """Return the version that an object has. One that only this version selects gets it with the last wave."""
        if self.earlier is None or self.reach is None or self.reach.is_wide:
            return self
        if not is_labelled and not self.earlier.selects(federated["spec"]["template"]):
            return self.earlier
        created = str(federated["metadata"].get("creationTimestamp") or "")
        is_reached = self.reach.includes(identity_of(federated), labels_of(federated), created)
        return self if is_reached else self.earlier

    def selects(self, template: Mapping[str, Any]) -> bool:
        """Return whether a resource selector of the policy matches a source object."""
        return any(selector.matches(template) for selector in self.selectors)

    @property
    def follows_content(self) -> bool:
        """Return whether placed objects are rescheduled when the policy or its profile changes."""
        when = self.rescheduling.when
        return not self.rescheduling.is_disabled and when is not None and when.policy_content_changed

    @property
    def follows_joins(self) -> bool:
        """Return whether placed objects are rescheduled when a cluster joins."""
        when = self.rescheduling.when
        return when is not None and when.cluster_joined


def compile_policy(source: Mapping[str, Any]) -> Policy:
    """Return the compiled form of a policy object; SelectorError when a resource selector is malformed."""
    found = versions_of(source)
    if found.earlier is None:
        return _compile(source)
    earlier = replace(_compile(found.earlier), version=f"before change {found.revision}")
    return replace(_compile(source), earlier=earlier, reach=found.reach, version=f"change {found.revision}")


def _compile(source: Mapping[str, Any]) -> Policy:
    metadata, spec = source.get("metadata") or {}, source.get("spec") or {}
    terms = spec.get("clusterAffinity")
    ref = PolicyRef(str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))
    return Policy(
        ref=ref,
        mode=SchedulingMode(spec.get("schedulingMode") or SchedulingMode.DUPLICATE),
        strategy=ReplicasStrategy(spec.get("replicasStrategy") or ReplicasStrategy.SPREAD),
        rescheduling=_rescheduling(spec),
        affinity=ClusterAffinity(
            tuple(sorted((spec.get("clusterSelector") or {}).items())), compile_cluster_terms(terms) if terms else None
        ),
        tolerations=to_tolerations(spec.get("tolerations") or ()),
        max_clusters=spec.get("maxClusters"),
        shapes=_shapes(spec),
        workload_rules=compile_workload_rules(spec, is_cluster_wide=not ref.namespace),
        preferences=to_preferences(spec["placement"]) if spec.get("placement") else NO_PREFERENCES,
        profile=str(spec.get("schedulingProfile") or ""),
        is_followed=not spec.get("disableFollowerScheduling"),
        migration=_migration(spec.get("autoMigration")),
        failover=_failover(spec.get("failover") or {}),
        selectors=compile_resource_selectors(source),
        content_hash=hash_of({key: value for key, value in spec.items() if key not in _NOT_CONTENT}),
        priority=int(spec.get("schedulingPriority") or 0),
        precedence=int(spec.get("priority") or 0),
        preempts=spec.get("preemption") != "Never",
        rollout=_rollout(ref, spec),
        suspended=_suspended(ref, spec.get("suspension") or {}),
        gang=str(spec.get("gang") or ""),
        change=str((metadata.get("annotations") or {}).get(names.CHANGE) or "")[:CHANGE_LENGTH_MAX],
    )


def _shapes(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the shapes that a policy gives to its units."""
    found = {
        TOPOLOGY_SPREAD.name: to_constraints(spec.get("topologySpread") or ()),
        GROUP_LIMITS.name: to_group_limits(spec.get("spreadConstraints") or ()),
        GROUPS.name: to_groups(spec.get("clusterGroups") or ()),
    }
    return {name: shape for name, shape in found.items() if shape}


def _rescheduling(spec: Mapping[str, Any]) -> Rescheduling:
    said = spec.get("reschedulePolicy")
    is_disabled = bool((said or {}).get("disableRescheduling"))
    return Rescheduling(
        bool(spec.get("stickyCluster") or is_disabled),
        _avoids_disruption(said),
        is_disabled,
        _reschedule_when((said or {}).get("rescheduleWhen")),
    )


def _migration(said: Mapping[str, Any] | None) -> MigrationRules:
    rules = said or {}
    return MigrationRules(
        said is not None,
        bool(rules.get("keepUnschedulableReplicas")),
        str((rules.get("when") or {}).get("podUnschedulableFor") or "1m"),
        _failback(rules.get("failback") or {}),
    )


def _suspended(ref: PolicyRef, suspension: Mapping[str, Any]) -> str:
    if not suspension.get("scheduling"):
        return ""
    return f"{ref} suspends scheduling: {suspension.get('reason') or 'without a reason'}"


def compile_valid(sources: Iterable[Mapping[str, Any]]) -> Iterator[Policy]:
    """Yield the compiled policies, without policies that cannot be compiled: the schedule controller reports them."""
    for source in sources:
        with contextlib.suppress(SelectorError, ValueError, TypeError):
            yield compile_policy(source)


def compile_resource_selectors(source: Mapping[str, Any]) -> tuple[ResourceSelector, ...]:
    """Return the resource selectors of a policy object; SelectorError when one is malformed."""
    entries = (source.get("spec") or {}).get("resourceSelectors") or ()
    return tuple(_resource_selector(entry) for entry in entries)


def hash_of(value: Any) -> str:
    """Return the decimal hash of a JSON value, independent of the order of its keys."""
    return str(fnv1_32(orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()))


def to_tolerations(entries: Sequence[Mapping[str, Any]]) -> tuple[Toleration, ...]:
    """Return the tolerations of a list."""
    return tuple(
        Toleration(
            str(entry.get("key") or ""),
            str(entry.get("operator") or ""),
            str(entry.get("value") or ""),
            str(entry.get("effect") or ""),
            entry.get("tolerationSeconds"),
        )
        for entry in entries
    )


def to_constraints(entries: Sequence[Mapping[str, Any]]) -> tuple[SpreadConstraint, ...]:
    """Return the topology constraints of a policy, outermost first."""
    return tuple(
        SpreadConstraint(
            str(entry["topologyKey"]),
            int(entry["maxSkew"]),
            int(entry.get("minDomains") or 1),
            entry["whenUnsatisfiable"] == "DoNotSchedule",
        )
        for entry in entries
    )


def to_group_limits(entries: Sequence[Mapping[str, Any]]) -> tuple[GroupLimit, ...]:
    """Return the limits of a policy for numbers of groups of clusters."""
    return tuple(
        GroupLimit(str(entry.get("topologyKey") or ""), int(entry.get("minGroups") or 1), entry.get("maxGroups"))
        for entry in entries
    )


def to_groups(entries: Sequence[Mapping[str, Any]]) -> tuple[OrderedGroup, ...]:
    """Return the ordered groups of clusters of a policy."""
    return tuple(
        OrderedGroup(
            str(entry.get("name") or ""),
            GroupUse(entry.get("when") or GroupUse.FALLBACK),
            entry.get("returnPolicy") == "WhenRoom",
            frozenset(map(str, entry.get("clusters") or ())),
            tuple(sorted((entry.get("clusterSelector") or {}).items())),
            compile_cluster_terms(terms) if (terms := entry.get("clusterAffinity")) else None,
        )
        for entry in entries
    )


def to_preferences(placement: Sequence[Mapping[str, Any]], otherwise: Preferences = NO_PREFERENCES) -> Preferences:
    """Return the maps of a placement list; for a cluster that is listed twice, the last value counts.

    A map with a negative number in it is taken from `otherwise`.
    """
    listed = [str(entry.get("cluster") or "") for entry in placement]
    maps: dict[str, Mapping[str, int]] = {}
    for field, name in PREFERENCES.items():
        found = {
            cluster: value
            for cluster, entry in zip(listed, placement, strict=True)
            if isinstance(value := (entry.get("preferences") or {}).get(field, _ABSENT.get(field)), int)
        }
        is_negative = any(value < 0 for value in found.values())
        said = {cluster: value for cluster, value in found.items() if value != _ABSENT.get(field)}
        maps[name] = getattr(otherwise, name) if is_negative else said
    return Preferences(frozenset(listed), **maps)


def _avoids_disruption(reschedule: Mapping[str, Any] | None) -> bool:
    """Return `avoidDisruption`, true unless `replicaRescheduling` is null or has it false."""
    replica = (reschedule or {}).get("replicaRescheduling", {})
    return replica is not None and bool(replica.get("avoidDisruption", True))


def _reschedule_when(when: Mapping[str, Any] | None) -> RescheduleWhen | None:
    if when is None:
        return None
    return RescheduleWhen(
        bool(when.get("policyContentChanged", True)),
        bool(when.get("clusterJoined", False)),
        bool(when.get("clusterLabelsChanged", False)),
        bool(when.get("clusterAPIResourcesChanged", False)),
    )


def _failback(rules: Mapping[str, Any]) -> FailbackRules:
    size = rules.get("batchSize")
    if size is not None and not isinstance(size, int) and not re.fullmatch(r"[0-9]{1,3}%", str(size)):
        raise ValueError(f"spec.autoMigration.failback.batchSize: {size!r} is neither a number nor a percentage")
    return FailbackRules(str(rules.get("stableFor") or "5m"), "25%" if size is None else size)


def _rollout(ref: PolicyRef, spec: Mapping[str, Any]) -> str | None:
    annotation = to_annotation(str(ref), spec.get("rollout"))
    if problem := rollout_problem(annotation):
        raise ValueError(f"spec.rollout: {problem}")
    return annotation


def _failover(rules: Mapping[str, Any]) -> FailoverRules:
    mode, grace_s, returning = rules.get("mode"), rules.get("graceSeconds"), rules.get("returns")
    application = compile_application(rules.get("application"))
    state = compile_state(rules.get("statePreservation")) or (application.state if application is not None else ())
    return FailoverRules(
        FailoverMode(mode) if mode else None,
        None if grace_s is None else float(grace_s),
        Returning(returning) if returning else None,
        application if application is None else structs.replace(application, state=application.state or state),
        state,
    )


def _resource_selector(entry: Mapping[str, Any]) -> ResourceSelector:
    labels = entry.get("labelSelector")
    return ResourceSelector(
        group_kind_of(entry),
        str(entry.get("name") or ""),
        None if labels is None else compile_label_selector(labels),
    )
