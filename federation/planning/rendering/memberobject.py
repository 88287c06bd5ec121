"""Render the desired member object of a cluster: the template, cleaned for its kind, with the cluster's overrides.

The result is an applied configuration for server-side apply: it has only the fields that the federation owns, so that
all others stay with their owners (docs/decisions/0003). It shares structure with the template and is read-only.
`retention.py` handles existing objects, `drift.py` detects needless writes.

Reference: docs/reference/sync.md.
"""

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import msgspec
import orjson

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import ADVANCED_STATEFUL_SETS, CLONE_SETS
from federation.apimachinery import wellknown
from federation.apimachinery.errors import InvalidInput
from federation.apimachinery.resources import DEPLOYMENTS, STATEFUL_SETS, Object
from federation.planning.failover.application import handed_states
from federation.planning.failover.handover import with_state
from federation.planning.federatedobject.placements import current_clusters
from federation.planning.federatedobject.provenance import is_hand_written
from federation.planning.overrides.errors import FAILED_OVERRIDES, OverrideError
from federation.planning.overrides.patches import apply_patches, forbidden_paths, patches_by_cluster
from federation.planning.rendering.admittednodes import with_admitted_nodes
from federation.planning.rendering.memberowned import without_assumed_values, without_member_fields
from federation.planning.rendering.repeatedkeys import without_repeated_keys
from federation.planning.waves.rolloutpart import rollout_part

_DIVIDED = frozenset((DEPLOYMENTS, STATEFUL_SETS, CLONE_SETS, ADVANCED_STATEFUL_SETS))
"""The kinds whose changes share one budget over all clusters (planning/steps)."""
_METADATA_KEPT = frozenset({"name", "namespace", "labels", "annotations", "finalizers", "ownerReferences"})
_ANNOTATIONS_DROPPED = wellknown.OF_CONTROLLERS | {wellknown.LAST_APPLIED_CONFIGURATION}
"""The last one describes what a user applied to the host, the others belong to the member's own controllers."""
_JOB_LABELS_GENERATED = (
    "controller-uid",
    "job-name",
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
)

_POD_OF_HOST = ("ephemeralContainers", "priority", "preemptionPolicy")

_NOT_OF_USERS = (names.GLOBAL_SCHEDULER, names.ROLLOUT_CONTROLLER)
"""Controllers whose overrides the host's admission does not judge: replicas, and templates that were judged before."""


