"""The clusters that a queue would compare for a job with a deadline, for plans. Pure.

The job is decided as if its queue had admitted it to all clusters: those that are rejected for other reasons than room
are out. A start is known in clusters with room, and behind jobs of queues whose run time or limit is known. A plan
does not know quotas, other jobs that wait, and the lengths of former jobs.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from federation.apimachinery.annotationrecords import to_time
from federation.planning.federatedobject.finished import has_finished_everywhere
from federation.planning.federatedobject.placements import effective_placement
from federation.scheduling.answers import Due
from federation.scheduling.assessment import assess
from federation.scheduling.attempt import start_attempt
from federation.scheduling.deadlines import (
    SHOWN_MAX,
    Deadline,
    limit_of,
    read_deadline,
    to_alternatives,
    to_offer,
)
from federation.scheduling.engine import Decision
from federation.scheduling.framework.gangfit import find_shortfall, total_of
from federation.scheduling.framework.types import Cluster, Exchange, Resources
from federation.scheduling.jobqueues import ADMISSION, Admission, Phase, QueueIndex, admission_of, is_lasting
from federation.scheduling.occasions import Occasion
from federation.scheduling.podrequest import counted_demand_of
from federation.scheduling.whatif.state import CompiledState

_End = tuple[float, Resources]


def compare_clusters(
    federated: Mapping[str, Any], state: CompiledState, now: datetime
) -> Exchange[list[Mapping[str, Any]]]:
    """Return the alternatives of an object that waits in a queue, as JSON, the best first; [] without a deadline."""
    type_ = state.type_of(federated["spec"]["template"])
    deadline = _deadline_of(federated)
    if type_ is None or deadline is None:
        return []
    snapshot = state.clusters.snapshot()
    queues = state.index(QueueIndex)
    queue = "" if queues is None else queues.queue_of(federated, type_)
    admission = Admission(Phase.ADMITTED, queue, to_time(now), clusters=sorted(snapshot.by_name))
    metadata = federated["metadata"]
    annotations = {**(metadata.get("annotations") or {}), ADMISSION.name: ADMISSION.text(admission)}
    attempt = start_attempt({**federated, "metadata": {**metadata, "annotations": annotations}}, type_, state.policies)
    if attempt is None:
        return []
    assessment = assess(attempt, state, state.chain, snapshot, Occasion(now))
    if not isinstance(assessment, Due):
        return []
    decision = yield from state.engine.run(assessment.unit, snapshot, assessment.profile, now=now)
    needs, at_s = total_of(decision.unit.pods.sets), now.timestamp()
    if not needs:
        return []
    ends = _ends(state, at_s)
    offers = [
        to_offer(cluster, needs, deadline.measure, _start_in(cluster, decision, ends.get(cluster.name, ()), at_s))
        for cluster in _able(snapshot.clusters, decision)
    ]
    return [msgspec.to_builtins(each) for each in to_alternatives(deadline, offers, at_s)[:SHOWN_MAX]]


def _deadline_of(federated: Mapping[str, Any]) -> Deadline | None:
    admission = admission_of(federated)
    losses = admission.losses if admission is not None else 0
    annotations = federated["metadata"].get("annotations") or {}
    found = read_deadline(annotations, limit_of(federated["spec"]["template"]), losses)
    return found if isinstance(found, Deadline) else None


def _able(clusters: Iterable[Cluster], decision: Decision) -> list[Cluster]:
    """Return the clusters that are not rejected, or only for lack of room."""
    rejected = decision.filtered.rejected if decision.filtered is not None else {}
    return [
        cluster
        for cluster in clusters
        if cluster.is_ready and not (cluster.name in rejected and is_lasting(rejected[cluster.name]))
    ]


def _ends(state: CompiledState, at_s: float) -> Mapping[str, list[_End]]:
    """Return when jobs of queues are expected to release what they use, by cluster."""
    found: dict[str, list[_End]] = {}
    for federated in state.federated():
        admission, type_ = admission_of(federated), state.type_of(federated["spec"]["template"])
        if admission is None or type_ is None or has_finished_everywhere(federated):
            continue
        deadline = _deadline_of(federated)
        run_s = deadline.run_s if deadline is not None else limit_of(federated["spec"]["template"])
        if run_s is not None:
            end_s = max(at_s, admission.at.timestamp() + run_s)
            released = total_of(counted_demand_of(federated["spec"]["template"], type_))
            for cluster in effective_placement(federated):
                found.setdefault(cluster, []).append((end_s, released))
    return {cluster: sorted(ends, key=lambda end: end[0]) for cluster, ends in found.items()}


def _start_in(cluster: Cluster, decision: Decision, ends: Iterable[_End], at_s: float) -> float | None:
    pods = decision.unit.pods.sets
    if find_shortfall(pods, cluster) is None:
        return at_s
    missing = {name: amount - cluster.available.get(name, 0) for name, amount in total_of(pods).items()}
    for end_s, released in ends:
        missing = {name: amount - released.get(name, 0) for name, amount in missing.items()}
        if all(amount <= 0 for amount in missing.values()):
            return end_s
    return None
