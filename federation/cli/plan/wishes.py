"""What a plan is asked for, from the command line to changes of the world.

Manifests, scaling, taints, labels and deletions become edits, which the server tries out; a cluster that is down is
only a thought, made here. One object is named by one wish, except that all wishes about a cluster go together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from federation.api.federatedtype import FederatedType
from federation.api.resources import FEDERATED_CLUSTERS, Object
from federation.base.errors import ConfigurationError
from federation.cli.joining import EFFECTS
from federation.cli.plan.edits import Edit, Verb, find, namespaces_of, try_out
from federation.cli.plan.kinds import Kinds
from federation.cli.plan.manifests import Document
from federation.client.protocol import Client
from federation.scheduling.whatif import changes as hypothetical
from federation.scheduling.whatif.world import Change, World, federated_types


@dataclass(frozen=True, slots=True)
class Wishes:
    """The options of `fedctl plan` as they were given."""

    documents: Sequence[Document] = ()
    down: Sequence[str] = ()
    taints: Sequence[str] = ()
    labels: Sequence[str] = ()
    replicas: Sequence[str] = ()
    deletions: Sequence[str] = ()
    namespace: str = "default"


@dataclass(slots=True)
class Wanted:
    """What the wishes come to: `thoughts` are those that cannot be applied, as the user wrote them."""

    changes: list[Change] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)


async def to_wanted(host: Client, world: World, wishes: Wishes) -> Wanted:
    """Return edits and changes; ConfigurationError names the option or the document that is wrong."""
    kinds, types = Kinds(host), federated_types(world, [])
    edits = [await _of_document(kinds, document, wishes.namespace) for document in wishes.documents]
    edits += [await _of_replicas(host, kinds, types, text, wishes.namespace) for text in wishes.replicas]
    edits += [await _of_deletion(host, kinds, text, wishes.namespace) for text in wishes.deletions]
    edits += _of_clusters(world, wishes)
    _refuse_repetition(edits)
    edits.sort(key=_rank)
    made = namespaces_of(edits)
    wanted = Wanted([await try_out(host, edit, made) for edit in edits], edits)
    _take_down(world, wishes.down, wanted)
    return wanted


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
    """Return the edit's place: what others depend on first, clusters behind the objects, deletions at the end.

    An override that is there before its object comes keeps the object from arriving without it.
    """
    if edit.verb is Verb.DELETE:
        return len(_ORDER) + 2
    if edit.resource == FEDERATED_CLUSTERS:
        return len(_ORDER) + 1
    return _ORDER.index(edit.resource.kind) if edit.resource.kind in _ORDER else len(_ORDER)


async def _of_document(kinds: Kinds, document: Document, namespace: str) -> Edit:
    manifest, origin = document.manifest, document.origin
    resource = await kinds.of(manifest["apiVersion"], manifest["kind"])
    if resource is None:
        raise ConfigurationError(f"{origin}: the server does not know {manifest['kind']} in {manifest['apiVersion']}")
    metadata = manifest["metadata"]
    where = str(metadata.get("namespace") or namespace) if resource.namespaced else ""
    placed = {**metadata, "namespace": where} if where else metadata
    return Edit(origin, Verb.APPLY, resource, where, metadata["name"], {**manifest, "metadata": placed})


async def _of_replicas(
    host: Client, kinds: Kinds, types: Mapping[tuple[str, str], FederatedType], text: str, namespace: str
) -> Edit:
    target, separator, number = text.rpartition("=")
    if not separator or not number.isdecimal():
        raise ConfigurationError(f"--replicas {text!r}: write KIND/NAME=N, for example deployment/nginx=12")
    edit = await _named(host, kinds, f"--replicas {text}", target, namespace)
    type_ = types.get((edit.resource.api_version, edit.resource.kind))
    if type_ is None or not type_.paths.replicas_spec:
        raise ConfigurationError(f"--replicas {text}: a federated {edit.resource.kind} has no replicas to divide")
    return replace(edit, verb=Verb.MERGE, body=hypothetical.replicas_patch(type_.paths.replicas_spec, int(number)))


async def _of_deletion(host: Client, kinds: Kinds, text: str, namespace: str) -> Edit:
    return await _named(host, kinds, f"--delete {text}", text, namespace)


async def _named(host: Client, kinds: Kinds, origin: str, target: str, namespace: str) -> Edit:
    """Return an edit of an existing object, written KIND/NAME or KIND/NAME.NAMESPACE."""
    kind, separator, name = target.partition("/")
    if not separator or not kind or not name or "/" in name:
        raise ConfigurationError(f"{origin}: write KIND/NAME, for example deployment/nginx")
    resource = await kinds.named(kind)
    where = namespace if resource.namespaced else ""
    if await find(host, resource, where, name) is None:
        short, dot, last = name.rpartition(".")
        if not (dot and resource.namespaced and await find(host, resource, last, short) is not None):
            shown = f" in namespace {where}" if where else ""
            raise ConfigurationError(f"{origin}: {resource.kind.lower()}/{name}{shown} does not exist")
        name, where = short, last
    return Edit(origin, Verb.DELETE, resource, where, name, {})


def _of_clusters(world: World, wishes: Wishes) -> list[Edit]:
    """Return one edit per cluster that is tainted or labelled."""
    wanted: dict[str, tuple[Object, Object, list[str]]] = {}

    def open_cluster(option: str, name: str) -> tuple[Object, Object, list[str]]:
        cluster = _cluster(world, option, name)
        return wanted.setdefault(name, (cluster, cluster, []))

    for text in wishes.taints:
        name, change = _split(text, "--taint", "NAME=key=value:Effect, or NAME=key- to remove one")
        before, after, origins = open_cluster(f"--taint {text}", name)
        wanted[name] = (before, _tainted(after, text, change), [*origins, f"--taint {text}"])
    for text in wishes.labels:
        name, change = _split(text, "--label-cluster", "NAME=key=value, or NAME=key- to remove one")
        before, after, origins = open_cluster(f"--label-cluster {text}", name)
        wanted[name] = (before, _labelled(after, text, change), [*origins, f"--label-cluster {text}"])
    return [
        Edit(", ".join(origins), Verb.MERGE, FEDERATED_CLUSTERS, "", name, _cluster_patch(before, after))
        for name, (before, after, origins) in wanted.items()
    ]


def _cluster(world: World, option: str, name: str) -> Object:
    found = world.get(FEDERATED_CLUSTERS, "", name)
    if found is None:
        known = ", ".join(sorted(c["metadata"]["name"] for c in world.list(FEDERATED_CLUSTERS))[:10])
        raise ConfigurationError(f"{option}: there is no cluster {name!r}; known: {known or 'none'}")
    return found


def _split(text: str, option: str, form: str) -> tuple[str, str]:
    name, separator, change = text.partition("=")
    if not separator or not name or not change:
        raise ConfigurationError(f"{option} {text!r}: write {form}")
    return name, change


def _tainted(cluster: Mapping[str, Any], text: str, change: str) -> Object:
    rest, _, effect = change.rpartition(":")
    if change.endswith("-"):
        key, _, removed = change[:-1].partition(":")
        present = cluster["spec"].get("taints") or ()
        if not any(taint.get("key") == key and removed in ("", taint.get("effect")) for taint in present):
            raise ConfigurationError(f"--taint {text!r}: {cluster['metadata']['name']} has no taint {change[:-1]}")
        return hypothetical.without_taint(cluster, key, removed)
    key, _, value = rest.partition("=")
    if not key or effect not in EFFECTS:
        raise ConfigurationError(f"--taint {text!r}: the Effect behind the last colon is one of {', '.join(EFFECTS)}")
    return hypothetical.with_taint(cluster, key, value, effect)


def _labelled(cluster: Mapping[str, Any], text: str, change: str) -> Object:
    if change.endswith("-") and "=" not in change:
        if change[:-1] not in (cluster["metadata"].get("labels") or {}):
            name = cluster["metadata"]["name"]
            raise ConfigurationError(f"--label-cluster {text!r}: {name} has no label {change[:-1]}")
        return hypothetical.with_label(cluster, change[:-1], None)
    key, separator, value = change.partition("=")
    if not separator or not key:
        raise ConfigurationError(f"--label-cluster {text!r}: write NAME=key=value, or NAME=key- to remove one")
    return hypothetical.with_label(cluster, key, value)


def _cluster_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> Object:
    patch: Object = {}
    if before.get("spec") != after.get("spec"):
        patch["spec"] = {"taints": after["spec"]["taints"]}
    old, new = before["metadata"].get("labels") or {}, after["metadata"].get("labels") or {}
    if old != new:
        patch["metadata"] = {"labels": {**new, **dict.fromkeys(key for key in old if key not in new)}}
    return patch


def _refuse_repetition(edits: Sequence[Edit]) -> None:
    seen: dict[tuple[object, ...], Edit] = {}
    for edit in edits:
        first = seen.setdefault((edit.resource, edit.namespace, edit.name), edit)
        if first is not edit:
            raise ConfigurationError(f"{edit.origin}: {edit} is named already by {first.origin}")


def _take_down(world: World, down: Sequence[str], wanted: Wanted) -> None:
    """Add what nobody can apply: clusters that do not answer, on top of what else is wished for them."""
    for name in dict.fromkeys(down):
        cluster = _cluster(world, f"--cluster-down {name}", name)
        other = next((c for c in wanted.changes if c.resource == FEDERATED_CLUSTERS and c.name == name), None)
        if other is not None:
            wanted.changes.remove(other)
        after = other.after if other is not None else cluster
        if after is not None:
            wanted.changes.append(Change(FEDERATED_CLUSTERS, "", name, cluster, hypothetical.as_down(after)))
        wanted.thoughts.append(f"--cluster-down {name}")