class RenderError(InvalidInput):
    """Overrides that do not apply to the template; the message is shown to the user."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """The applied configuration of one member, and its content hash, which is also an annotation of it."""

    object: Object
    hash: str


class Renderer:
    """Renders one federated object for its clusters; lives for one reconcile.

    The member objects of a workload that is divided, or of an object with waves, have the revision of what a rollout
    brings as an annotation. `scheduled` are the replicas of a divided workload by cluster, {} for other objects.
    """

    def __init__(self, federated: Mapping[str, Any], type_: FederatedType) -> None:
        spec = federated.get("spec") or {}
        self._federated = federated
        self.scheduled = divided_replicas(federated, type_)
        self._is_job = (type_.resource.group, type_.resource.kind) == ("batch", "Job")
        self._revised = rollout_part(type_) if self.scheduled or _has_waves(federated) else None
        self._rendered: dict[str, Rendered] = {}
        self._plain: Rendered | None = None
        self._controllers = type_.controllers
        self._base = _clean(
            with_admitted_nodes(spec.get("template") or {}, federated, type_),
            type_.resource.kind,
            type_.resource.group,
            keeps_allocations=is_hand_written(federated) or has_written_allocations(federated),
        )
        self._patches = patches_by_cluster(spec.get("overrides") or (), type_.controllers)
        self._failed = failed_overrides(federated)
        self._handed = handed_states(federated)
        self._by_users: Mapping[str, Sequence[Mapping[str, Any]]] | None = None
        self._subjects: dict[bytes, Rendered] = {}
        self._source: Rendered | None = None

    def render(self, cluster: str) -> Rendered:
        """Return the cluster's member object; RenderError when its overrides failed, are forbidden or do not apply."""
        found = self._rendered.get(cluster)
        if found is not None:
            return found
        if (failure := self._failed.get(cluster)) is not None:
            raise RenderError(failure)
        patches, state = self._patches.get(cluster), self._handed.get(cluster)
        if state is not None:
            found = self._finish(with_state(_override(self._base, patches or ()), state))
        elif patches:
            found = self._finish(_override(self._base, patches))
        elif self._plain is None:
            found = self._plain = self._finish(self._base)
        else:
            found = self._plain  # Clusters without overrides share one object.
        self._rendered[cluster] = found
        return found

    def _finish(self, obj: Object) -> Rendered:
        annotations = {} if self._revised is None else {names.TEMPLATE_REVISION: content_hash(self._revised.of(obj))}
        if generation := self._base["metadata"]["annotations"].get(names.SOURCE_GENERATION):
            # An override of annotations replaces all of them.
            annotations[names.SOURCE_GENERATION] = generation
        if self._is_job and isinstance(obj.get("spec"), Mapping):
            # It removes the host's object, and with it those of members, after the end in all of them. A member that
            # removed its own would take the evidence with it that the Job has run.
            obj = {**obj, "spec": _without(obj["spec"], ("ttlSecondsAfterFinished",))}
        rendered = finish(without_repeated_keys(without_member_fields(obj)), annotations)
        # The hash covers what is left out here, so that a change of it is delivered.
        return Rendered(without_assumed_values(rendered.object), rendered.hash)

    def subject(self, cluster: str) -> Rendered | None:
        """Return what the host's admission has to judge before the cluster's member object leaves, None for nothing.

        Users cause overrides, except for the scheduler's. The subject has neither the scheduler's patches nor the
        federation's own annotation, so that clusters with equal overrides share one subject. An object that was
        written by hand has no source that the host has admitted: it is judged with all its patches, and without any.
        """
        is_by_hand = is_hand_written(self._federated)
        if self._by_users is None:
            entries = (self._federated.get("spec") or {}).get("overrides") or ()
            kept = [entry for entry in entries if is_by_hand or entry.get("controller") not in _NOT_OF_USERS]
            self._by_users = patches_by_cluster(kept, self._controllers)
        patches, state = self._by_users.get(cluster) or (), self._handed.get(cluster)
        if not patches and not is_by_hand and state is None:
            return None
        key = orjson.dumps((patches, None if state is None else msgspec.structs.asdict(state)))
        found = self._subjects.get(key)
        if found is None:
            try:
                overridden = _override(self._base, patches)
            except RenderError:
                # A user's patch may depend on the scheduler's.
                overridden = _override(self._base, self._patches[cluster])
            # What a member reported is judged as what users override: both are chosen by others than the host's users.
            found = _to_subject(self._base, overridden if state is None else with_state(overridden, state))
            self._subjects[key] = found
        return found

    def source_subject(self) -> Rendered:
        """Return what the host has admitted of the object without overrides: {} for one that was written by hand."""
        if self._source is None:
            is_by_hand = is_hand_written(self._federated)
            self._source = Rendered({}, "") if is_by_hand else _to_subject(self._base, self._base)
        return self._source


def divided_replicas(federated: Mapping[str, Any], type_: FederatedType) -> dict[str, int | None]:
    """Return the scheduler's replicas by cluster (None for the template's) of a divided workload, else {}."""
    if type_.resource not in _DIVIDED:
        return {}
    scheduled = current_clusters(federated, type_)
    return scheduled if any(count is not None for count in scheduled.values()) else {}


def _has_waves(federated: Mapping[str, Any]) -> bool:
    """Return whether a policy has rules for a rollout in waves (planning/waves/waverules.py)."""
    annotations = (federated.get("metadata") or {}).get("annotations") or {}
    return bool(annotations.get(names.ROLLOUT) or annotations.get(names.OVERRIDE_ROLLOUT))


def failed_overrides(federated: Mapping[str, Any]) -> dict[str, str]:
    """Return the errors by cluster that the override controller recorded."""
    return FAILED_OVERRIDES.of(federated) or {}


