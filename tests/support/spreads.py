"""Builders for tests of WorkloadSpreads."""

from collections.abc import Generator, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import orjson

from federation.api import names
from federation.apimachinery.clock import to_rfc3339
from federation.apiserver.semantics.validation.podpatches import validate_patched_pod
from federation.apiserver.semantics.validation.selectorvalidation import (
    validate_label_selector,
    validate_node_term,
    validate_toleration,
)
from federation.planning.workloadspread.hub import to_hub
from federation.planning.workloadspread.ledger import Choice, choose_subset, record_deletion
from federation.planning.workloadspread.specvalidation import CoreRules
from federation.planning.workloadspread.versions import pod_version

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
CLONE_SET = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": "web", "controller": True}
RULES = CoreRules(
    label_selector=validate_label_selector,
    required_term=partial(validate_node_term, strict=True),
    preferred_term=partial(validate_node_term, strict=False),
    toleration=validate_toleration,
    patched_pod=validate_patched_pod,
)
REPLICA_SET = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "controller": True}


def with_controller(pod: Mapping[str, Any], owner: Mapping[str, Any] = CLONE_SET) -> dict[str, Any]:
    """Return the pod with a controller, its own when it has one."""
    metadata = pod.get("metadata") or {}
    return {**pod, "metadata": {"ownerReferences": [dict(owner)], **metadata}}


def drive(search: Generator[Any, Any, Any], owners: Iterable[Any] = ()) -> Any:
    """Return the result of a search that is given the next of `owners` at each read."""
    rest = iter(owners)
    try:
        next(search)
        while True:
            search.send(next(rest, None))
    except StopIteration as done:
        return done.value


def seconds_ago(age_s: float) -> str:
    """Return the Kubernetes time that long before `NOW`."""
    return to_rfc3339(NOW - timedelta(seconds=age_s))


def a_spread(subsets: Iterable[Mapping[str, Any]], kind: str = "CloneSet", **spec: Any) -> dict[str, Any]:
    """Return a WorkloadSpread `ws` in the v1beta1 form."""
    target = {"apiVersion": "apps.kruise.io/v1alpha1" if kind == "CloneSet" else "apps/v1", "kind": kind, "name": "web"}
    return to_hub({"metadata": {"name": "ws"}, "spec": {"targetRef": target, "subsets": list(subsets), **spec}})


def a_pod(name: str, subset: str | None = None, *, uid: str = "", node: str = "", **status: Any) -> dict[str, Any]:
    """Return a pod of a CloneSet that is in a subset of the WorkloadSpread `ws`, or in none."""
    match = {"name": "ws", "subset": subset} | ({"uid": uid} if uid else {})
    annotations = {names.MATCHED_WORKLOAD_SPREAD: orjson.dumps(match).decode()} if subset is not None else {}
    metadata: dict[str, Any] = {"name": name, "annotations": annotations}
    return with_controller({"metadata": metadata, "spec": {"nodeName": node} if node else {}, "status": status})


def vector_pod(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the pod of a vector: name, nodeName, phase, ready, readyTime, created, ageSeconds, restarts, ..."""
    pod = a_pod(given.get("name") or "", given.get("subset") or None, node=given.get("nodeName") or "")
    metadata, status = pod["metadata"], pod["status"]
    metadata["labels"] = dict(given.get("labels") or {})
    version = given.get("version")
    if version and version != "versionIgnored":
        metadata["ownerReferences"] = [dict(REPLICA_SET)]
        metadata["labels"]["pod-template-hash"] = version
    if given.get("deleting"):
        metadata["deletionTimestamp"] = seconds_ago(1)
    if given.get("created") is not None:
        metadata["creationTimestamp"] = to_rfc3339(datetime.fromtimestamp(given["created"], UTC))
    if given.get("ageSeconds") is not None:
        metadata["creationTimestamp"] = seconds_ago(given["ageSeconds"])
    status["phase"] = given.get("phase") or ""
    status["conditions"] = [*(given.get("conditions") or ())]
    if given.get("ready"):
        since = given.get("readyTime")
        condition = {"type": "Ready", "status": "True"}
        if since is not None:
            condition["lastTransitionTime"] = to_rfc3339(datetime.fromtimestamp(since, UTC))
        status["conditions"].append(condition)
    status["containerStatuses"] = [{"name": "main", "restartCount": given.get("restarts") or 0}]
    return pod


class Admission:
    """One ledger: creates and deletes pods of a WorkloadSpread as its webhook does, without a controller's reconcile."""

    def __init__(self, spread: Mapping[str, Any], total: int = 0, owner: Mapping[str, Any] = CLONE_SET) -> None:
        self.spread = dict(spread)
        self.total = total
        self.owner = owner
        self.pods: dict[str, dict[str, Any]] = {}

    def create(self, name: str, version: str = "") -> str | None:
        """Admit a pod; return the name of its subset, None when it is admitted unchanged."""
        metadata = {"name": name, "labels": {"pod-template-hash": version}}
        pod = with_controller({"metadata": metadata, "spec": {}}, self.owner)
        choice = self.choose(pod)
        subset = None if choice.subset is None else str(choice.subset["name"])
        self.pods[name] = {**a_pod(name, subset), "metadata": {**a_pod(name, subset)["metadata"], **pod["metadata"]}}
        return subset

    def choose(self, pod: dict[str, Any]) -> Choice:
        """Choose the subset of a pod and write the ledger."""
        choice = choose_subset(
            self.spread, pod, version=pod_version(pod), total=self.total, uid=f"uid-{len(self.pods)}", now=NOW
        )
        if choice.status is not None:
            self.spread["status"] = choice.status
        return choice

    def delete(self, name: str) -> None:
        """Admit the deletion of a pod."""
        pod = self.pods.pop(name)
        status = record_deletion(self.spread, pod, version=pod_version(pod), total=self.total, now=NOW)
        if status is not None:
            self.spread["status"] = status
