"""Builders for tests of WorkloadSpreads."""

import itertools
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import orjson

from federation.api import names
from federation.apimachinery.clock import to_rfc3339
from federation.apiserver.semantics.validation.podpatches import patch_pod, validate_lone_patch, validate_patched_pod
from federation.apiserver.semantics.validation.selectorvalidation import (
    validate_label_selector,
    validate_node_term,
    validate_toleration,
)
from federation.features.workloadspread.names import MATCHED_WORKLOAD_SPREAD
from federation.features.workloadspread.rules.adoption import Groups, group_pods
from federation.features.workloadspread.rules.deletioncosts import changed_costs
from federation.features.workloadspread.rules.hub import to_hub
from federation.features.workloadspread.rules.injection import inject_subset
from federation.features.workloadspread.rules.ledger import Choice, choose_subset, parse_match, record_deletion
from federation.features.workloadspread.rules.references import SpreadsOf, is_same_workload, object_name
from federation.features.workloadspread.rules.specvalidation import SpreadRules
from federation.features.workloadspread.rules.status import IsAbsent, SpreadStatus, compute_status
from federation.features.workloadspread.rules.subsets import name_of, target_of
from federation.features.workloadspread.rules.totals import is_selected
from federation.features.workloadspread.rules.versions import pod_version
from tests.support.vectors import facts

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
RECORDS = ("creatingPods", "deletingPods")
GROUPS = {"CloneSet": "apps.kruise.io", "Job": "batch"}
"""The groups of kinds that the vectors name without one; others are in apps."""
CLONE_SET = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": "web", "controller": True}
RULES = SpreadRules(
    label_selector=validate_label_selector,
    required_term=partial(validate_node_term, strict=True),
    preferred_term=partial(validate_node_term, strict=False),
    toleration=validate_toleration,
    patched_pod=validate_patched_pod,
    lone_patch=validate_lone_patch,
)
REPLICA_SET = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "controller": True}


def with_controller(pod: Mapping[str, Any], owner: Mapping[str, Any] = CLONE_SET) -> dict[str, Any]:
    """Return the pod with a controller, its own when it has one."""
    metadata = pod.get("metadata") or {}
    return {**pod, "metadata": {"ownerReferences": [dict(owner)], **metadata}}


def among(*spreads: dict[str, Any]) -> SpreadsOf:
    """Return the look-up of WorkloadSpreads by their target."""
    return lambda reference: [spread for spread in spreads if is_same_workload(target_of(spread), reference)]


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
    annotations = {MATCHED_WORKLOAD_SPREAD: orjson.dumps(match).decode()} if subset is not None else {}
    metadata: dict[str, Any] = {"name": name, "annotations": annotations}
    return with_controller({"metadata": metadata, "spec": {"nodeName": node} if node else {}, "status": status})


def vector_pod(given: Mapping[str, Any], name: str = "") -> dict[str, Any]:
    """Return the pod of a vector; times are numbers of which later ones are bigger, ages are seconds."""
    pod = facts(
        given,
        name=name,
        subset=None,
        annotation=None,
        uid="",
        nodeName="",
        node="",
        labels={},
        annotations={},
        version="",
        ownerKind="",
        deletionCost=None,
        deleting=False,
        created=None,
        ageSeconds=None,
        phase="",
        conditions=[],
        ready=False,
        readyTime=None,
        restarts=0,
        sidecarRestarts=0,
        spec={},
    )
    is_versioned = pod["version"] not in ("", "versionIgnored")
    kind = pod["ownerKind"] or ("ReplicaSet" if is_versioned else "CloneSet")
    metadata: dict[str, Any] = {
        "name": pod["name"],
        "annotations": {**pod["annotations"], **_match_annotation(pod["subset"] or pod["annotation"], pod["uid"])},
        "labels": pod["labels"] | ({"pod-template-hash": pod["version"]} if is_versioned else {}),
        "ownerReferences": [owner_of(kind)],
    }
    if pod["deletionCost"] is not None:
        metadata["annotations"][names.POD_DELETION_COST] = str(pod["deletionCost"])
    if pod["deleting"]:
        metadata["deletionTimestamp"] = seconds_ago(1)
    if pod["created"] is not None:
        metadata["creationTimestamp"] = _moment(pod["created"])
    if pod["ageSeconds"] is not None:
        metadata["creationTimestamp"] = seconds_ago(pod["ageSeconds"])
    conditions = [_with_age(condition) for condition in pod["conditions"]]
    if pod["ready"]:
        since = {} if pod["readyTime"] is None else {"lastTransitionTime": _moment(pod["readyTime"])}
        conditions.append({"type": "Ready", "status": "True", **since})
    node, sidecar = pod["nodeName"] or pod["node"], {"name": "sidecar", "restartPolicy": "Always"}
    return {
        "metadata": metadata,
        "spec": {**pod["spec"], **({"nodeName": node} if node else {}), "initContainers": [sidecar]},
        "status": {
            "phase": pod["phase"],
            "conditions": conditions,
            "containerStatuses": [{"name": "main", "restartCount": pod["restarts"]}],
            "initContainerStatuses": [{"name": "sidecar", "restartCount": pod["sidecarRestarts"]}],
        },
    }