def has_written_allocations(federated: Mapping[str, Any]) -> bool:
    """Return whether a user wrote the addresses and ports of the Service's template, and not the host's API server."""
    return names.WRITTEN_ALLOCATIONS in ((federated.get("metadata") or {}).get("annotations") or {})


def _to_subject(base: Object, obj: Object) -> Rendered:
    """Return the object as a user would create it on the host beside its source."""
    metadata = {key: value for key, value in obj["metadata"].items() if key in _METADATA_KEPT and value}
    generation = base["metadata"]["annotations"].get(names.SOURCE_GENERATION)
    if generation is not None and metadata.get("annotations", {}).get(names.SOURCE_GENERATION) == generation:
        metadata["annotations"] = _without(metadata["annotations"], (names.SOURCE_GENERATION,))
    result = {**obj, "metadata": metadata}
    if result.get("kind") == "Service" and isinstance(result.get("spec"), dict):
        result["spec"] = _without_held(base.get("spec") or {}, result["spec"])
    return Rendered(result, content_hash(result))


def _without_held(base: Mapping[str, Any], spec: Object) -> Object:
    """Return a Service's spec without the address and node ports that its source holds on the host."""
    address = spec.get("clusterIP")
    if address and address != "None" and address == base.get("clusterIP"):
        spec = _without(spec, ("clusterIP", "clusterIPs"))
    ports = spec.get("ports")
    held = {port.get("nodePort") for port in base.get("ports") or ()}
    if not held or not isinstance(ports, list):
        return spec
    return {
        **spec,
        "ports": [
            _without(port, ("nodePort",)) if isinstance(port, Mapping) and port.get("nodePort") in held else port
            for port in ports
        ],
    }


def _override(base: Object, patches: Sequence[Mapping[str, Any]]) -> Object:
    if forbidden := forbidden_paths(patches):
        raise RenderError(f"invalid override path(s): [{' '.join(forbidden)}]")
    # Finalizers start as an empty list, so that a patch can always append to them.
    start = {**base, "metadata": {**base["metadata"], "finalizers": base["metadata"].get("finalizers") or []}}
    try:
        result = apply_patches(start, patches)
    except OverrideError as error:
        raise RenderError(str(error)) from error
    old, new = base.get("metadata") or {}, result.get("metadata")
    if not isinstance(new, dict) or any(new.get(key) != old.get(key) for key in ("name", "namespace")):
        raise RenderError("an override must not change metadata.name or metadata.namespace")
    if any(result.get(key) != base.get(key) for key in ("apiVersion", "kind")):
        raise RenderError("an override must not change apiVersion or kind")
    return result


def template_revision(obj: Mapping[str, Any]) -> str:
    """Return the revision of a workload's pod template: a hash of its content."""
    return content_hash((obj.get("spec") or {}).get("template") or {})


def finish(obj: Object, annotations: Mapping[str, str]) -> Rendered:
    """Add the label and annotations of managed objects; the hash covers everything but itself."""
    metadata = {key: value for key, value in obj["metadata"].items() if key in _METADATA_KEPT and value}
    metadata["labels"] = {**(metadata.get("labels") or {}), names.MANAGED_LABEL: "true"}
    if finalizers := metadata.get("finalizers"):
        metadata["finalizers"] = list(dict.fromkeys(finalizers))
    kept = _without(metadata.get("annotations") or {}, (names.TEMPLATE_HASH, *_ANNOTATIONS_DROPPED))
    metadata["annotations"] = {**kept, **annotations}
    result = {**obj, "metadata": metadata}
    digest = content_hash(result)
    metadata["annotations"][names.TEMPLATE_HASH] = digest
    return Rendered(result, digest)


def content_hash(obj: Mapping[str, Any]) -> str:
    """Return a stable hash of the object's content; the order of keys does not matter."""
    return blake2b(orjson.dumps(obj, option=orjson.OPT_SORT_KEYS), digest_size=16).hexdigest()


