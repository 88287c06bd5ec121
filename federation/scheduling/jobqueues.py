"""Objects that wait in a JobQueue: which queue an object names, and the record of its admission. Pure.

The scheduler knows no quotas. It reads from the labels of an object and from the names of the JobQueues whether the
object has a queue, and from one annotation of the federated object whether it may be placed, and where. The wing
`features/queues` writes the annotation. The scheduler changes it in two cases: an admitted object found no place, or it
lost its cluster. Then the object waits again. Objects without a queue cost one look-up.

Decision: docs/decisions/0127-queues-of-our-own.md
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import JOB_QUEUES
from federation.apimachinery import conditions
from federation.apimachinery.annotationrecords import AnnotationRecord, Count, Time, to_time
from federation.apimachinery.resources import Object
from federation.planning.federatedobject.finished import has_finished_everywhere
from federation.planning.federatedobject.placements import departed_clusters
from federation.planning.rendering.admittednodes import QUEUE_NODES, PodNodes
from federation.scheduling.deadlines import Alternative
from federation.scheduling.framework import gangs
from federation.scheduling.framework.admittedclusters import ADMITTED_TO, STEP
from federation.scheduling.framework.cycle import FilterResult
from federation.scheduling.framework.moving import AVOIDED, ENDED_TOLERATIONS
from federation.scheduling.framework.types import NodeNeeds, PodSet, SchedulingUnit, Status, pod_shape
from federation.scheduling.names import KUEUE_QUEUE_NAME, QUEUE_ADMISSION, QUEUE_NAME
from federation.scheduling.podgroups import membership_of
from federation.scheduling.podrequest import has_pods
from federation.scheduling.policyspec import to_tolerations
from federation.scheduling.worldobjects import Index, name_of

DEFAULT_QUEUE = "default"
"""The JobQueue of objects that name none."""
_OF_ROOM = frozenset((gangs.STEP, STEP, "ClusterResourcesFit"))
"""Steps whose rejections end when others release their room."""
_BECAUSE_MAX = 512
_EXCLUDED_MAX = 1_000


class Phase(StrEnum):
    """The right of an object with a queue to be placed."""

    ADMITTED = "Admitted"
    """It may be placed, or it is."""
    REFUSED = "Refused"
    """The scheduler found no place for it, so it waits again."""
    EVICTED = "Evicted"
    """It has to leave its cluster and wait again."""
    LOST = "Lost"
    """It lost its cluster, so it waits again, in front."""


class Admission(msgspec.Struct, frozen=True, omit_defaults=True):
    """The annotation of a federated object that was admitted at least once."""

    phase: Phase
    queue: str
    at: Time
    """When the phase began."""
    holds: dict[str, dict[str, Count]] = {}
    """Amounts of the quota by flavour and resource, while it is admitted."""
    clusters: list[str] = []
    """The clusters where it may be placed, while it is admitted and has no place."""
    because: str = ""
    """Why it waits again, for people."""
    excluded: list[str] = []
    """Clusters that the scheduler refused for other reasons than room, such as its policy."""
    refusals: Count = 0
    """How often the scheduler found no place since it was placed last."""
    losses: Count = 0
    """How often it lost its cluster."""
    alternatives: list[Alternative] = []
    """The clusters that were compared for its deadline, the best one first."""
    pays: str = ""
    """The ClusterJobQueue that pays `holds`, whatever the JobQueue names later; "" in records of earlier versions."""
    ended: Count = 0
    """The pods that had ended when it was admitted: a Job starts from the beginning in its cluster."""


ADMISSION = AnnotationRecord(QUEUE_ADMISSION, Admission)


class QueueIndex(Index):
    """The names of all JobQueues by namespace."""

    resource = JOB_QUEUES

    def __init__(self) -> None:
        self._names: dict[str, set[str]] = {}

    def is_changed(self, old: Object | None, new: Object | None) -> bool:
        """Return whether a JobQueue comes or goes: its content is read by its controller only."""
        return old is None or new is None

    def put(self, obj: Object) -> str:
        """Add a JobQueue."""
        namespace, name = name_of(obj)
        self._names.setdefault(namespace, set()).add(name)
        return ""

    def remove(self, obj: Object) -> None:
        """Remove a JobQueue."""
        namespace, name = name_of(obj)
        known = self._names.get(namespace, set())
        known.discard(name)
        if not known:
            self._names.pop(namespace, None)

    def queue_of(self, federated: Mapping[str, Any], type_: FederatedType) -> str:
        """Return the name of the object's JobQueue, "" without one.

        An object that was placed before it had a queue has none: nothing that runs is taken out of its cluster. Kueue's
        label counts only in namespaces with JobQueues: elsewhere it is for the Kueue of the members. What has waited in
        a JobQueue waits on while that is gone: a limit that is missing is not the end of the limit. What runs stays in
        the JobQueue that admitted it, also without its label: a label is no evidence that it has left its cluster.
        """
        metadata, template = federated["metadata"], federated["spec"]["template"]
        group = membership_of(federated)
        if group is not None and not group.leads:
            return ""  # the leader of its pod group has the queue
        labels = (template.get("metadata") or {}).get("labels") or {}
        found = str(labels.get(QUEUE_NAME) or "")
        if not found:
            known, waited = self._names.get(str(metadata.get("namespace") or "")) or (), _has_waited(federated)
            if not known and not waited:
                return ""
            found = str(labels.get(KUEUE_QUEUE_NAME) or "") or _paid_queue(federated)
            if not found and not ((DEFAULT_QUEUE in known or waited) and type_.components.rules):
                return ""
        is_older = ADMISSION.name not in (metadata.get("annotations") or {}) and _is_placed(federated)
        return "" if is_older or not _is_countable(template, type_) else found or DEFAULT_QUEUE


def _has_waited(federated: Mapping[str, Any]) -> bool:
    """Return whether an object waits in a JobQueue, or was admitted by one."""
    if ADMISSION.name in (federated["metadata"].get("annotations") or {}):
        return True
    scheduled = conditions.find((federated.get("status") or {}).get("conditions"), names.SCHEDULED)
    return scheduled is not None and scheduled.get("reason") == names.REASON_QUEUED


def _paid_queue(federated: Mapping[str, Any]) -> str:
    """Return the JobQueue that admitted an object which has not left its clusters yet, "" for none."""
    admission = admission_of(federated)
    if admission is None or admission.phase not in (Phase.ADMITTED, Phase.EVICTED):
        return ""
    return admission.queue if _is_placed(federated) or departed_clusters(federated) else ""


def _is_placed(federated: Mapping[str, Any]) -> bool:
    entries = (federated.get("spec") or {}).get("placements") or ()
    return any(entry.get("placement") for entry in entries)


def _is_countable(template: Mapping[str, Any], type_: FederatedType) -> bool:
    """Return whether the number of the object's pods is known; those of a DaemonSet or CronJob are not."""
    if type_.components.rules:
        return True
    return has_pods(template, type_) and (type_.replicas(template) is not None or template.get("kind") == "Pod")


