"""KubeFed's federated objects and ReplicaSchedulingPreferences as native objects and our policies. Pure.

The objects are those that the control plane keeps for the same manifests (`planning/kubefed`), under the same names. So
the native form may be applied over the federated form, or instead of it, and nothing moves.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from federation.api import names
from federation.api.kubefedkinds import (
    FEDERATED_KINDS,
    FEDERATED_NAMESPACES,
    REPLICA_PREFERENCES,
    SCALED_KINDS,
    SCHEDULING_GROUP,
    TYPES_GROUP,
    FederatedKind,
)
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import Object
from federation.planning.convert.model import Conversion, Note
from federation.planning.kubefed.nativeform import REPLICAS_PATH, derive

_CORE_GROUP = "core.kubefed.io"
_KEPT_METADATA = frozenset({"labels", "annotations"})
_IDENTITY = frozenset({"name", "namespace", "creationTimestamp"})
_INSTEAD = {
    "KubeFedCluster": "join the cluster with `fedctl join`",
    "FederatedTypeConfig": "kinds that a policy selects are federated without it; an administrator may create a"
    " FederatedTypeConfig of core.kubeadmiral.io",
}


def convert(manifests: Sequence[dict[str, Any]]) -> Conversion:
    """Return the native form of KubeFed's manifests among these; others are returned as they are.

    ConfigurationError names the manifest and the field of one that cannot be read.
    """
    conversion = Conversion([], [])
    preferences, namespaces = _preferences(manifests), _namespaces(manifests)
    targets = set()
    for manifest in manifests:
        group = str(manifest.get("apiVersion", "")).rpartition("/")[0]
        if group == _CORE_GROUP:
            instead = _INSTEAD.get(str(manifest.get("kind")), "it configures KubeFed itself")
            conversion.notes.append(Note(_title(manifest), "", f"is left out: {instead}"))
        elif group == TYPES_GROUP:
            kind = _kind(manifest)
            _check(manifest)
            key = _key(manifest)
            targets.add((kind.resource.kind, *key))
            preference = preferences.get((kind.resource.kind, *key))
            conversion.objects.extend(_objects(manifest, kind, preference, namespaces.get(key[0])))
            conversion.notes.extend(_notes(manifest, kind, preference))
        elif group != SCHEDULING_GROUP:
            conversion.objects.append(manifest)
    for target, preference in preferences.items():
        if target not in targets:
            text = f"is left out: {target[0]} {target[1]}/{target[2]} is not among the manifests; add it"
            conversion.notes.append(Note(_title(preference), "spec.targetKind", text))
    return conversion


def _objects(
    manifest: Object, kind: FederatedKind, preference: Object | None, namespace: Object | None
) -> list[Object]:
    derivation = derive(manifest, kind, preference, namespace)
    return [] if derivation.is_undecided else [obj for _, obj in derivation.objects]


def _notes(manifest: Object, kind: FederatedKind, preference: Object | None) -> Iterator[Note]:
    title, spec = _title(manifest), manifest["spec"]
    placement = spec.get("placement") or {}
    template = (spec.get("template") or {}).get("metadata") or {}
    is_namespace = kind.resource == FEDERATED_NAMESPACES
    if is_namespace and placement:
        yield Note(
            title,
            "spec.placement",
            "restricts the objects in the namespace; the namespace itself goes to all clusters, except with the"
            f" annotation {names.NO_AUTO_PROPAGATION}",
        )
    elif preference is None and placement.get("clusters") is None and placement.get("clusterSelector") is None:
        yield Note(title, "spec.placement", "is missing, so KubeFed places it nowhere, and it is left out")
    elif preference is None and placement.get("clusters") == []:
        yield Note(title, "spec.placement.clusters", "is empty, so KubeFed places it nowhere, and it is left out")
    if preference is not None and placement.get("clusters") is not None:
        text = f"has no effect beside {REPLICA_PREFERENCES.kind} {_title(preference).partition(' ')[2]}"
        yield Note(title, "spec.placement.clusters", text)
    elif placement.get("clusters") is not None and placement.get("clusterSelector") is not None:
        yield Note(title, "spec.placement.clusterSelector", "has no effect beside spec.placement.clusters")
    for key in sorted(template.keys() - _KEPT_METADATA - _IDENTITY):
        yield Note(title, f"spec.template.metadata.{key}", "is left out: only labels and annotations are kept")
    for index, entry in enumerate(spec.get("overrides") or ()):
        for place, patch in enumerate(entry.get("clusterOverrides") or ()):
            if preference is not None and patch["path"] == REPLICAS_PATH:
                field = f"spec.overrides[{index}].clusterOverrides[{place}]"
                yield Note(title, field, "is left out: the ReplicaSchedulingPreference divides the replicas")


def _preferences(manifests: Sequence[Object]) -> dict[tuple[str, str, str], Object]:
    """Return the preferences by kind, namespace and name of the federated object."""
    found = {}
    for manifest in manifests:
        if str(manifest.get("apiVersion", "")).rpartition("/")[0] != SCHEDULING_GROUP:
            continue
        if manifest.get("kind") != REPLICA_PREFERENCES.kind:
            raise _refused(manifest, "kind", f"is unknown; only {REPLICA_PREFERENCES.kind} is converted")
        spec = _mapping(manifest, manifest.get("spec"), "spec")
        if spec.get("targetKind") not in SCALED_KINDS:
            raise _refused(manifest, "spec.targetKind", f"must be {' or '.join(SCALED_KINDS)}")
        if type(spec.get("totalReplicas")) is not int or spec["totalReplicas"] < 0:
            raise _refused(manifest, "spec.totalReplicas", "must be a number from 0")
        for name, limits in _mapping(manifest, spec.get("clusters") or {}, "spec.clusters").items():
            _mapping(manifest, limits, f"spec.clusters.{name}")
        found[(spec["targetKind"], *_key(manifest))] = manifest
    return found


def _namespaces(manifests: Sequence[Object]) -> dict[str, Object]:
    """Return the FederatedNamespaces by namespace."""
    found = {}
    for manifest in manifests:
        if manifest.get("kind") == FEDERATED_NAMESPACES.kind and manifest.get("apiVersion", "").startswith(TYPES_GROUP):
            _check(manifest)
            found[_key(manifest)[0]] = manifest
    return found


def _kind(manifest: Object) -> FederatedKind:
    kind = FEDERATED_KINDS.get(str(manifest.get("kind")))
    if kind is None:
        known = ", ".join(sorted(FEDERATED_KINDS))
        raise _refused(manifest, "kind", f"is not converted; convert its spec.template by hand. Known kinds: {known}")
    return kind


def _key(manifest: Object) -> tuple[str, str]:
    metadata = _mapping(manifest, manifest.get("metadata"), "metadata")
    if not isinstance(metadata.get("name"), str) or not metadata["name"]:
        raise _refused(manifest, "metadata.name", "is missing")
    kind = FEDERATED_KINDS.get(str(manifest.get("kind")))
    if (kind is None or kind.resource.namespaced) and not metadata.get("namespace"):
        raise _refused(manifest, "metadata.namespace", "is missing; policies and objects are in the same namespace")
    return str(metadata.get("namespace") or ""), metadata["name"]


def _check(manifest: Object) -> None:
    """Raise ConfigurationError for the first field that the conversion could not read."""
    spec = _mapping(manifest, manifest.get("spec"), "spec")
    template = _mapping(manifest, spec.get("template") or {}, "spec.template")
    _mapping(manifest, template.get("metadata") or {}, "spec.template.metadata")
    placement = _mapping(manifest, spec.get("placement") or {}, "spec.placement")
    for index, cluster in enumerate(_list(manifest, placement.get("clusters"), "spec.placement.clusters")):
        at = f"spec.placement.clusters[{index}]"
        if not isinstance(_mapping(manifest, cluster, at).get("name"), str):
            raise _refused(manifest, f"{at}.name", "is missing")
    selector = _mapping(manifest, placement.get("clusterSelector") or {}, "spec.placement.clusterSelector")
    _mapping(manifest, selector.get("matchLabels") or {}, "spec.placement.clusterSelector.matchLabels")
    expressions = "spec.placement.clusterSelector.matchExpressions"
    for index, each in enumerate(_list(manifest, selector.get("matchExpressions"), expressions)):
        if not {"key", "operator"} <= _mapping(manifest, each, f"{expressions}[{index}]").keys():
            raise _refused(manifest, f"{expressions}[{index}]", "needs key and operator")
    for index, entry in enumerate(_list(manifest, spec.get("overrides"), "spec.overrides")):
        at = f"spec.overrides[{index}]"
        if not isinstance(_mapping(manifest, entry, at).get("clusterName"), str):
            raise _refused(manifest, f"{at}.clusterName", "is missing")
        patches = f"{at}.clusterOverrides"
        for place, patch in enumerate(_list(manifest, entry.get("clusterOverrides"), patches)):
            path = _mapping(manifest, patch, f"{patches}[{place}]").get("path")
            if not isinstance(path, str) or not path.startswith("/"):
                raise _refused(manifest, f"{patches}[{place}].path", "must be a JSON pointer such as /spec/replicas")


def _mapping(manifest: Object, value: Any, field: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _refused(manifest, field, "must be a mapping" if value is not None else "is missing")
    return value


def _list(manifest: Object, value: Any, field: str) -> Sequence[Any]:
    if not isinstance(value, list | None):
        raise _refused(manifest, field, "must be a list")
    return value or ()


def _refused(manifest: Object, field: str, problem: str) -> ConfigurationError:
    return ConfigurationError(f"{_title(manifest)}: {field} {problem}")


def _title(manifest: Object) -> str:
    metadata = manifest.get("metadata")
    known = metadata if isinstance(metadata, Mapping) else {}
    name = "/".join(str(part) for part in (known.get("namespace"), known.get("name")) if part)
    return f"{manifest.get('kind', '')} {name}".strip()
