"""Scheduling triggers: the inputs of an object's last decision, and whether a change of them reschedules the object.

Each decision stores its triggers in an annotation of the object. The next attempt compares them with the current ones:
equal texts mean nothing to do (the common case, one string comparison); otherwise the policy's `reschedulePolicy`
decides which changes count, and the others become deferred reasons. Texts have sorted keys and clusters. Pure.

For `clusterJoined` a cluster has joined when it is ready for the first time since the object's last decision: before
that, no decision could use it and its API types are unknown.

Reference: docs/reference/scheduling.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from federation.api import names
from federation.apimachinery.jsonobject import parse_object
from federation.planning.failover.application import avoided_clusters
from federation.scheduling.clustertriggers import (
    API_TYPES,
    CLUSTERS,
    KINDS,
    LABELS,
    TAINTS,
    ClusterTriggers,
    ClusterTriggerSource,
    is_readable,
)
from federation.scheduling.framework.types import Resources
from federation.scheduling.names import REBALANCED, UNSCHEDULABLE_SUBSETS
from federation.scheduling.policyspec import Policy, RescheduleWhen, hash_of
from federation.scheduling.snapshot import Snapshot

HASHED_ANNOTATIONS = (
    names.AFFINITY,
    names.APPLIED_MIGRATION_CONFIGURATION,
    names.CLUSTER_SELECTOR,
    names.DEVICE_CLAIMS,
    names.DRY_RUN,
    names.FOLLOWS_OBJECT,
    names.GANG,
    names.GIVES_WAY,
    names.MAX_CLUSTERS,
    names.PLACEMENTS,
    names.POD_GROUP,
    names.REBALANCE,
    names.SCHEDULING_MODE,
    names.STICKY_CLUSTER,
    names.TOLERATIONS,
    UNSCHEDULABLE_SUBSETS,
)
"""Annotations on a federated object that decisions depend on."""
_OF_CONTROL = (names.DEVICE_CLAIMS, names.GIVES_WAY, names.POD_GROUP, UNSCHEDULABLE_SUBSETS)
"""Those of them that no user writes, so that a change of them is not the user's word."""
_ANNOTATIONS = "schedulingAnnotationsHash"
_CONTROL = "controlAnnotationsHash"
"""Counts only beside a change of all annotations: it says that the control plane made one."""
_SPREAD = "workloadSpreadHash"
_ENDED = "tolerationsEnded"
"""Clusters whose taints the object tolerates no longer, among those that it is in or has left for that reason."""
_AVOIDED = "clustersAvoided"
"""Clusters that the object leaves or has left because it was unhealthy there."""
_LEFT = "clustersLeft"
"""Clusters of the object that have left its project. That they are fewer is no change: it has left them, too."""
_PARTNERS = "partnersAway"
"""Clusters of the object that the workloads which it must be together with have left. An object that has left them,
too, has none: that they are fewer is no change."""
_STABLE = frozenset(("policyName", "replicaCount", "resourceRequest", _ANNOTATIONS, _AVOIDED, _LEFT, _SPREAD))
_POLICY = "policyContentHash"
_PLUGIN_FIELDS = "pluginFieldsHash"
"""Counts only when both decisions have it; a plugin that starts or stops to declare fields changes the profile."""
IGNORED_PLUGINS = "ignoredPlugins"
"""The change when a plugin that the last decision ignored may be available again; not part of the text."""
_OF_OBJECT = (*_STABLE, _CONTROL, "autoMigrationInfo", _PLUGIN_FIELDS, _POLICY, "profileHash", _ENDED, _PARTNERS)
_CONTENT = frozenset((_POLICY, "profileHash", IGNORED_PLUGINS))
_ASKED = frozenset((_POLICY, "policyName", "profileHash", _ANNOTATIONS))
_TAINTS = frozenset((TAINTS, _ENDED))
_NO_ANNOTATIONS_HASH = hash_of({})
_BEGINNING = 40
"""Characters that a part of triggers is searched for by."""


@dataclass(frozen=True, slots=True)
class TriggerComparison:
    """Whether to schedule now, or the deferred changes ("" for none).

    `changed` names the triggers that differ from the last decision's; () without one. `adopted` is the text of
    KubeAdmiral's triggers in our form, to be written if its decision stays in force.
    """

    is_due: bool
    deferred_reasons: str = ""
    changed: tuple[str, ...] = ()
    adopted: str = ""


@dataclass(frozen=True, slots=True)
class ObjectTriggers:
    """The parts of the object and its policy that a decision depends on."""

    annotations: Mapping[str, str]
    replicas: int | None
    request: Resources
    policy: Policy | None
    profile_hash: str = ""
    plugin_fields_hash: str = ""
    """Hash of the labels and annotations that plugins declare, "" when none does."""
    spread_hash: str = ""
    """Hash of the WorkloadSpread that divides its replicas and of the clusters of its subsets, "" without one."""
    ended_tolerations: Sequence[str] = ()
    """Clusters, sorted, whose taints it tolerates no longer, among those that it is in or has left for that reason."""
    partners_away: Sequence[str] = ()
    """Clusters, sorted, that it is in and that its required partners have left."""


