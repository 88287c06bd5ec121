"""When is an object scheduled again? What a decision was based on, and whether a change of it matters (spec §5.3).

After each decision the object carries a snapshot of what it was based on, in an annotation. The next time the new
snapshot is compared: equal text means nothing to do (the common case, one string comparison); otherwise the policy's
`reschedulePolicy` decides what counts, and what does not count is noted as a deferred reason. The text is
deterministic: sorted keys, sorted clusters. Pure; the schedule controller calls it.

A cluster has joined, for `clusterJoined`, when it is ready for the first time since the object's last decision: before
that no decision could use it, and its kinds are not known.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from federation.api import names
from federation.scheduling.framework.types import Cluster, Resources
from federation.scheduling.policy import Policy, hash_of
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
_LABELS = "clusterLabelsHashes"
_TAINTS = "clusterTaintsHashes"
_API_TYPES = "clusterAPIResourceTypesHashes"
_BY_CLUSTER = (_LABELS, _TAINTS, _API_TYPES)
_POLICY = "policyContentHash"
_TOLD = "pluginFieldsHash"
"""Only a difference between two of them counts: that a plugin begins or ceases to ask is the profile's change."""
IGNORED_PLUGINS = "ignoredPlugins"
"""What changed when a plugin that the last decision ignored may answer again; no part of the text."""
_NO_ANNOTATIONS_HASH = hash_of({})


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether to schedule now, and otherwise which changes were left aside ("" when there were none).

    `changed` names the triggers that differ from the last decision's; () when there was none to compare with.
    """

    is_due: bool
    deferred_reasons: str = ""
    changed: tuple[str, ...] = ()


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


class TriggerSource:
    """Makes trigger texts; keeps the hashes of clusters, which change rarely and are shared by all objects.

    `counts_unready`: whether a cluster has joined before it is ready, as in KubeAdmiral.
    """

    def __init__(self, *, counts_unready: bool = False) -> None:
        self._counts_unready = counts_unready
        self._hashes: dict[str, tuple[Cluster, tuple[str, str, str]]] = {}
        self._generation = -1
        self._clusters = ""

    def text(self, triggers: ObjectTriggers, snapshot: Snapshot) -> str:
        """Return the annotation's value: a JSON object with sorted keys."""
        policy = triggers.policy
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
        return f"{head}{',' if before else ''}{self._cluster_part(snapshot)},{orjson.dumps(after).decode()[1:]}"

    def _cluster_part(self, snapshot: Snapshot) -> str:
        """Return the members of the JSON object that describe the clusters, without braces."""
        if snapshot.generation != self._generation:
            hashes = {cluster.name: self._hashes_of(cluster) for cluster in snapshot.clusters}
            part = {
                _API_TYPES: {name: entry[2] for name, entry in hashes.items()},
                _LABELS: {name: entry[0] for name, entry in hashes.items()},
                _TAINTS: {name: entry[1] for name, entry in hashes.items()},
                "clusters": [c.name for c in snapshot.clusters if c.is_ready or self._counts_unready],
            }
            self._clusters = orjson.dumps(part).decode()[1:-1]
            self._generation = snapshot.generation
            self._hashes = {name: entry for name, entry in self._hashes.items() if name in hashes}
        return self._clusters

    def _hashes_of(self, cluster: Cluster) -> tuple[str, str, str]:
        known = self._hashes.get(cluster.name)
        if known is not None and known[0] is cluster:
            return known[1]
        old, hashed = known if known is not None else (None, ("", "", ""))
        hashes = (
            hashed[0] if old and old.labels == cluster.labels else hash_of(cluster.labels),
            hashed[1] if old and old.taints == cluster.taints else hash_of(sorted(map(list, cluster.taints))),
            hashed[2] if old and old.api_types == cluster.api_types else hash_of(sorted(map(list, cluster.api_types))),
        )
        self._hashes[cluster.name] = (cluster, hashes)
        return hashes


