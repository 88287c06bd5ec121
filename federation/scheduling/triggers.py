"""When is an object scheduled again? What a decision was based on, and whether a change of it matters (spec §5.3).

After each decision the object carries a snapshot of what it was based on, in an annotation. The next time the new
snapshot is compared: equal text means nothing to do (the common case, one string comparison); otherwise the policy's
`reschedulePolicy` decides what counts, and what does not count is noted as a deferred reason. The text is
deterministic: sorted keys, sorted clusters. Pure; the schedule controller calls it.

A cluster has joined, for `clusterJoined`, when it is ready for the first time since the object's last decision: before
that no decision could use it, and its kinds are not known.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from federation.api import names
from federation.scheduling.clustertriggers import (
    API_TYPES,
    CLUSTERS,
    LABELS,
    TAINTS,
    ClusterSource,
    ClusterState,
    is_readable,
)
from federation.scheduling.framework.types import Resources
from federation.scheduling.policy import Policy, RescheduleWhen, hash_of
from federation.scheduling.snapshot import Snapshot

HASHED_ANNOTATIONS = (
    names.AFFINITY,
    names.APPLIED_MIGRATION_CONFIGURATION,
    names.CLUSTER_SELECTOR,
    names.DRY_RUN,
    names.FOLLOWS_OBJECT,
    names.MAX_CLUSTERS,
    names.PLACEMENTS,
    names.SCHEDULING_MODE,
    names.STICKY_CLUSTER,
    names.TOLERATIONS,
)
"""Annotations on a federated object that decisions depend on."""
_STABLE = frozenset(("policyName", "replicaCount", "resourceRequest", "schedulingAnnotationsHash"))
_POLICY = "policyContentHash"
_TOLD = "pluginFieldsHash"
"""Only a difference between two of them counts: that a plugin begins or ceases to ask is the profile's change."""
IGNORED_PLUGINS = "ignoredPlugins"
"""What changed when a plugin that the last decision ignored may answer again; no part of the text."""
_OF_OBJECT = (*_STABLE, "autoMigrationInfo", _TOLD, _POLICY, "profileHash")
_CONTENT = frozenset((_POLICY, "profileHash", IGNORED_PLUGINS))
_NO_ANNOTATIONS_HASH = hash_of({})
_BEGINNING = 40
"""Characters that a part of triggers is searched for by."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether to schedule now, and otherwise which changes were left aside ("" when there were none).

    `changed` names the triggers that differ from the last decision's; () when there was none to compare with.
    `adopted` is what KubeAdmiral's last decision was based on, in our form, to be written if it stays in force.
    """

    is_due: bool
    deferred_reasons: str = ""
    changed: tuple[str, ...] = ()
    adopted: str = ""


@dataclass(frozen=True, slots=True)
class ObjectTriggers:
    """What of the object and its policy a decision depends on."""

    annotations: Mapping[str, str]
    replicas: int | None
    request: Resources
    policy: Policy | None
    profile_hash: str = ""
    told_hash: str = ""
    """Of the labels and annotations that plugins asked to be told, "" when none did."""


@dataclass(frozen=True, slots=True)
class Triggers:
    """What a decision depends on now: the annotation's value, a JSON object with sorted keys, and its parts."""

    text: str
    of_object: Mapping[str, Any]
    clusters: ClusterState


class TriggerSource:
    """Makes triggers. `as_kubeadmiral`: in its form, and with clusters that joined counted before they are ready."""

    def __init__(self, *, as_kubeadmiral: bool = False) -> None:
        self._clusters = ClusterSource(as_kubeadmiral=as_kubeadmiral)

    def triggers(self, triggers: ObjectTriggers, snapshot: Snapshot) -> Triggers:
        """Return the triggers of an object."""
        policy, clusters = triggers.policy, self._clusters.state(snapshot)
        before: dict[str, Any] = {}
        if policy is not None and policy.has_auto_migration:
            before["autoMigrationInfo"] = triggers.annotations.get(names.AUTO_MIGRATION_INFO, "")
        after: dict[str, Any] = {_TOLD: triggers.told_hash} if triggers.told_hash else {}
        after |= {
            _POLICY: policy.content_hash if policy else "",
            "policyName": policy.ref.name if policy else "",
        }
        if triggers.profile_hash:
            after["profileHash"] = triggers.profile_hash
        after["replicaCount"] = triggers.replicas or 0
        after["resourceRequest"] = {name: triggers.request[name] for name in sorted(triggers.request)}
        after["schedulingAnnotationsHash"] = _annotations_hash(triggers.annotations)
        head = orjson.dumps(before).decode()[:-1]
        text = f"{head}{',' if before else ''}{clusters.text},{orjson.dumps(after).decode()[1:]}"
        return Triggers(text, before | after, clusters)


def judge(old_text: str | None, now: Triggers, policy: Policy | None, *, is_plugin_back: bool = False) -> Verdict:
    """Return whether the object is to be scheduled, given the triggers of its last decision and those of now.

    `is_plugin_back`: a plugin that the last decision ignored may answer now; that counts as a changed profile.
    """
    if old_text == now.text and not is_plugin_back:
        return Verdict(is_due=False)
    # Mostly nothing of the clusters has changed: then only the rest has to be read, a small part with many clusters.
    rest = _without(old_text or "", f"{now.clusters.text},")
    old, new = _parse(rest), now.of_object
    if old is None or policy is None:
        return Verdict(is_due=True)
    if _is_of_kubeadmiral(old):
        adopted = _adopted(old, now)
        return replace(judge(adopted, now, policy, is_plugin_back=is_plugin_back), adopted=adopted)
    differing = now.clusters.changes_since(old) if rest == old_text else set()
    differing.update(field for field in _OF_OBJECT if old.get(field) != new.get(field))
    changed = (*sorted(differing), *([IGNORED_PLUGINS] if is_plugin_back else []))
    if not changed:
        return Verdict(is_due=False)
    is_told_otherwise = _TOLD in changed and bool(old.get(_TOLD)) and bool(new.get(_TOLD))
    if (
        not _STABLE.isdisjoint(changed)
        or is_told_otherwise
        or (policy.has_auto_migration and "autoMigrationInfo" in changed)
    ):
        return Verdict(is_due=True, changed=changed)
    if policy.disable_rescheduling:
        return Verdict(is_due=False, deferred_reasons="disableRescheduling:true")
    if policy.reschedule_when is None:
        return Verdict(is_due=False, deferred_reasons="rescheduleWhen:nil")
    verdict = _judge_environment(frozenset(changed), policy.reschedule_when)
    return Verdict(verdict.is_due, verdict.deferred_reasons, changed)