def admission_of(federated: Mapping[str, Any]) -> Admission | None:
    """Return the record of an object, None if it was never admitted."""
    return ADMISSION.of(federated)


def waiting_message(queue: str, admission: Admission | None) -> str:
    """Return why an object is not scheduled, "" if it is admitted."""
    if admission is None:
        return f"waits in JobQueue {queue}"
    if admission.phase is Phase.ADMITTED and admission.queue == queue:
        return ""
    return f"waits in JobQueue {queue}: {admission.because}" if admission.because else f"waits in JobQueue {queue}"


def within_admission(unit: SchedulingUnit, federated: Mapping[str, Any] | None) -> SchedulingUnit:
    """Return the unit of an admitted object: it goes to one of the clusters, and to the nodes, of its admission."""
    admission = admission_of(federated) if federated is not None else None
    if admission is None or federated is None:
        return unit
    limit = 1 if unit.max_clusters is None else min(1, unit.max_clusters)
    unit = replace(unit, max_clusters=limit)
    if nodes := QUEUE_NODES.of(federated):
        unit = replace(
            unit,
            pods=replace(unit.pods, sets=on_nodes(unit.pods.sets, nodes)),
            node_needs=_needs_on(unit.node_needs, nodes),
        )
    return unit if unit.current else ADMITTED_TO.on(unit, frozenset(admission.clusters))


def on_nodes(pods: tuple[PodSet, ...], nodes: Sequence[PodNodes]) -> tuple[PodSet, ...]:
    """Return the pods with what a queue gives them (`planning/rendering/admittednodes.py`)."""
    return tuple(
        replace(each, shape=pod_shape(each.shape.request, _needs_on(each.shape.needs, nodes))) for each in pods
    )


def _needs_on(needs: NodeNeeds, nodes: Sequence[PodNodes]) -> NodeNeeds:
    where = dict(needs.selector)
    for each in nodes:
        if each.where == where:
            selector = tuple(sorted({**where, **each.labels}.items()))
            return replace(needs, selector=selector, tolerations=needs.tolerations + to_tolerations(each.tolerations))
    return needs


def is_lasting(status: Status) -> bool:
    """Return whether a rejection does not end when other objects release their room."""
    return status.plugin not in _OF_ROOM or gangs.is_too_small(status)


def to_refused(admission: Admission, filtered: FilterResult | None, because: str, now: datetime) -> Admission:
    """Return the record after a decision that found no place."""
    rejected = filtered.rejected if filtered is not None else {}
    excluded = sorted(name for name, status in rejected.items() if is_lasting(status))
    return Admission(
        Phase.REFUSED,
        admission.queue,
        to_time(now),
        because=f"the scheduler found no place: {because}"[:_BECAUSE_MAX],
        excluded=excluded[:_EXCLUDED_MAX],
        refusals=admission.refusals + 1,
        losses=admission.losses,
    )


def to_lost(admission: Admission, clusters: Iterable[str], now: datetime) -> Admission:
    """Return the record of an object that lost its clusters."""
    because = f"it lost cluster {', '.join(sorted(clusters))}"[:_BECAUSE_MAX]
    return Admission(Phase.LOST, admission.queue, to_time(now), because=because, losses=admission.losses + 1)


def is_lost(federated: Mapping[str, Any], unit: SchedulingUnit, kept: Iterable[str], known: Iterable[str]) -> bool:
    """Return whether a placed object has to leave every cluster because it cannot stay there.

    `kept` are the clusters of the new decision, `known` those that exist.
    """
    current = unit.current.keys()
    if not current or has_finished_everywhere(federated) or current & set(kept):
        return False
    return all(
        name in ENDED_TOLERATIONS.of(unit) or name in AVOIDED.of(unit) or name not in set(known) for name in current
    )
