"""The plan file: the writes, the objects that the plan was computed from, and the expected result. Checks its validity.

Each object that the decisions depend on is recorded with its uid and a digest of its relevant fields. Heartbeats and
statuses are not part of the digest, or every plan would expire within seconds. Free resources are not compared either:
before a plan is applied it is computed again, and the result must be the same. Everything here is pure except reading
and writing the file.

Decision: docs/decisions/0054-the-web-ui-applies-what-it-showed.md
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
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
from federation.apimachinery.resources import Object, Resource
from federation.planning.rendering.memberobject import content_hash
from federation.plans.edits import Edit, describe_object, edit_from_json, resource_from_json, resource_to_json
from federation.scheduling.snapshot import to_cluster
from federation.scheduling.whatif.planresult import ObjectPlan, Plan
from federation.scheduling.whatif.state import ObjectChange, ObjectSet, title_of

_KIND, _VERSION = "FederationPlan", 1
_NOT_COMPARED = frozenset((names.DEPARTED_CLUSTERS, wellknown.LAST_APPLIED_CONFIGURATION))


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

    def __str__(self) -> str:
        return describe_object(self.resource, self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class PlanFile:
    """The content of a plan file; `hypothetical` are the options that prevent it from being applied."""

    edits: Sequence[Edit]
    hypothetical: Sequence[str]
    observed: Sequence[ObservedObject]
    expected: Sequence[ExpectedObject]


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
        for resource, namespace, name in (*planned.based_on, _federated_key(planned)):
            keys.setdefault((resource, namespace, name), world.get(resource, namespace, name))
    observed = [_observe(*key, obj) for key, obj in keys.items()]
    return PlanFile(edits, hypothetical, observed, expected_objects(plan))


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


def _federated_key(obj: ObjectPlan) -> tuple[Resource, str, str]:
    return (
        FEDERATED_OBJECTS if obj.resource.namespaced else CLUSTER_FEDERATED_OBJECTS,
        obj.namespace,
        obj.federated_name,
    )


def _observe(resource: Resource, namespace: str, name: str, obj: Mapping[str, Any] | None) -> ObservedObject:
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


def differences(saved: PlanFile, get: Getter, world: ObjectSet, plan: Plan) -> list[str]:
    """Return one line per difference from the saved plan, [] when it is still valid.

    `get` returns an object's present state; `plan` is the result of the same edits computed now.
    """
    lines = []
    for observed in saved.observed:
        key = (observed.resource, observed.namespace, observed.name)
        found = _observe(*key, get(*key))
        if found == observed:
            continue
        if not found.digest:
            lines.append(f"{observed} was deleted")
        elif not observed.digest:
            lines.append(f"{observed} exists now")
        else:
            replaced = found.uid != observed.uid
            lines.append(f"{observed} was deleted and recreated" if replaced else f"{observed} has changed")
    known = {observed.name for observed in saved.observed if observed.resource == FEDERATED_CLUSTERS}
    clusters = sorted(str(c["metadata"]["name"]) for c in world.list(FEDERATED_CLUSTERS))
    lines += [f"FederatedCluster {name} was added" for name in clusters if name not in known]
    now = {(e.resource, e.namespace, e.name): e for e in expected_objects(plan)}
    lines += _result_differences(now, saved.expected)
    planned = {(e.resource, e.namespace, e.name) for e in saved.expected}
    return lines + [f"{expected} would change too" for key, expected in now.items() if key not in planned]


def _result_differences(now: Mapping[tuple[Any, ...], ExpectedObject], saved: Iterable[ExpectedObject]) -> list[str]:
    lines = []
    for expected in saved:
        found = now.get((expected.resource, expected.namespace, expected.name))
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
    """Return a digest of what the plan was computed from and of its result, not of its writes."""
    return content_hash(_basis(saved))


def _basis(saved: PlanFile) -> dict[str, Any]:
    return {
        "seen": [_observed_to_json(observed) for observed in saved.observed],
        "expected": [_expected_to_json(expected) for expected in saved.expected],
    }


def write_plan_file(path: Path, saved: PlanFile) -> None:
    """Write the file; ConfigurationError when it cannot be written."""
    content = {
        "kind": _KIND,
        "version": _VERSION,
        "edits": [edit.to_json() for edit in saved.edits],
        "hypothetical": list(saved.hypothetical),
        **_basis(saved),
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
        raise ConfigurationError(f"{path}: {error.strerror}") from error
    except orjson.JSONDecodeError as error:
        raise ConfigurationError(f"{path} is not a plan file: {error}") from error
    if not isinstance(content, dict) or content.get("kind") != _KIND:
        raise ConfigurationError(f"{path} is not a plan file; make one with: fedctl plan … --out {path}")
    if content.get("version") != _VERSION:
        raise ConfigurationError(f"{path} has version {content.get('version')}, and this fedctl reads {_VERSION}")
    try:
        return PlanFile(
            [edit_from_json(edit) for edit in content["edits"]],
            [str(option) for option in content["hypothetical"]],
            [_observed_from_json(observed) for observed in content["seen"]],
            [_expected_from_json(expected) for expected in content["expected"]],
        )
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
