"""Facts of a queue about one federated object: its demand, its order, and where it stands. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery.clock import from_rfc3339
from federation.apimachinery.resources import JOBS, PRIORITY_CLASSES, RUNTIME_CLASSES
from federation.features.queues.rules.configuration import Component
from federation.planning.accounts.claim import has_reported
from federation.planning.components import ComponentError, pod_specs_of
from federation.planning.federatedobject.finished import has_finished_everywhere, kind_of
from federation.planning.federatedobject.placements import departed_clusters, effective_placement
from federation.planning.rendering.admittednodes import has_own_pod_specs
from federation.planning.rendering.names import QUEUE_RELEASED
from federation.planning.suspending import is_suspended
from federation.scheduling.deadlines import Deadline, limit_of, read_deadline
from federation.scheduling.framework.types import PodSet
from federation.scheduling.jobqueues import Admission, admission_of
from federation.scheduling.podgroups import membership_of, pods_in
from federation.scheduling.podrequest import claims_of, claims_problem, counted_demand_of, pod_spec_of, shape_of

_OF_EVERY_CLUSTER = frozenset(("system-cluster-critical", "system-node-critical"))


@dataclass(frozen=True, slots=True)
class Entry:
    """One object with a queue."""

    key: str
    namespace: str
    name: str
    kind: str
    queue: str
    """The name of its JobQueue."""
    created_s: float
    components: tuple[Component, ...]
    pods: tuple[PodSet, ...]
    """Those that have to start together in one cluster."""
    needs: Mapping[str, int]
    """The requests of all pods, which one cluster has to hold; {} if they need not start together."""
    priority_classes: tuple[str, ...]
    limit_s: float | None
    admission: Admission | None
    placed: frozenset[str]
    departed: frozenset[str]
    has_finished: bool
    is_deleted: bool
    problem: str = ""
    deadline: Deadline | None = None
    is_suspended: bool = False
    released: bool | None = None
    """Whether its author left it to the queue to end its suspension; None if no version that asks has admitted it."""
    ended: int = 0
    """Its pods that have ended with success, in all of its runs."""
    unstarted_s: float | None = None
    """Since when its cluster has a Job of which there was never a pod, None if there was one or that is not known."""
    classes: tuple[tuple[str, str], ...] = ()
    """The PriorityClasses and RuntimeClasses that its pods name, by kind and name, but those of every cluster."""
    has_reported: bool = False
    """Whether its cluster has its newest content, and runs no more pods than that has."""

    is_held: bool = False
    """Whether its author has stopped it with an annotation."""

    @property
    def is_stopped(self) -> bool:
        """Whether its author has stopped it, or has suspended it and did not leave that to the queue."""
        return self.is_held or (self.is_suspended and self.admission is not None and self.released is False)


def to_entry(
    key: str, federated: Mapping[str, Any], type_: FederatedType, queue: str, status: Mapping[str, Any] | None = None
) -> Entry:
    """Return what the queue knows of a federated object; `status` is the merged one of a Job."""
    metadata, template = federated["metadata"], federated["spec"]["template"]
    ended, active = (_count(status or {}, name) for name in ("succeeded", "active"))
    pods, problem = _pods(federated, type_)
    admission, placed = admission_of(federated), effective_placement(federated)
    if admission is not None and placed:
        pods = _left(template, pods, admission, ended, active)
    problem = problem or claims_problem(federated, type_)
    annotations = metadata.get("annotations") or {}
    limit_s = limit_of(template)
    wished = read_deadline(annotations, limit_s, admission.losses if admission is not None else 0)
    if isinstance(wished, str):
        problem = problem or wished
    wish = annotations.get(names.GANG, "")
    specs, together = _pod_specs(template, type_), pods if wish != "Never" else ()
    is_open = has_own_pod_specs(template, type_)
    needs: dict[str, int] = {}
    for each in together:
        for name, amount in each.shape.request:
            needs[name] = needs.get(name, 0) + amount * each.least
    return Entry(
        key,
        str(metadata.get("namespace") or ""),
        str((template.get("metadata") or {}).get("name") or metadata["name"]),
        str(template.get("kind") or ""),
        queue,
        _seconds(from_rfc3339(metadata["creationTimestamp"])) if metadata.get("creationTimestamp") else 0.0,
        tuple(
            Component(frozenset(each.shape.needs.selector), each.count, each.shape.request, is_open=is_open)
            for each in pods
        ),
        together,
        needs,
        _names(specs, "priorityClassName"),
        limit_s,
        admission,
        placed,
        departed_clusters(federated),
        has_finished_everywhere(federated),
        bool(metadata.get("deletionTimestamp")),
        problem,
        wished if isinstance(wished, Deadline) else None,
        is_suspended=is_suspended(template),
        released={"true": True, "false": False}.get(str(annotations.get(QUEUE_RELEASED))),
        ended=ended,
        unstarted_s=_unstarted_s(template, pods, status or {}),
        classes=_classes(specs),
        has_reported=active <= sum(each.count for each in pods)
        and has_reported(federated, int(metadata.get("generation") or 0), placed),
        is_held=annotations.get(names.QUEUE_STOP) == "true",
    )


def _count(status: Mapping[str, Any], name: str) -> int:
    return value if type(value := status.get(name)) is int else 0


def _unstarted_s(template: Mapping[str, Any], pods: tuple[PodSet, ...], status: Mapping[str, Any]) -> float | None:
    has_none = not any(_count(status, name) for name in ("active", "succeeded", "failed"))
    if not has_none or not pods or is_suspended(template) or not status.get("startTime"):
        return None
    try:
        return _seconds(from_rfc3339(str(status["startTime"])))
    except ValueError:
        return None


def _left(
    template: Mapping[str, Any], pods: tuple[PodSet, ...], admission: Admission, ended: int, active: int
) -> tuple[PodSet, ...]:
    """Return the pods of a placed Job that still run at the same time: those that have ended do not come back."""
    completions = (template.get("spec") or {}).get("completions")
    if kind_of(template) != (JOBS.group, JOBS.kind) or len(pods) != 1 or type(completions) is not int:
        return pods
    most = max(active, completions - max(0, ended - admission.ended))
    return tuple(replace(each, count=min(each.count, most), least=min(each.least, most)) for each in pods if most > 0)


def _pods(federated: Mapping[str, Any], type_: FederatedType) -> tuple[tuple[PodSet, ...], str]:
    template, claims, group = federated["spec"]["template"], claims_of(federated), membership_of(federated)
    try:
        if group is not None:
            return pods_in(group, claims), ""
        pods = counted_demand_of(template, type_, claims)
    except ComponentError as error:
        return (), str(error)
    if not pods and not type_.components.rules and (shape := shape_of(template, claims)) is not None:
        count = type_.replicas(template)
        count = 1 if count is None else count
        pods = (PodSet("pods", count, count, shape),) if count else ()
    return pods, ""


def _pod_specs(template: Mapping[str, Any], type_: FederatedType) -> list[Mapping[str, Any]]:
    pod = pod_spec_of(template)
    return [pod] if pod is not None else list(pod_specs_of(template, type_.components))


def _names(specs: Iterable[Mapping[str, Any]], field: str) -> tuple[str, ...]:
    return tuple(sorted({str(spec[field]) for spec in specs if spec.get(field)}))


def _classes(specs: list[Mapping[str, Any]]) -> tuple[tuple[str, str], ...]:
    """Return the classes without which a cluster refuses the pods."""
    fields = ((PRIORITY_CLASSES.kind, "priorityClassName"), (RUNTIME_CLASSES.kind, "runtimeClassName"))
    found = [(kind, name) for kind, field in fields for name in _names(specs, field)]
    return tuple(each for each in found if each[1] not in _OF_EVERY_CLUSTER)


def _seconds(moment: datetime) -> float:
    return moment.timestamp()
