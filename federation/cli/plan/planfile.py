"""A plan as a file: what to write, what it was based on, and what has to come of it; and whether that still holds.

Every object that the decisions depended on is kept with uid and a digest of what of it matters: heartbeats and statuses
do not, so that a plan stays good while the world only breathes. Free resources are not compared: before anything is
applied the plan is computed again, and its result has to be the same. Everything here is pure but reading the file.
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
    Object,
    Resource,
)
from federation.base.errors import ConfigurationError
from federation.cli.plan.edits import Edit, edit_from_json, resource_from_json, resource_to_json
from federation.planning.memberobject import content_hash
from federation.scheduling.snapshot import to_cluster
from federation.scheduling.whatif.result import ObjectPlan, Plan
from federation.scheduling.whatif.world import Change, World

_KIND, _VERSION = "FederationPlan", 1
_NOT_COMPARED = frozenset((names.DEPARTED_CLUSTERS, names.LAST_APPLIED_CONFIGURATION))


Finder = Callable[[Resource, str, str], "Mapping[str, Any] | None"]
"""Returns an object by kind, namespace and name."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One object as it was: `uid` and `digest` are "" for one that did not exist."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    digest: str

    def __str__(self) -> str:
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.resource.kind} {self.name}{where}"


@dataclass(frozen=True, slots=True)
class Expected:
    """One object as it has to be: cluster → replicas and digest of the manifest."""

    resource: Resource
    namespace: str
    name: str
    federated_name: str
    clusters: Mapping[str, tuple[int | None, str]]

    def __str__(self) -> str:
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.resource.kind.lower()}/{self.name}{where}"


@dataclass(frozen=True, slots=True)
class PlanFile:
    """What a plan file holds."""

    edits: Sequence[Edit]
    thoughts: Sequence[str]
    seen: Sequence[Seen]
    expected: Sequence[Expected]


def to_plan_file(
    plan: Plan, world: World, edits: Sequence[Edit], changes: Iterable[Change], thoughts: Sequence[str]
) -> PlanFile:
    """Return what is to be kept of a plan."""
    keys: dict[tuple[Resource, str, str], Object | None] = {}
    for change in changes:
        keys[change.resource, change.namespace, change.name] = change.before
    for resource in (FEDERATED_CLUSTERS, FEDERATED_TYPE_CONFIGS):
        for obj in world.list(resource):
            keys.setdefault((resource, "", obj["metadata"]["name"]), obj)
    for planned in plan.changed:
        for resource, namespace, name in (*planned.based_on, _federated_key(planned)):
            keys.setdefault((resource, namespace, name), world.get(resource, namespace, name))
    seen = [_see(*key, obj) for key, obj in keys.items()]
    return PlanFile(edits, thoughts, seen, to_expected(plan))


