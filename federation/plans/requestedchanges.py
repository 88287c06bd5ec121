"""Convert the options of `fedctl plan` into changed objects.

Manifests, scaling, taints, labels and deletions become edits, which are sent to the server as dry runs. An unreachable
cluster is hypothetical: its status is changed here, and a plan with it cannot be applied. Each object may be named by
one option only, except that taints and labels of one cluster are merged into one edit.

Decision: docs/decisions/0274-a-plan-is-compared-with-what-happens.md
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from federation.api.federatedtype import FederatedType
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import GroupKind, Object, Resource
from federation.client.client import Client
from federation.plans.documents import Document
from federation.plans.edits import Edit, Verb, created_namespaces, describe_object, dry_run, get_or_none
from federation.plans.kinds import ServedKinds, split_target
from federation.plans.unknownnames import check_namespace, unknown_cluster, unknown_object
from federation.scheduling.framework.types import Effect
from federation.scheduling.whatif import changes as whatif
from federation.scheduling.whatif.state import ObjectChange, ObjectSet, federated_types


@dataclass(frozen=True, slots=True)
class RequestedChanges:
    """The requested changes, with the names of the options of `fedctl plan`."""

    documents: Sequence[Document] = ()
    down: Sequence[str] = ()
    taints: Sequence[str] = ()
    labels: Sequence[str] = ()
    replicas: Sequence[str] = ()
    deletions: Sequence[str] = ()
    namespace: str = "default"
    edits: Sequence[Edit] = ()
    """Writes that are ready, for example taints of a cluster."""


@dataclass(slots=True)
class ResolvedChanges:
    """The changed objects, and the writes that cause them; `hypothetical` are options that have no write."""

    changes: list[ObjectChange] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)
    hypothetical: list[str] = field(default_factory=list)


async def resolve_changes(host: Client, world: ObjectSet, requested: RequestedChanges) -> ResolvedChanges:
    """Return edits and changes; ConfigurationError names the option or document that is wrong."""
    edits = await to_edits(host, world, requested)
    created = created_namespaces(edits)
    resolved = ResolvedChanges([await dry_run(host, edit, created) for edit in edits], edits)
    _mark_unreachable(world, requested.down, resolved)
    return resolved


async def to_edits(host: Client, world: ObjectSet, requested: RequestedChanges) -> list[Edit]:
    """Return the writes in their order; ConfigurationError names the option or document that is wrong."""
    await check_namespace(host, requested.namespace, requested.documents)
    kinds, types = ServedKinds(host), federated_types(world, [])
    edits = [await _from_document(kinds, document, requested.namespace) for document in requested.documents]
    edits += [await _from_replicas(host, kinds, types, text, requested.namespace) for text in requested.replicas]
    for text in requested.deletions:
        edits.append(await _deletion(host, kinds, f"--delete {text}", text, requested.namespace))
    edits += [*_cluster_edits(world, requested), *requested.edits]
    read = {each.group_kind: each for each in world.kinds}
    edits = [_as_read(edit, read) for edit in edits]
    _reject_duplicates(edits)
    edits.sort(key=_rank)
    return edits


def _as_read(edit: Edit, kinds: Mapping[GroupKind, Resource]) -> Edit:
    """Return the edit in the version in which decisions read its kind; the versions of our kinds have one schema."""
    read = kinds.get(edit.resource.group_kind)
    if read is None or read == edit.resource:
        return edit
    body = {**edit.body, "apiVersion": read.api_version} if "apiVersion" in edit.body else edit.body
    return replace(edit, resource=read, body=body)


async def find_deletions(
    host: Client, documents: Iterable[Document], namespace: str
) -> tuple[list[str], list[Document]]:
    """Return the objects of manifests as `RequestedChanges.deletions` have them, and manifests without an object."""
    kinds = ServedKinds(host)
    found: list[str] = []
    absent: list[Document] = []
    for document in documents:
        manifest, metadata = document.manifest, document.manifest["metadata"]
        resource = await kinds.of(manifest["apiVersion"], manifest["kind"])
        where = str(metadata.get("namespace") or namespace) if resource is not None and resource.namespaced else ""
        if resource is None or await get_or_none(host, resource, where, metadata["name"]) is None:
            absent.append(document)
            continue
        found.append(f"{resource.group_resource}/{metadata['name']}{f'.{where}' if where else ''}")
    return found, absent


_ORDER = (
    "CustomResourceDefinition",
    "FederatedTypeConfig",
    "Namespace",
    "SchedulerPluginWebhookConfiguration",
    "SchedulingProfile",
    "ClusterOverridePolicy",
    "OverridePolicy",
    "ClusterPropagationPolicy",
    "PropagationPolicy",
)


def _rank(edit: Edit) -> int:
    """Return the edit's place in the order: dependencies first, clusters after objects, deletions last.

    Override policies precede the objects, so that no object reaches a member without its overrides.
    """
    if edit.verb is Verb.DELETE:
        return len(_ORDER) + 2
    if edit.resource == FEDERATED_CLUSTERS:
        return len(_ORDER) + 1
    return _ORDER.index(edit.resource.kind) if edit.resource.kind in _ORDER else len(_ORDER)


async def _from_document(kinds: ServedKinds, document: Document, namespace: str) -> Edit:
    manifest, origin = document.manifest, document.origin
    resource = await kinds.of(manifest["apiVersion"], manifest["kind"])
    if resource is None:
        raise ConfigurationError(f"{origin}: the server has no kind {manifest['kind']} in {manifest['apiVersion']}")
    metadata = manifest["metadata"]
    namespace = str(metadata.get("namespace") or namespace) if resource.namespaced else ""
    metadata = {**metadata, "namespace": namespace} if namespace else metadata
    return Edit(origin, Verb.APPLY, resource, namespace, metadata["name"], {**manifest, "metadata": metadata})


async def _from_replicas(
    host: Client, kinds: ServedKinds, types: Mapping[GroupKind, FederatedType], text: str, namespace: str
) -> Edit:
    target, separator, number = text.rpartition("=")
    if not separator or not number.isdecimal():
        raise ConfigurationError(f"--replicas {text!r}: write KIND/NAME=N, for example deployment/nginx=12")
    edit = await _deletion(host, kinds, f"--replicas {text}", target, namespace)
    type_ = types.get(edit.resource.group_kind)
    if type_ is None or not type_.paths.replicas_spec:
        raise ConfigurationError(f"--replicas {text}: the federation does not divide replicas of {edit.resource.kind}")
    # In the version in which the federation reads the kind, or the plan would compare two versions.
    return replace(
        edit,
        resource=type_.resource,
        verb=Verb.MERGE,
        body=whatif.replicas_patch(type_.paths.replicas_spec, int(number)),
    )


async def _deletion(host: Client, kinds: ServedKinds, origin: str, target: str, namespace: str) -> Edit:
    """Return the deletion of an existing object, written KIND/NAME or KIND/NAME.NAMESPACE."""
    kind, name = split_target(target, origin)
    resource = await kinds.named(kind)
    where = namespace if resource.namespaced else ""
    if await get_or_none(host, resource, where, name) is None:
        short, dot, last = name.rpartition(".")
        if not (dot and resource.namespaced and await get_or_none(host, resource, last, short) is not None):
            await check_namespace(host, where)
            message = f"{origin}: {describe_object(resource, where, name)} does not exist"
            raise await unknown_object(host, message, resource, name)
        name, where = short, last
    return Edit(origin, Verb.DELETE, resource, where, name, {})


def _cluster_edits(world: ObjectSet, requested: RequestedChanges) -> list[Edit]:
    """Return one edit for each cluster with changed taints or labels."""
    edited: dict[str, tuple[Object, Object, list[str]]] = {}

    def changed_so_far(option: str, name: str) -> tuple[Object, Object, list[str]]:
        cluster = _cluster(world, option, name)
        return edited.get(name, (cluster, cluster, []))

    for text in requested.taints:
        name, change = _split(text, "--taint", "NAME=key=value:Effect, or NAME=key- to remove one")
        before, after, origins = changed_so_far(f"--taint {text}", name)
        edited[name] = (before, _with_taint_change(after, text, change), [*origins, f"--taint {text}"])
    for text in requested.labels:
        name, change = _split(text, "--label-cluster", "NAME=key=value, or NAME=key- to remove one")
        before, after, origins = changed_so_far(f"--label-cluster {text}", name)
        edited[name] = (before, _with_label_change(after, text, change), [*origins, f"--label-cluster {text}"])
    return [
        Edit(", ".join(origins), Verb.MERGE, FEDERATED_CLUSTERS, "", name, _cluster_patch(before, after))
        for name, (before, after, origins) in edited.items()
    ]


def _cluster(world: ObjectSet, option: str, name: str) -> Object:
    found = world.get(FEDERATED_CLUSTERS, "", name)
    if found is None:
        raise unknown_cluster(option, name, {str(each["metadata"]["name"]) for each in world.list(FEDERATED_CLUSTERS)})
    return found


def _split(text: str, option: str, form: str) -> tuple[str, str]:
    name, separator, change = text.partition("=")
    if not separator or not name or not change:
        raise ConfigurationError(f"{option} {text!r}: write {form}")
    return name, change


def _with_taint_change(cluster: Mapping[str, Any], text: str, change: str) -> Object:
    rest, _, effect = change.rpartition(":")
    if change.endswith("-"):
        key, _, removed = change[:-1].partition(":")
        present = cluster["spec"].get("taints") or ()
        if not any(taint.get("key") == key and removed in ("", taint.get("effect")) for taint in present):
            raise ConfigurationError(f"--taint {text!r}: {cluster['metadata']['name']} has no taint {change[:-1]}")
        return whatif.without_taint(cluster, key, removed)
    key, _, value = rest.partition("=")
    if not key or effect not in tuple(Effect):
        raise ConfigurationError(f"--taint {text!r}: after the last colon write an Effect: {', '.join(Effect)}")
    return whatif.with_taint(cluster, key, value, effect)


def _with_label_change(cluster: Mapping[str, Any], text: str, change: str) -> Object:
    if change.endswith("-") and "=" not in change:
        if change[:-1] not in (cluster["metadata"].get("labels") or {}):
            name = cluster["metadata"]["name"]
            raise ConfigurationError(f"--label-cluster {text!r}: {name} has no label {change[:-1]}")
        return whatif.with_label(cluster, change[:-1], None)
    key, separator, value = change.partition("=")
    if not separator or not key:
        raise ConfigurationError(f"--label-cluster {text!r}: write NAME=key=value, or NAME=key- to remove one")
    return whatif.with_label(cluster, key, value)


def _cluster_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> Object:
    patch: Object = {}
    if before.get("spec") != after.get("spec"):
        patch["spec"] = {"taints": after["spec"]["taints"]}
    old, new = before["metadata"].get("labels") or {}, after["metadata"].get("labels") or {}
    if old != new:
        patch["metadata"] = {"labels": {**new, **dict.fromkeys(key for key in old if key not in new)}}
    return patch


def _reject_duplicates(edits: Sequence[Edit]) -> None:
    seen: dict[tuple[object, ...], Edit] = {}
    for edit in edits:
        first = seen.setdefault((edit.resource, edit.namespace, edit.name), edit)
        if first is not edit:
            raise ConfigurationError(f"{edit.origin}: {first.origin} already changes {edit}; name it once")


def _mark_unreachable(world: ObjectSet, down: Sequence[str], resolved: ResolvedChanges) -> None:
    """ObjectChange the status of clusters that are assumed unreachable, after any edit of the same cluster."""
    for name in dict.fromkeys(down):
        cluster = _cluster(world, f"--cluster-down {name}", name)
        other = next((c for c in resolved.changes if c.resource == FEDERATED_CLUSTERS and c.name == name), None)
        if other is not None:
            resolved.changes.remove(other)
        after = other.after if other is not None else cluster
        if after is not None:
            resolved.changes.append(ObjectChange(FEDERATED_CLUSTERS, "", name, cluster, whatif.as_down(after)))
        resolved.hypothetical.append(f"--cluster-down {name}")