def _without(text: str, part: str) -> str:
    """Return the text without the part, found by how that begins: a search for kilobytes is slow to prepare."""
    at = text.find(part[:_BEGINNING])
    return text[:at] + text[at + len(part) :] if at >= 0 and text.startswith(part, at) else text


def _is_of_kubeadmiral(old: Mapping[str, Any]) -> bool:
    """Say whether KubeAdmiral wrote the triggers: its resource requests are fields of a Go struct."""
    request = old.get("resourceRequest")
    return isinstance(request, dict) and any(field.lower() == "millicpu" for field in request)


def _adopted(old: Mapping[str, Any], now: Triggers) -> str:
    """Return KubeAdmiral's triggers in our form.

    Its hashes are of Go's view of objects, which we cannot have. What they stand for is taken to be as it is now, so
    that whoever comes from KubeAdmiral keeps every placement; replicas, policies and clusters are compared.
    """
    adopted = {**now.of_object, **now.clusters.as_if_unchanged_since(old.get(CLUSTERS) or ())}
    adopted |= {field: old.get(field) for field in ("replicaCount", "policyName")}
    if "autoMigrationInfo" in adopted:
        adopted["autoMigrationInfo"] = old.get("autoMigrationInfo") or ""
    return orjson.dumps(adopted, option=orjson.OPT_SORT_KEYS).decode()


def _judge_environment(changed: frozenset[str], when: RescheduleWhen) -> Verdict:
    """Judge changes of policy content, profile and clusters by the policy's own rules."""
    deferred: list[str] = []
    is_due = False
    rules = (
        (not _CONTENT.isdisjoint(changed), when.policy_content_changed, "policyContentChanged:false"),
        (LABELS in changed, when.cluster_labels_changed, "clusterLabelsChanged:false"),
        (TAINTS in changed, True, ""),
        (API_TYPES in changed, when.cluster_api_resources_changed, "clusterAPIResourcesChanged:false"),
        (CLUSTERS in changed, when.cluster_joined, "clusterJoined:false"),
    )
    for has_happened, counts, reason in rules:
        if has_happened and counts:
            is_due = True
        elif has_happened:
            deferred.append(reason)
    return Verdict(is_due=True) if is_due else Verdict(is_due=False, deferred_reasons="; ".join(deferred))


def describe_triggers(changed: Iterable[str]) -> str:
    """Return in words which triggers changed; one without words, of another version, is named as it is."""
    return ", ".join(dict.fromkeys(_TRIGGERS_IN_WORDS.get(name, name) for name in changed))


def describe_deferral(reasons: str) -> str:
    """Return in words why an object was not scheduled again; a text that holds no deferred reasons is returned as is.

    `clusterJoined:false` becomes "a cluster joined; the policy does not follow that (rescheduleWhen: clusterJoined)".
    """
    parts = reasons.split("; ")
    if len(parts) == 1 and parts[0] in _NEVER_IN_WORDS:
        return _NEVER_IN_WORDS[parts[0]]
    fields = [part.removesuffix(":false") for part in parts]
    if not all(field in _DEFERRALS_IN_WORDS for field in fields):
        return reasons
    happened = " and ".join(_DEFERRALS_IN_WORDS[field] for field in fields)
    return f"{happened}; the policy does not follow that (rescheduleWhen: {', '.join(fields)})"


_TRIGGERS_IN_WORDS = {
    "autoMigrationInfo": "what members can run",
    API_TYPES: "kinds that clusters serve",
    LABELS: "labels of clusters",
    TAINTS: "taints of clusters",
    CLUSTERS: "the set of clusters",
    IGNORED_PLUGINS: "a plugin that was ignored may answer again",
    _TOLD: "what plugins are told",
    _POLICY: "policy",
    "policyName": "policy",
    "profileHash": "profile",
    "replicaCount": "replicas",
    "resourceRequest": "resource requests",
    "schedulingAnnotationsHash": "scheduling annotations",
}
_DEFERRALS_IN_WORDS = {
    "policyContentChanged": "the policy or its profile changed",
    "clusterLabelsChanged": "labels of clusters changed",
    "clusterAPIResourcesChanged": "the kinds that clusters serve changed",
    "clusterJoined": "a cluster joined",
}
_NEVER_IN_WORDS = {
    "disableRescheduling:true": "the policy never moves what is placed (disableRescheduling: true)",
    "rescheduleWhen:nil": "the policy follows only changes of the object (no rescheduleWhen)",
}


def _parse(text: str | None) -> dict[str, Any] | None:
    if not text:
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) and is_readable(value) else None


def _annotations_hash(annotations: Mapping[str, str]) -> str:
    present = {key: annotations[key] for key in HASHED_ANNOTATIONS if key in annotations}
    return hash_of(present) if present else _NO_ANNOTATIONS_HASH