def to_expected(plan: Plan) -> list[Expected]:
    """Return what the plan says will be, of every object that changes."""
    return [
        Expected(
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


def _see(resource: Resource, namespace: str, name: str, obj: Mapping[str, Any] | None) -> Seen:
    if obj is None:
        return Seen(resource, namespace, name, "", "")
    return Seen(resource, namespace, name, str(obj["metadata"].get("uid", "")), _digest(resource, obj))


def _digest(resource: Resource, obj: Mapping[str, Any]) -> str:
    """Return a digest of what of the object matters for decisions."""
    metadata = obj["metadata"]
    if resource == FEDERATED_CLUSTERS:
        seen = to_cluster(obj)
        content: dict[str, Any] = {
            "labels": seen.labels,
            "taints": sorted(map(list, seen.taints)),
            "types": sorted(map(list, seen.api_types)),
            "state": [seen.is_joined, seen.is_ready, seen.is_terminating],
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


def differences(held: PlanFile, find: Finder, world: World, plan: Plan) -> list[str]:
    """Return one line per thing that is not any more as the plan saw it, [] when it still holds.

    `find` returns an object as it is now, `plan` is what the same edits come to now.
    """
    lines = []
    for seen in held.seen:
        found = _see(seen.resource, seen.namespace, seen.name, find(seen.resource, seen.namespace, seen.name))
        if found == seen:
            continue
        if not found.digest:
            lines.append(f"{seen} is gone")
        elif not seen.digest:
            lines.append(f"{seen} exists now")
        else:
            replaced = found.uid != seen.uid
            lines.append(f"{seen} is another one of the same name" if replaced else f"{seen} has changed")
    known = {seen.name for seen in held.seen if seen.resource == FEDERATED_CLUSTERS}
    come = sorted(str(c["metadata"]["name"]) for c in world.list(FEDERATED_CLUSTERS))
    lines += [f"FederatedCluster {name} has come" for name in come if name not in known]
    now = {(e.resource, e.namespace, e.name): e for e in to_expected(plan)}
    lines += _result_differences(now, held.expected)
    planned = {(e.resource, e.namespace, e.name) for e in held.expected}
    return lines + [f"{expected} would change, too" for key, expected in now.items() if key not in planned]


def _result_differences(now: Mapping[tuple[Any, ...], Expected], held: Iterable[Expected]) -> list[str]:
    lines = []
    for expected in held:
        found = now.get((expected.resource, expected.namespace, expected.name))
        if found is None:
            lines.append(f"{expected} would not change any more")
        elif found.clusters != expected.clusters:
            lines.append(f"{expected} would come out otherwise: {describe(expected.clusters, found.clusters)}")
    return lines


def describe(wanted: Mapping[str, tuple[int | None, str]], found: Mapping[str, tuple[int | None, str]]) -> str:
    """Return per cluster how what was found differs from what was wanted: `east 4 instead of 6, north missing`."""
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


def write_plan_file(path: Path, held: PlanFile) -> None:
    """Write the file; ConfigurationError when that is not possible."""
    content = {
        "kind": _KIND,
        "version": _VERSION,
        "edits": [edit.to_json() for edit in held.edits],
        "hypothetical": list(held.thoughts),
        "seen": [_seen_to_json(seen) for seen in held.seen],
        "expected": [_expected_to_json(expected) for expected in held.expected],
    }
    try:
        # Manifests may be Secrets: the file is its owner's only, also when it was there before.
        path.touch(mode=0o600)
        path.chmod(0o600)
        path.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2))
    except OSError as error:
        raise ConfigurationError(f"--out {path}: {error.strerror}") from error


def read_plan_file(path: Path) -> PlanFile:
    """Return a plan file's content; ConfigurationError says why it is none."""
    try:
        content = orjson.loads(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from error
    except orjson.JSONDecodeError as error:
        raise ConfigurationError(f"{path} is no plan file: {error}") from error
    if not isinstance(content, dict) or content.get("kind") != _KIND:
        raise ConfigurationError(f"{path} is no plan file; make one with: fedctl plan … --out {path}")
    if content.get("version") != _VERSION:
        raise ConfigurationError(f"{path} is of version {content.get('version')}, and this fedctl reads {_VERSION}")
    try:
        return PlanFile(
            [edit_from_json(edit) for edit in content["edits"]],
            [str(thought) for thought in content["hypothetical"]],
            [_seen_from_json(seen) for seen in content["seen"]],
            [_expected_from_json(expected) for expected in content["expected"]],
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigurationError(f"{path} is damaged: {error!r}; make the plan again") from error


def _key_to_json(resource: Resource, namespace: str, name: str) -> dict[str, Any]:
    return {"resource": resource_to_json(resource), "namespace": namespace, "name": name}


def _seen_to_json(seen: Seen) -> dict[str, Any]:
    key = _key_to_json(seen.resource, seen.namespace, seen.name)
    return {**key, "uid": seen.uid, "digest": seen.digest}


def _seen_from_json(value: Mapping[str, Any]) -> Seen:
    resource = resource_from_json(value["resource"])
    return Seen(resource, value["namespace"], value["name"], value["uid"], value["digest"])


def _expected_to_json(expected: Expected) -> dict[str, Any]:
    clusters = {
        cluster: {"replicas": replicas, "digest": digest} for cluster, (replicas, digest) in expected.clusters.items()
    }
    key = _key_to_json(expected.resource, expected.namespace, expected.name)
    return {**key, "federatedName": expected.federated_name, "clusters": clusters}


def _expected_from_json(value: Mapping[str, Any]) -> Expected:
    clusters = {cluster: (entry["replicas"], entry["digest"]) for cluster, entry in value["clusters"].items()}
    resource = resource_from_json(value["resource"])
    return Expected(resource, value["namespace"], value["name"], value["federatedName"], clusters)