@dataclass(frozen=True, slots=True)
class Triggers:
    """The current inputs of a decision: the annotation's value, a JSON object with sorted keys, and its parts."""

    text: str
    of_object: Mapping[str, Any]
    clusters: ClusterTriggers


def asks_for_rebalance(annotations: Mapping[str, str]) -> bool:
    """Return whether a user asked for a division without regard to where the replicas are, and none was made yet."""
    return annotations.get(names.REBALANCE) not in (None, annotations.get(REBALANCED))


def asks_for_other_clusters(changed: Iterable[str]) -> bool:
    """Return whether the policy, its profile, or the user's annotations changed."""
    return not _ASKED.isdisjoint(changed)


def may_concern_finished(changed: Iterable[str]) -> bool:
    """Return whether an object that has finished in all of its clusters is scheduled after these changes.

    Elsewhere it would run again, so only a user's wish moves it; what clusters with taints keep, failover decides.
    """
    return asks_for_other_clusters(changed) or not _TAINTS.isdisjoint(changed)


def has_joined(changed: Iterable[str]) -> bool:
    """Return whether the set of clusters changed."""
    return CLUSTERS in changed


class TriggerSource:
    """Creates triggers. `as_kubeadmiral`: in its form, in which clusters count before they are ready."""

    def __init__(self, *, as_kubeadmiral: bool = False) -> None:
        self._clusters = ClusterTriggerSource(as_kubeadmiral=as_kubeadmiral)

    def triggers(self, triggers: ObjectTriggers, snapshot: Snapshot) -> Triggers:
        """Return the triggers of an object."""
        policy, clusters = triggers.policy, self._clusters.state(snapshot)
        before: dict[str, Any] = {}
        if policy is not None and policy.migration.is_on:
            before["autoMigrationInfo"] = triggers.annotations.get(names.AUTO_MIGRATION_INFO, "")
        after: dict[str, Any] = {_PLUGIN_FIELDS: triggers.plugin_fields_hash} if triggers.plugin_fields_hash else {}
        after |= {
            _POLICY: policy.content_hash if policy else "",
            "policyName": policy.ref.name if policy else "",
        }
        if triggers.profile_hash:
            after["profileHash"] = triggers.profile_hash
        after["replicaCount"] = triggers.replicas or 0
        after["resourceRequest"] = {name: triggers.request[name] for name in sorted(triggers.request)}
        after[_ANNOTATIONS] = _annotations_hash(triggers.annotations)
        if written := {key: triggers.annotations[key] for key in _OF_CONTROL if key in triggers.annotations}:
            after[_CONTROL] = hash_of(written)
        if triggers.ended_tolerations:
            after[_ENDED] = list(triggers.ended_tolerations)
        if avoided := avoided_clusters({"metadata": {"annotations": triggers.annotations}}):
            after[_AVOIDED] = sorted(avoided)
        if snapshot.left:
            after[_LEFT] = list(snapshot.left)
        if triggers.partners_away:
            after[_PARTNERS] = list(triggers.partners_away)
        if triggers.spread_hash:
            after[_SPREAD] = triggers.spread_hash
        head = orjson.dumps(before).decode()[:-1]
        text = f"{head}{',' if before else ''}{clusters.text},{orjson.dumps(after).decode()[1:]}"
        return Triggers(text, before | after, clusters)


