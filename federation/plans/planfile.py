"""The plan file: the writes, the objects that the plan was computed from, and the expected result. Checks its validity.

Each object that the decisions depend on is recorded with its uid and a digest of its relevant fields. Heartbeats and
statuses are not part of the digest, or every plan would expire within seconds. Free resources are not compared either:
before a plan is applied it is computed again, and the result must be the same. If it is not, `clusterfacts.py` says
what changed in the clusters since. A plan that the host computed may depend on objects that its user may not see: the
file has one digest of all of them. Everything here is pure except reading and writing the file.

Decision: docs/decisions/0054-the-web-ui-applies-what-it-showed.md
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from federation.api import names
from federation.api.resources import (
    CLUSTER_FEDERATED_OBJECTS,
    FEDERATED_CLUSTERS,
    FEDERATED_OBJECTS,
    FEDERATED_TYPE_CONFIGS,
)
from federation.apimachinery import wellknown
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.nearestfile import unreadable
from federation.apimachinery.resources import Object, Resource
from federation.planning.rendering.memberobject import content_hash
from federation.plans.clusterfacts import Facts, capacity_changes, decisive_changes, to_facts
from federation.plans.edits import Edit, describe_object, edit_from_json, resource_from_json, resource_to_json
from federation.scheduling.snapshot import to_cluster
from federation.scheduling.whatif.planresult import ObjectPlan, Plan
from federation.scheduling.whatif.state import ObjectChange, ObjectSet, title_of

_KIND, _VERSION = "FederationPlan", 1
_NOT_COMPARED = frozenset(
    (names.ARRIVING_CLUSTERS, names.DECIDED_AT, names.DEPARTED_CLUSTERS, wellknown.LAST_APPLIED_CONFIGURATION)
)


Key = tuple[Resource, str, str]
"""Resource, namespace and name of an object."""
Getter = Callable[[Resource, str, str], "Mapping[str, Any] | None"]
"""Returns an object by resource, namespace and name; None when it does not exist."""


@dataclass(frozen=True, slots=True)
class ObservedObject:
    """An object that the plan depends on, when the plan was made; `uid` and `digest` are "" if it did not exist."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    digest: str

    @property
    def key(self) -> Key:
        """Its resource, namespace and name."""
        return self.resource, self.namespace, self.name

    def __str__(self) -> str:
        return title_of(self.resource, self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class ExpectedObject:
    """An object that the plan changes, with its replicas and manifest digest per cluster afterwards."""

    resource: Resource
    namespace: str
    name: str
    federated_name: str
    clusters: Mapping[str, tuple[int | None, str]]

    @property
    def key(self) -> Key:
        """Its resource, namespace and name."""
        return self.resource, self.namespace, self.name

    def __str__(self) -> str:
        return describe_object(self.resource, self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class PlanFile:
    """The content of a plan file; `hypothetical` are the options that prevent it from being applied.

    `clusters` are facts for messages, by name. `hidden` is the digest of what the user who made the plan may not see,
    "" if there is nothing. `change` names the change, for people.
    """

    edits: Sequence[Edit]
    hypothetical: Sequence[str]
    observed: Sequence[ObservedObject]
    expected: Sequence[ExpectedObject]
    clusters: Mapping[str, Facts] = field(default_factory=dict)
    hidden: str = ""
    change: str = ""


def to_plan_file(
    plan: Plan, world: ObjectSet, edits: Sequence[Edit], changes: Iterable[ObjectChange], hypothetical: Sequence[str]
) -> PlanFile:
    """Return the content of the plan's file."""
    keys: dict[tuple[Resource, str, str], Object | None] = {}
    for change in changes:
        keys[change.resource, change.namespace, change.name] = change.before
    for resource in (FEDERATED_CLUSTERS, FEDERATED_TYPE_CONFIGS):
        for obj in world.list(resource):
            keys.setdefault((resource, "", obj["metadata"]["name"]), obj)
    for planned in plan.changed:
        for resource, namespace, name in (*planned.based_on, federated_key(planned)):
            keys.setdefault((resource, namespace, name), world.get(resource, namespace, name))
    observed = [observe(*key, obj) for key, obj in keys.items()]
    clusters = {str(obj["metadata"]["name"]): to_facts(obj) for obj in world.list(FEDERATED_CLUSTERS)}
    return PlanFile(edits, hypothetical, observed, expected_objects(plan), clusters)


def seen_by(
    saved: PlanFile, objects: Collection[Key], kinds: Collection[tuple[Resource, str]], *, sees_clusters: bool
) -> PlanFile:
    """Return the part of a plan's content that a user may see, with a digest of the rest.

    These are the `objects` that he may see, by resource, namespace and name, and observed objects of the `kinds` that
    he may list, by resource and namespace. Contents of hidden objects are not part of the digest, so that nobody can
    guess them by it.
    """

    def is_seen(each: ObservedObject) -> bool:
        return each.key in objects or (each.resource, each.namespace) in kinds

    observed = [each for each in saved.observed if is_seen(each)]
    expected = [each for each in saved.expected if each.key in objects]
    return replace(
        saved,
        observed=observed,
        expected=expected,
        clusters=saved.clusters if sees_clusters else {},
        hidden=hidden_digest(saved, {each.key for each in observed}, {each.key for each in expected}),
    )


def hidden_digest(saved: PlanFile, observed: Collection[Key], expected: Collection[Key]) -> str:
    """Return the digest of what a plan depends on, and changes, besides these objects; "" if that is nothing."""
    others: list[Any] = [
        [*_key_text(each.key), each.uid, _content_of_hidden(each)]
        for each in saved.observed
        if each.key not in observed
    ]
    others += [
        [*_key_text(each.key), {cluster: replicas for cluster, (replicas, _) in sorted(each.clusters.items())}]
        for each in saved.expected
        if each.key not in expected
    ]
    return content_hash({"others": sorted(others, key=orjson.dumps)}) if others else ""


def _content_of_hidden(each: ObservedObject) -> str:
    """Return the digest of a hidden object that decisions depend on, "" for copies of users' objects."""
    return "" if each.resource in (FEDERATED_OBJECTS, CLUSTER_FEDERATED_OBJECTS) else each.digest


def _key_text(key: Key) -> tuple[str, str, str]:
    return key[0].group_resource, key[1], key[2]


def expected_objects(plan: Plan) -> list[ExpectedObject]:
    """Return the expected result for every object that the plan changes."""
    return [
        ExpectedObject(
            obj.resource,
            obj.namespace,
            obj.name,
            obj.federated_name,
            {row.cluster: (row.after.replicas, row.after.digest) for row in obj.rows if row.after is not None},
        )
        for obj in plan.changed
    ]


def federated_key(obj: ObjectPlan) -> Key:
    """Return the key of a planned object's federated object."""
    return (
        FEDERATED_OBJECTS if obj.resource.namespaced else CLUSTER_FEDERATED_OBJECTS,
        obj.namespace,
        obj.federated_name,
    )


def observe(resource: Resource, namespace: str, name: str, obj: Mapping[str, Any] | None) -> ObservedObject:
    """Return what a plan file has about an object, None for one that does not exist."""
    if obj is None:
        return ObservedObject(resource, namespace, name, "", "")
    return ObservedObject(resource, namespace, name, str(obj["metadata"].get("uid", "")), _digest(resource, obj))


def _digest(resource: Resource, obj: Mapping[str, Any]) -> str:
    """Return a digest of the fields that decisions depend on."""
    metadata = obj["metadata"]
    if resource == FEDERATED_CLUSTERS:
        cluster = to_cluster(obj)
        content: dict[str, Any] = {
            "labels": cluster.labels,
            "taints": sorted(map(list, cluster.taints)),
            "types": sorted(map(list, cluster.api_types)),
            "state": [cluster.is_joined, cluster.is_ready, cluster.is_terminating],
        }
        return content_hash(content)
    annotations = {k: v for k, v in (metadata.get("annotations") or {}).items() if k not in _NOT_COMPARED}
    return content_hash(
        {
            "labels": metadata.get("labels") or {},
            "annotations": annotations,
            "isGoing": bool(metadata.get("deletionTimestamp")),
            **{key: value for key, value in obj.items() if key not in ("metadata", "status")},
        }
    )


def differences(saved: PlanFile, now: PlanFile, get: Getter | None = None) -> list[str]:
    """Return one line per difference from the saved plan, [] when it is still valid.

    `now` is the content of the same edits' plan, computed now. `get` returns the present state of further objects; None
    if they cannot be read.
    """
    present = {observed.key: observed for observed in now.observed}
    lines = []
    for observed in saved.observed:
        found = present.get(observed.key)
        if found is None and get is not None:
            found = observe(*observed.key, get(*observed.key))
        if found is not None and found != observed:
            lines += _changes(observed, found, saved, now)
    known = {observed.key for observed in saved.observed}
    if saved.clusters:
        lines += [f"{each} was added" for each in now.observed if _is_new_cluster(each, known)]
    results = {each.key: each for each in now.expected}
    differing = _result_differences(results, saved.expected)
    planned = {each.key for each in saved.expected}
    if saved.hidden or now.hidden:
        if (now.hidden or hidden_digest(now, known, planned)) != saved.hidden:
            lines.append("what the plan depends on besides, and not every user may see, is not as it was")
    else:
        differing += [f"{each} would change too" for key, each in results.items() if key not in planned]
    if differing:
        for name in sorted(saved.clusters.keys() & now.clusters.keys()):
            lines += capacity_changes(name, saved.clusters[name], now.clusters[name])
    return lines + differing


def changed_since(now: PlanFile, edits: Sequence[Edit], befores: Sequence[Object | None]) -> list[str]:
    """Return which objects of the writes are not as a plan that was computed a moment ago has seen them."""
    seen = {observed.key: observed for observed in now.observed}
    found = [
        observe(edit.resource, edit.namespace, edit.name, before) for edit, before in zip(edits, befores, strict=True)
    ]
    return [f"{each} has changed this moment" for each in found if seen.get(each.key) != each]


def _is_new_cluster(observed: ObservedObject, known: Collection[Key]) -> bool:
    return observed.resource == FEDERATED_CLUSTERS and bool(observed.digest) and observed.key not in known


def _changes(observed: ObservedObject, found: ObservedObject, saved: PlanFile, now: PlanFile) -> list[str]:
    """Return how an object differs from what the plan was computed from."""
    if not found.digest:
        return [f"{observed} was deleted"]
    if not observed.digest:
        return [f"{observed} exists now"]
    if found.uid != observed.uid:
        return [f"{observed} was deleted and recreated"]
    name = observed.name
    if observed.resource == FEDERATED_CLUSTERS and name in saved.clusters and name in now.clusters:
        return [*decisive_changes(name, saved.clusters[name], now.clusters[name])] or [f"{observed} has changed"]
    return [f"{observed} has changed"]


def _result_differences(now: Mapping[Key, ExpectedObject], saved: Iterable[ExpectedObject]) -> list[str]:
    lines = []
    for expected in saved:
        found = now.get(expected.key)
        if found is None:
            lines.append(f"{expected} would no longer change")
        elif found.clusters != expected.clusters:
            lines.append(f"{expected} would have another result: {describe(expected.clusters, found.clusters)}")
    return lines


def describe(wanted: Mapping[str, tuple[int | None, str]], found: Mapping[str, tuple[int | None, str]]) -> str:
    """Return the difference per cluster: `east 4 instead of 6, north missing`."""
    parts = []
    for cluster in sorted(wanted.keys() | found.keys()):
        one, other = wanted.get(cluster), found.get(cluster)
        if one == other:
            continue
        if other is None:
            parts.append(f"{cluster} missing")
        elif one is None:
            parts.append(f"{cluster} added")
        elif one[0] != other[0]:
            parts.append(f"{cluster} {other[0]} instead of {one[0]}")
        else:
            parts.append(f"{cluster} with other content")
    return ", ".join(parts)


def fingerprint(saved: PlanFile) -> str:
    """Return a digest of what the plan was computed from, of its result, and of its writes.

    Writes that move nothing, of labels for example, differ in nothing else.
    """
    return content_hash({**_basis(saved), "writes": [edit.to_json() for edit in saved.edits]})


def _basis(saved: PlanFile) -> dict[str, Any]:
    return {
        "seen": [_observed_to_json(observed) for observed in saved.observed],
        "expected": [_expected_to_json(expected) for expected in saved.expected],
    }


def _remarks(saved: PlanFile) -> dict[str, Any]:
    """Return what is for messages, and the digest of what is hidden."""
    found = {"clusters": dict(saved.clusters), "hidden": saved.hidden, "change": saved.change}
    return {key: value for key, value in found.items() if value}


def basis_to_json(saved: PlanFile) -> dict[str, Any]:
    """Return what a plan depends on, and its result, for the user who asks the host for a plan."""
    return {**_basis(saved), **_remarks(saved)}


def basis_from_json(content: Mapping[str, Any], edits: Sequence[Edit], change: str = "") -> PlanFile:
    """Return the content of a plan file, from the host's answer; KeyError, TypeError or ValueError if malformed."""
    return PlanFile(
        edits,
        [],
        [_observed_from_json(observed) for observed in content["seen"]],
        [_expected_from_json(expected) for expected in content["expected"]],
        {str(name): dict(facts) for name, facts in (content.get("clusters") or {}).items()},
        str(content.get("hidden") or ""),
        change,
    )


def write_plan_file(path: Path, saved: PlanFile) -> None:
    """Write the file; ConfigurationError when it cannot be written."""
    content = {
        "kind": _KIND,
        "version": _VERSION,
        "edits": [edit.to_json() for edit in saved.edits],
        "hypothetical": list(saved.hypothetical),
        **_basis(saved),
        **_remarks(saved),
    }
    try:
        # Manifests may contain Secrets, so only the owner may read the file, even one that existed before.
        path.touch(mode=0o600)
        path.chmod(0o600)
        path.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2))
    except OSError as error:
        raise ConfigurationError(f"--out {path}: {error.strerror}") from error