def _match_annotation(given: Any, uid: str) -> dict[str, str]:
    """Return the annotation that names the subset: the subset of `ws`, or the content as an object or as JSON."""
    if given is None:
        return {}
    if isinstance(given, str) and not given.startswith("{"):
        given = {"name": "ws", "subset": given}
    if isinstance(given, Mapping):
        is_named = any(key.lower() == "name" for key in given)
        given = orjson.dumps({} | ({} if is_named else {"name": "ws"}) | dict(given) | ({"uid": uid} if uid else {}))
        given = given.decode()
    return {MATCHED_WORKLOAD_SPREAD: given}


def _with_age(condition: Mapping[str, Any]) -> dict[str, Any]:
    age_s = condition.get("ageSeconds")
    return {**condition} if age_s is None else {**condition, "lastTransitionTime": seconds_ago(age_s)}


def _moment(number: float) -> str:
    return to_rfc3339(datetime.fromtimestamp(number, UTC))


def owner_of(kind: str) -> dict[str, Any]:
    """Return the reference to the controller of pods of a target `web`: `Kind`, or `Kind.group`."""
    if kind in ("Deployment", "ReplicaSet"):
        return dict(REPLICA_SET)
    name, _, group = kind.partition(".")
    return {**CLONE_SET, "apiVersion": f"{group or GROUPS.get(name, 'apps')}/v1", "kind": name}