def _clean(template: Mapping[str, Any], kind: str, group: str, *, keeps_allocations: bool) -> Object:
    """Return the template without fields of the host, and with the source's generation as an annotation."""
    metadata = template.get("metadata") or {}
    kept: Object = {key: value for key, value in metadata.items() if key in _METADATA_KEPT}
    annotations = {
        key: value for key, value in (metadata.get("annotations") or {}).items() if key not in _ANNOTATIONS_DROPPED
    }
    if generation := metadata.get("generation"):
        annotations[names.SOURCE_GENERATION] = str(generation)
    kept["annotations"] = annotations
    if wellknown.AUTOMANAGED_API in (kept.get("labels") or {}):
        # The host serves this API itself. A member does not, and its API server would delete an object with the label.
        kept["labels"] = _without(kept["labels"], (wellknown.AUTOMANAGED_API,))
    result: Object = {key: value for key, value in template.items() if key != "status"}
    cleaner = _CLEANERS.get((group, kind))
    if cleaner is not None and not (keeps_allocations and cleaner is _clean_service):
        result = cleaner(result)
    return {**result, "metadata": kept}


def _without(mapping: Mapping[str, Any], keys: Iterable[str]) -> Object:
    return {key: value for key, value in mapping.items() if key not in keys}


def _clean_service(obj: Object) -> Object:
    """Drop the address; templates that were made by an earlier version or by KubeAdmiral have the host's."""
    spec = obj.get("spec")
    if not spec or spec.get("clusterIP") in (None, "None"):
        return obj
    return {**obj, "spec": _without(spec, ("clusterIP", "clusterIPs"))}


def _clean_pod(obj: Object) -> Object:
    """Drop what the host's admission computed from the PriorityClass; the member's refuses another value."""
    spec = obj.get("spec")
    return {**obj, "spec": _without(spec, _POD_OF_HOST)} if spec else obj


def _clean_claim(obj: Object) -> Object:
    """Drop the volume that the host's controller chose; without its mark a user has written the name."""
    spec = obj.get("spec")
    return {**obj, "spec": _without(spec, ("volumeName",))} if spec and _is_bound_by_controller(obj) else obj


def _clean_volume(obj: Object) -> Object:
    """Drop the claim that the host's controller bound, and the identity of one that a user named."""
    spec = obj.get("spec") or {}
    claim = spec.get("claimRef")
    if not isinstance(claim, Mapping):
        return obj
    if _is_bound_by_controller(obj):
        return {**obj, "spec": _without(spec, ("claimRef",))}
    # A volume whose claim has another uid counts as released.
    return {**obj, "spec": {**spec, "claimRef": _without(claim, ("uid", "resourceVersion"))}}


def _is_bound_by_controller(obj: Mapping[str, Any]) -> bool:
    return wellknown.BOUND_BY_CONTROLLER in ((obj.get("metadata") or {}).get("annotations") or {})


def _clean_secret(obj: Object) -> Object:
    """Merge `stringData`, which API servers never return, into `data`, so that objects can be compared."""
    written = obj.get("stringData")
    if not isinstance(written, dict):
        return obj
    data = {**(obj.get("data") or {})}
    data.update({key: base64.b64encode(str(value).encode()).decode() for key, value in written.items()})
    return {**_without(obj, ("stringData",)), "data": data}


def _clean_job(obj: Object) -> Object:
    """Drop the selector and labels that the host's API server generated; the member generates its own."""
    spec = obj.get("spec")
    if not spec or spec.get("manualSelector") is True:
        return obj
    spec = dict(spec)
    if selector := spec.get("selector"):
        matched = _without(selector.get("matchLabels") or {}, _JOB_LABELS_GENERATED)
        selector = {**selector, "matchLabels": matched} if matched else _without(selector, ("matchLabels",))
        spec["selector"] = selector
        if not selector:
            del spec["selector"]
    template = spec.get("template") or {}
    if labels := (template.get("metadata") or {}).get("labels"):
        metadata = {**template["metadata"], "labels": _without(labels, _JOB_LABELS_GENERATED)}
        spec["template"] = {**template, "metadata": metadata}
    return {**obj, "spec": spec}


_CLEANERS = {
    ("", "Service"): _clean_service,
    ("", "Pod"): _clean_pod,
    ("", "PersistentVolume"): _clean_volume,
    ("", "PersistentVolumeClaim"): _clean_claim,
    ("", "Secret"): _clean_secret,
    ("batch", "Job"): _clean_job,
}