def compare_triggers(
    old_text: str | None, now: Triggers, policy: Policy | None, *, is_plugin_back: bool = False
) -> TriggerComparison:
    """Compare the triggers of the last decision with the current ones.

    `is_plugin_back`: a plugin that the last decision ignored may be available; that counts as a changed profile.
    """
    if old_text == now.text and not is_plugin_back:
        return TriggerComparison(is_due=False)
    # Usually no cluster has changed. Then only the rest is parsed, a small part of the text with many clusters.
    rest = _without(old_text or "", f"{now.clusters.text},")
    old, new = _parse(rest), now.of_object
    if old is None or policy is None:
        return TriggerComparison(is_due=True)
    if _is_of_kubeadmiral(old):
        adopted = _adopted(old, now)
        return replace(compare_triggers(adopted, now, policy, is_plugin_back=is_plugin_back), adopted=adopted)
    differing = now.clusters.changes_since(old) if rest == old_text else set()
    differing.update(field for field in _OF_OBJECT if old.get(field) != new.get(field))
    if differing == {CLUSTERS} and not policy.follows_joins and now.clusters.has_only_returned(old):
        # The return of a cluster brings only objects here that have to do with it. For any other it would be recorded
        # or not by chance, and for all of them after a restart.
        differing.clear()
    if not set(new.get(_PARTNERS) or ()) - set(old.get(_PARTNERS) or ()):
        differing.discard(_PARTNERS)
    if _ANNOTATIONS not in differing:
        differing.discard(_CONTROL)
    if set(new.get(_LEFT) or ()) - set(old.get(_LEFT) or ()):
        differing.difference_update(KINDS)  # of the clusters that are missing now
    else:
        differing.discard(_LEFT)
    changed = (*sorted(differing), *([IGNORED_PLUGINS] if is_plugin_back else []))
    if not changed:
        return TriggerComparison(is_due=False)
    has_other_fields = _PLUGIN_FIELDS in changed and bool(old.get(_PLUGIN_FIELDS)) and bool(new.get(_PLUGIN_FIELDS))
    if (
        not _STABLE.isdisjoint(changed)
        or has_other_fields
        or (policy.migration.is_on and "autoMigrationInfo" in changed)
    ):
        return TriggerComparison(is_due=True, changed=changed)
    if policy.rescheduling.is_disabled:
        return TriggerComparison(is_due=False, deferred_reasons="disableRescheduling:true")
    if policy.rescheduling.when is None:
        return TriggerComparison(is_due=False, deferred_reasons="rescheduleWhen:nil")
    verdict = _apply_reschedule_rules(frozenset(changed), policy.rescheduling.when)
    return TriggerComparison(verdict.is_due, verdict.deferred_reasons, changed)


def clusters_left(text: str | None) -> frozenset[str]:
    """Return the clusters whose taints the object tolerated no longer at its last decision, from its triggers."""
    if text is None or f'"{_ENDED}"' not in text:
        return frozenset()
    listed = (parse_object(text) or {}).get(_ENDED)
    return frozenset(map(str, listed)) if isinstance(listed, list) else frozenset()


def _without(text: str, part: str) -> str:
    """Return the text without the part, found by its beginning: a search for kilobytes is slow to prepare."""
    at = text.find(part[:_BEGINNING])
    return text[:at] + text[at + len(part) :] if at >= 0 and text.startswith(part, at) else text


def _is_of_kubeadmiral(old: Mapping[str, Any]) -> bool:
    """Return whether KubeAdmiral wrote the triggers: its resource requests are fields of a Go struct."""
    request = old.get("resourceRequest")
    return isinstance(request, dict) and any(field.lower() == "millicpu" for field in request)


def _adopted(old: Mapping[str, Any], now: Triggers) -> str:
    """Return KubeAdmiral's triggers in our form.

    Its hashes cover Go's representation of objects, which is not available here. The hashed fields count as unchanged,
    so that placements survive a migration from KubeAdmiral; replicas, policies and clusters are compared.
    """
    adopted = {**now.of_object, **now.clusters.as_if_unchanged_since(old.get(CLUSTERS) or ())}
    adopted |= {field: old.get(field) for field in ("replicaCount", "policyName")}
    adopted.pop(_ENDED, None)
    adopted.pop(_PARTNERS, None)
    if "autoMigrationInfo" in adopted:
        adopted["autoMigrationInfo"] = old.get("autoMigrationInfo") or ""
    return orjson.dumps(adopted, option=orjson.OPT_SORT_KEYS).decode()


def _apply_reschedule_rules(changed: frozenset[str], when: RescheduleWhen) -> TriggerComparison:
    """Apply the policy's rescheduleWhen to changes of policy content, profile and clusters."""
    deferred: list[str] = []
    is_due = False
    rules = (
        (not _CONTENT.isdisjoint(changed), when.policy_content_changed, "policyContentChanged:false"),
        (LABELS in changed, when.cluster_labels_changed, "clusterLabelsChanged:false"),
        (not _TAINTS.isdisjoint(changed) or _PARTNERS in changed, True, ""),
        (API_TYPES in changed, when.cluster_api_resources_changed, "clusterAPIResourcesChanged:false"),
        (CLUSTERS in changed, when.cluster_joined, "clusterJoined:false"),
    )
    for has_happened, counts, reason in rules:
        if has_happened and counts:
            is_due = True
        elif has_happened:
            deferred.append(reason)
    return (
        TriggerComparison(is_due=True)
        if is_due
        else TriggerComparison(is_due=False, deferred_reasons="; ".join(deferred))
    )


def _parse(text: str | None) -> dict[str, Any] | None:
    value = parse_object(text or "")
    return value if value is not None and is_readable(value) else None


def _annotations_hash(annotations: Mapping[str, str]) -> str:
    present = {key: annotations[key] for key in HASHED_ANNOTATIONS if key in annotations}
    return hash_of(present) if present else _NO_ANNOTATIONS_HASH