def marked(status: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status of a subset of a vector as it is stored: records are maps, the mark is a condition.

    The mark is `conditions` as stored, a map of them by type, or `schedulable`.
    """
    stored = {
        key: dict.fromkeys(value or (), seconds_ago(0)) if key in RECORDS and not isinstance(value, Mapping) else value
        for key, value in status.items()
        if key != "schedulable"
    }
    conditions = stored.pop("conditions", None) or []
    if isinstance(conditions, Mapping):
        conditions = [{"type": type_, "status": str(value)} for type_, value in conditions.items()]
    if status.get("schedulable") is not None:
        conditions = [*conditions, {"type": names.SUBSET_SCHEDULABLE, "status": str(status["schedulable"])}]
    return {**stored, "conditions": list(map(_with_age, conditions))} if conditions else stored


def counted_status(
    spread: dict[str, Any],
    groups: Groups,
    total: int,
    now: datetime = NOW,
    *,
    is_absent: IsAbsent = lambda _pod_id, _time: True,
) -> SpreadStatus:
    """Return the status of a WorkloadSpread; recorded pods that are not in the groups do not exist."""
    return compute_status(spread, groups, total, now, is_absent=is_absent)


class SpreadWorkload:
    """A workload in a model of one cluster: its pods, the ledger of admission, and the reconciles of the controller."""

    def __init__(
        self,
        spread: Mapping[str, Any],
        *,
        owner: Mapping[str, Any] = CLONE_SET,
        version: str = "",
        fits: Callable[[Mapping[str, Any]], bool] | None = None,
    ) -> None:
        self.spread = to_hub(spread)
        self.total = 0
        self.owner = owner
        self.version = version
        self.fits = fits
        self.pods: dict[str, dict[str, Any]] = {}
        self.deleted: list[str | None] = []
        """The subsets of deleted pods, in order."""
        self._created = 0

    @property
    def _is_stateful(self) -> bool:
        return self.owner["kind"] == "StatefulSet"

    def create(self, name: str = "", version: str | None = None, labels: Mapping[str, str] | None = None) -> str | None:
        """Admit a pod; return the name of its subset, None when it is admitted unchanged."""
        if not name and self._is_stateful:
            ordinals = {int(existing.rpartition("-")[2]) for existing in self.pods}
            name = f"{self.owner['name']}-{next(n for n in itertools.count() if n not in ordinals)}"
        name = name or f"{self.owner['name']}-{self._created}"
        self._created += 1
        own = {**(labels or {}), "pod-template-hash": self.version if version is None else version}
        pod = with_controller({"metadata": {"name": name, "labels": own}, "spec": {}}, self.owner)
        self.pods[name] = {**pod, "status": {"phase": "Running"}}
        if not is_selected(self.spread, pod):
            return None
        choice = self._choose(pod, name)
        if choice.leaving:  # admission waits for the controller
            self.reconcile()
            choice = self._choose(pod, name)
        if choice.status is not None:
            self.spread = {**self.spread, "status": choice.status}
        if choice.subset is not None:
            pod = inject_subset(pod, object_name(self.spread), choice.subset, patch_pod, choice.uid)
        self.pods[name] = {**pod, "status": {"phase": "Running"}}
        return None if choice.subset is None else name_of(choice.subset)

    def _choose(self, pod: Mapping[str, Any], name: str) -> Choice:
        return choose_subset(
            self.spread, pod, version=pod_version(pod), total=self.total, uid=f"uid-{name}", now=NOW, fits=self.fits
        )

    def create_labelled(self, labels: Mapping[str, str], count: int) -> None:
        """Create or delete pods until so many have the labels."""
        own = [name for name, pod in self.pods.items() if labels.items() <= pod["metadata"]["labels"].items()]
        for _ in range(count - len(own)):
            self.create(labels=labels)
        for name in [each for each in self._deletion_order() if each in own][: max(0, len(own) - count)]:
            self.delete(name)
        self.reconcile()

    def names_in(self, subset: str) -> list[str]:
        """Return the names of the pods of a subset."""
        return [name for name, pod in self.pods.items() if subset_of(pod) == subset]

    def delete(self, name: str) -> None:
        """Admit the deletion of a pod, which is gone at once."""
        pod = self.pods.pop(name)
        self.deleted.append(subset_of(pod))
        status = record_deletion(self.spread, pod, version=pod_version(pod), total=self.total, now=NOW)
        if status is not None:
            self.spread = {**self.spread, "status": status}

    def scale(self, replicas: int, *, total: int | None = None) -> None:
        """Set the replicas, create or delete pods, cheapest and newest first, and reconcile.

        `total` is what the workload says of its replicas, if that differs from the number of its pods.
        """
        self.total = replicas if total is None else total
        while len(self.pods) < replicas:
            self.create()
        for name in self._deletion_order()[: max(0, len(self.pods) - replicas)]:
            self.delete(name)
        self.reconcile()

    def roll_out(self, version: str) -> None:
        """Replace the pods one by one: a Deployment creates a new one before it deletes an old one, others after it."""
        if not self.version:
            for name in list(self.pods):
                labels = self.pods[name]["metadata"]["labels"]
                self.delete(name)
                self.create(name if self._is_stateful else "", labels=labels)
                self.reconcile()
            return
        self.version = version
        old = {name for name, pod in self.pods.items() if pod_version(pod) != version}
        while old:
            self.create()
            name = next(name for name in self._deletion_order() if name in old)
            old.discard(name)
            self.delete(name)
            self.reconcile()

    def reconcile(self, nodes: Mapping[str, Any] | None = None) -> SpreadStatus:
        """Run the decisions of one reconcile and apply them to the pods and the status."""
        selected = [pod for pod in self.pods.values() if is_selected(self.spread, pod)]
        grouping = group_pods(self.spread, selected, nodes or {}, self.total, patch_pod)
        costs = changed_costs(self.spread, grouping.groups, self.version or "versionIgnored", self.total)
        for name, cost in costs.items():
            self.pods[name] = patch_pod(self.pods[name], {"metadata": {"annotations": {names.POD_DELETION_COST: cost}}})
        for adoption in grouping.adoptions:
            name = object_name(adoption.pod)
            self.pods[name] = patch_pod(self.pods[name], adoption.patch)
        result = counted_status(self.spread, grouping.groups, self.total)
        self.spread = {**self.spread, "status": result.status}
        return result

    def counts(self) -> dict[str | None, int]:
        """Return the number of pods by name of subset; None for pods without one."""
        return dict(Counter(subset_of(pod) for pod in self.pods.values()))

    def costs(self, subset: str | None) -> Counter[int]:
        """Return the deletion costs of the pods of a subset, and how many pods have each."""
        found = [pod for pod in self.pods.values() if subset_of(pod) == subset]
        return Counter(cost for cost in map(cost_of, found) if cost is not None)

    def _deletion_order(self) -> list[str]:
        if self._is_stateful:
            return sorted(self.pods, key=lambda name: -int(name.rpartition("-")[2]))
        newest_first = list(reversed(self.pods))
        return sorted(newest_first, key=lambda name: cost_of(self.pods[name]) or 0)


def subset_of(pod: Mapping[str, Any]) -> str | None:
    """Return the subset in the pod's annotation."""
    match = parse_match(pod)
    return None if match is None else match.subset


def cost_of(pod: Mapping[str, Any]) -> int | None:
    """Return the deletion cost in the pod's annotation."""
    cost = (pod["metadata"].get("annotations") or {}).get(names.POD_DELETION_COST)
    return None if cost is None else int(cost)