def read_plan_file(path: Path) -> PlanFile:
    """Return a plan file's content; ConfigurationError when it cannot be read or is not a plan file."""
    try:
        content = orjson.loads(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"{path}: {unreadable(path, error)}") from error
    except orjson.JSONDecodeError as error:
        raise ConfigurationError(f"{path} is not a plan file: {error}") from error
    if not isinstance(content, dict) or content.get("kind") != _KIND:
        raise ConfigurationError(f"{path} is not a plan file; make one with: fedctl plan … --out {path}")
    if content.get("version") != _VERSION:
        raise ConfigurationError(f"{path} has version {content.get('version')}, and this fedctl reads {_VERSION}")
    try:
        saved = basis_from_json(content, [edit_from_json(edit) for edit in content["edits"]])
        hypothetical = [str(option) for option in content["hypothetical"]]
        return replace(saved, hypothetical=hypothetical, change=str(content.get("change") or ""))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigurationError(f"{path} is damaged: {error!r}; make the plan again") from error


def _key_to_json(resource: Resource, namespace: str, name: str) -> dict[str, Any]:
    return {"resource": resource_to_json(resource), "namespace": namespace, "name": name}


def _observed_to_json(observed: ObservedObject) -> dict[str, Any]:
    key = _key_to_json(observed.resource, observed.namespace, observed.name)
    return {**key, "uid": observed.uid, "digest": observed.digest}


def _observed_from_json(value: Mapping[str, Any]) -> ObservedObject:
    resource = resource_from_json(value["resource"])
    return ObservedObject(resource, value["namespace"], value["name"], value["uid"], value["digest"])


def _expected_to_json(expected: ExpectedObject) -> dict[str, Any]:
    clusters = {
        cluster: {"replicas": replicas, "digest": digest} for cluster, (replicas, digest) in expected.clusters.items()
    }
    key = _key_to_json(expected.resource, expected.namespace, expected.name)
    return {**key, "federatedName": expected.federated_name, "clusters": clusters}


def _expected_from_json(value: Mapping[str, Any]) -> ExpectedObject:
    clusters = {cluster: (entry["replicas"], entry["digest"]) for cluster, entry in value["clusters"].items()}
    resource = resource_from_json(value["resource"])
    return ExpectedObject(resource, value["namespace"], value["name"], value["federatedName"], clusters)
