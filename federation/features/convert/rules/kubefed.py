"""KubeFed's federated objects and ReplicaSchedulingPreferences as native objects and our policies. Pure.

The objects are those that the control plane keeps for the same manifests (`planning/kubefed`), under the same names. So
the native form may be applied over the federated form, or instead of it, and nothing moves.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from federation.api import names
from federation.api.kubefedkinds import (
    CORE_GROUP,
    FEDERATED_KINDS,
    FEDERATED_NAMESPACES,
    REPLICA_PREFERENCES,
    SCALED_KINDS,
    SCHEDULING_GROUP,
    TYPES_GROUP,
)
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import Object
from federation.features.convert.rules.fieldreader import FieldReader, to_title
from federation.features.convert.rules.model import Conversion, Note
from federation.planning.kubefed.nativeform import REPLICAS_PATH, derive, pointer_of

_OTHER_DOMAIN = ".kubefed.k8s.io"
"""Published manifests have it in place of `.kubefed.io`."""
_IDENTITY = ("name", "namespace", "creationTimestamp")
_INSTEAD = {
    "KubeFedCluster": "join the cluster with `fedctl join`",
    "FederatedTypeConfig": "kinds that a policy selects are federated without it; an administrator may create a"
    " FederatedTypeConfig of core.kubeadmiral.io",
}


class _Target(NamedTuple):
    """The identity of a federated object."""

    kind: str
    namespace: str
    name: str


def convert(manifests: Sequence[dict[str, Any]]) -> Conversion:
    """Return the native form of KubeFed's manifests among these; others are returned as they are.

    ConfigurationError names the manifest and the field of one that cannot be read.
    """
    conversion = Conversion([], [])
    preferences = _preferences(manifests, conversion.notes)
    federated = {_target(each): each for each in manifests if _group(each) == TYPES_GROUP}
    for target, manifest in federated.items():
        _read(manifest, preferences.get(target), conversion.notes)
    for manifest in manifests:
        group = _group(manifest)
        if group == CORE_GROUP:
            instead = _INSTEAD.get(str(manifest.get("kind")), "it configures KubeFed itself")
            conversion.notes.append(Note(to_title(manifest), "kind", f"is left out: {instead}"))
        elif group == TYPES_GROUP:
            target = _target(manifest)
            namespace = federated.get(_Target(FEDERATED_NAMESPACES.kind, target.namespace, target.namespace))
            derivation = derive(manifest, FEDERATED_KINDS[target.kind], preferences.get(target), namespace)
            if not derivation.undecided:
                conversion.objects.extend(obj for _, obj in derivation.objects)
        elif group != SCHEDULING_GROUP:
            conversion.objects.append(manifest)
    for target in preferences.keys() - federated.keys():
        text = f"is left out: {target.kind} {target.namespace}/{target.name} is not among the manifests; add it"
        conversion.notes.append(Note(to_title(preferences[target]), "spec.targetKind", text))
    return conversion


def _read(manifest: Object, preference: Object | None, notes: list[Note]) -> None:
    """Note what the native form does not express; ConfigurationError for what cannot be read."""
    spec = _spec(manifest, notes)
    _read_template(spec.child("template"), manifest["spec"].get("template") or {})
    placement = spec.child("placement")
    for cluster in placement.children("clusters"):
        _required(cluster, "name")
    selector = placement.child("clusterSelector")
    selector.text_map("matchLabels")
    for expression in selector.children("matchExpressions"):
        _required(expression, "key")
        _required(expression, "operator")
        expression.texts("values")
    _note_placement(manifest, placement, spec, preference)
    for override in spec.children("overrides"):
        _required(override, "clusterName")
        for patch in override.children("clusterOverrides"):
            patch.text("op")
            patch.any("value")
            path = pointer_of(patch.text("path"))
            if path == "/":
                raise patch.refuse("path", "must be a JSON pointer such as /spec/replicas; correct the manifest")
            if preference is not None and path == REPLICAS_PATH:
                patch.note("path", "is left out: the ReplicaSchedulingPreference divides the replicas")
    spec.flag("retainReplicas")
    spec.finish()


def _read_template(template: FieldReader, given: Object) -> None:
    metadata = template.child("metadata")
    for key in ("labels", "annotations"):
        metadata.text_map(key)
    for key in _IDENTITY:
        metadata.any(key)
    for key in given.keys() - {"metadata"}:
        template.any(key)


def _note_placement(manifest: Object, placement: FieldReader, spec: FieldReader, preference: Object | None) -> None:
    has_clusters, has_selector = placement.has("clusters"), placement.has("clusterSelector")
    if manifest["kind"] == FEDERATED_NAMESPACES.kind:
        if placement:
            text = "restricts the objects in the namespace; the namespace itself goes to all clusters, except with the"
            spec.note("placement", f"{text} annotation {names.NO_AUTO_PROPAGATION}")
    elif preference is not None:
        if has_clusters:
            placement.note("clusters", f"has no effect beside {to_title(preference)}")
    elif not has_clusters and not has_selector:
        spec.note("placement", "names no cluster, so KubeFed places the object nowhere; it is left out")
    elif has_clusters and not placement.any("clusters"):
        placement.note("clusters", "is empty, so KubeFed places the object nowhere; it is left out")
    elif has_clusters and has_selector:
        placement.note("clusterSelector", "has no effect beside spec.placement.clusters")


def _preferences(manifests: Sequence[Object], notes: list[Note]) -> dict[_Target, Object]:
    """Return the preferences by their target."""
    found = {}
    for manifest in manifests:
        if _group(manifest) != SCHEDULING_GROUP:
            continue
        if manifest.get("kind") != REPLICA_PREFERENCES.kind:
            raise _refused(manifest, "kind", f"is unknown; only {REPLICA_PREFERENCES.kind} is converted")
        spec = _spec(manifest, notes)
        kind = spec.text("targetKind")
        if kind not in SCALED_KINDS:
            raise spec.refuse("targetKind", f"must be {' or '.join(SCALED_KINDS)}")
        if (spec.number("totalReplicas", -1) or 0) < 0:
            raise spec.refuse("totalReplicas", "must be a number from 0")
        clusters = spec.child("clusters")
        for name in manifest["spec"].get("clusters") or {}:
            limits = clusters.child(name)
            for key in ("weight", "minReplicas", "maxReplicas"):
                limits.number(key)
        spec.flag("rebalance")
        spec.flag("intersectWithClusterSelector")
        spec.finish()
        found[_Target(kind, *_key(manifest))] = manifest
    return found


def _spec(manifest: Object, notes: list[Note]) -> FieldReader:
    return FieldReader(manifest, to_title(manifest), notes).child("spec")


def _required(reader: FieldReader, key: str) -> str:
    value = reader.text(key)
    if not value:
        raise reader.refuse(key, "is missing; add it")
    return value


def _group(manifest: Object) -> str:
    group = str(manifest.get("apiVersion", "")).rpartition("/")[0]
    return group.replace(_OTHER_DOMAIN, ".kubefed.io") if group.endswith(_OTHER_DOMAIN) else group


def _target(manifest: Object) -> _Target:
    if manifest.get("kind") not in FEDERATED_KINDS:
        known = ", ".join(sorted(FEDERATED_KINDS))
        raise _refused(manifest, "kind", f"is not converted; convert its spec.template by hand. Known kinds: {known}")
    return _Target(manifest["kind"], *_key(manifest))


def _key(manifest: Object) -> tuple[str, str]:
    """Return namespace and name."""
    metadata = FieldReader(manifest, to_title(manifest), []).child("metadata")
    name, namespace = _required(metadata, "name"), metadata.text("namespace")
    kind = FEDERATED_KINDS.get(str(manifest.get("kind")))
    if not namespace and (kind is None or kind.resource.namespaced):
        raise metadata.refuse("namespace", "is missing; policies are in the namespace of the object, so add it")
    return namespace, name


def _refused(manifest: Object, field: str, problem: str) -> ConfigurationError:
    return ConfigurationError(f"{to_title(manifest)}: {field}: {problem}")