def judge(old_text: str | None, new_text: str, policy: Policy | None, *, is_plugin_back: bool = False) -> Verdict:
    """Return whether the object is to be scheduled, given the triggers of its last decision and those of now.

    `is_plugin_back`: a plugin that the last decision ignored may answer now; that counts as a changed profile.
    """
    if old_text == new_text and not is_plugin_back:
        return Verdict(is_due=False)
    old_text, new_text = _without_same_clusters(old_text or "", new_text)
    old = _parse(old_text)
    if old is None or policy is None:
        return Verdict(is_due=True)
    new: dict[str, Any] = orjson.loads(new_text)
    differing = {field for field in old.keys() | new.keys() if old.get(field) != new.get(field)}
    if not _has_joined(old, new):
        differing.discard("clusters")  # Who is gone is missing in the hashes, too; who is not ready is no change.
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
    verdict = _judge_environment(old, new, policy, is_plugin_back=is_plugin_back)
    return Verdict(verdict.is_due, verdict.deferred_reasons, changed)


def _judge_environment(old: dict[str, Any], new: dict[str, Any], policy: Policy, *, is_plugin_back: bool) -> Verdict:
    """Judge changes of policy content, profile and clusters by the policy's own rules."""
    when = policy.reschedule_when
    assert when is not None
    deferred: list[str] = []
    is_due = False
    rules = (
        (
            _differs(old, new, _POLICY) or _differs(old, new, "profileHash") or is_plugin_back,
            when.policy_content_changed,
            "policyContentChanged:false",
        ),
        (_changed(old, new, _LABELS), when.cluster_labels_changed, "clusterLabelsChanged:false"),
        (_changed(old, new, _TAINTS), True, ""),
        (_changed(old, new, _API_TYPES), when.cluster_api_resources_changed, "clusterAPIResourcesChanged:false"),
        (_has_joined(old, new), when.cluster_joined, "clusterJoined:false"),
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
    _API_TYPES: "kinds that clusters serve",
    _LABELS: "labels of clusters",
    _TAINTS: "taints of clusters",
    "clusters": "the set of clusters",
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


def cluster_trigger_changed(new: Mapping[str, str], old: Mapping[str, str]) -> bool:
    """Say whether a known cluster changed or vanished; new clusters do not count."""
    return any(new.get(cluster) != value for cluster, value in old.items())


def _differs(old: dict[str, Any], new: dict[str, Any], field: str) -> bool:
    return (old.get(field) or "") != (new.get(field) or "")


def _changed(old: dict[str, Any], new: dict[str, Any], field: str) -> bool:
    return cluster_trigger_changed(new.get(field) or {}, old.get(field) or {})


def _has_joined(old: dict[str, Any], new: dict[str, Any]) -> bool:
    return not set(new.get("clusters") or ()) <= set(map(str, old.get("clusters") or ()))


def _without_same_clusters(old: str, new: str) -> tuple[str, str]:
    """Return both texts without what describes the clusters when that is the same: most of them, with many clusters."""
    mark = f'"{_API_TYPES}"'
    start = new.index(mark)
    end = new.index(f'"{_POLICY}"', start)
    was = old.find(mark)
    if was < 0 or old[was : was + end - start] != new[start:end]:
        return old, new
    return old[:was] + old[was + end - start :], new[:start] + new[end:]


def _parse(text: str | None) -> dict[str, Any] | None:
    if not text:
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    is_ours = isinstance(value, dict) and isinstance(value.get("clusters") or [], list)
    return value if is_ours and all(isinstance(value.get(field) or {}, dict) for field in _BY_CLUSTER) else None


def _annotations_hash(annotations: Mapping[str, str]) -> str:
    present = {key: annotations[key] for key in HASHED_ANNOTATIONS if key in annotations}
    return hash_of(present) if present else _NO_ANNOTATIONS_HASH
