"""Scheduler plugins over HTTP, protocol `v1beta1`: one request per extension point and decision, carrying all clusters.

The response repeats the request's uid and has an entry per cluster: `selected`, `score` (0..100) or `replicas`, each
with optional `reasons` for `fedctl why`. A failure is an ERROR for the framework: it fails the decision, or is ignored
when the configuration is `failurePolicy: Ignore`. The protocol is documented in docs/plugins.md.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from federation.apimachinery.errors import PluginError
from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.limits import REPLICAS_MAX
from federation.scheduling.framework.normalization import SCORE_MAX
from federation.scheduling.framework.types import (
    SUCCESS,
    Cluster,
    ClusterScore,
    Division,
    Exchange,
    PluginRequest,
    SchedulingUnit,
    Status,
    error,
    unschedulable,
)
from federation.scheduling.webhooks import responses
from federation.scheduling.webhooks.configuration import WebhookOptions
from federation.scheduling.webhooks.responses import Entry
from federation.scheduling.webhooks.v1beta1payload import Extras, Payload, limits_payload, request_uid, scores_of

HEADERS = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "federation-scheduler"}
RETRIES_MAX = 2


class Webhook:
    """A filter, score, select and replicas plugin over HTTP."""

    def __init__(self, options: WebhookOptions, arguments: Mapping[str, Any] | None = None) -> None:
        self.is_ignorable = options.is_ignorable
        self._options = options
        self._payload = Payload(options.unit_fields, options.cluster_fields, arguments or {})

    def filter_clusters(
        self, unit: SchedulingUnit, clusters: Sequence[Cluster], state: CycleState
    ) -> Exchange[Sequence[Status]]:
        """Request which clusters can take the unit; the reasons of the others are shown to the user."""
        try:
            _, entries = yield from self._ask("filter", unit, clusters, state, {})
            statuses = [self._filtered(entries[cluster.name]) for cluster in clusters]
            self._remark(state, {name: entry for name, entry in entries.items() if entry["selected"]})
        except PluginError as problem:
            return [error(str(problem))] * len(clusters)
        return statuses

    def score_clusters(
        self, unit: SchedulingUnit, clusters: Sequence[Cluster], state: CycleState
    ) -> Exchange[Sequence[int] | Status]:
        """Request each cluster's score from 0 to 100."""
        try:
            _, entries = yield from self._ask("score", unit, clusters, state, {})
            names = [cluster.name for cluster in clusters]
            scores = [responses.read_integer(entries[name], "score", SCORE_MAX, of=name) for name in names]
            self._remark(state, entries)
        except PluginError as problem:
            return error(str(problem))
        return scores

    def select_clusters(
        self, unit: SchedulingUnit, scored: Sequence[ClusterScore], state: CycleState
    ) -> Exchange[Sequence[ClusterScore] | Status]:
        """Request the selected clusters, in the order of the response."""
        offered = {entry.cluster.name: entry for entry in scored}
        try:
            clusters = [entry.cluster for entry in scored]
            _, entries = yield from self._ask("select", unit, clusters, state, scores_of(scored))
            selected = [offered[name] for name, entry in entries.items() if responses.read_bool(entry, "selected")]
            self._remark(state, entries)
        except PluginError as problem:
            return error(str(problem))
        return selected

    def replicas_of_clusters(
        self, unit: SchedulingUnit, clusters: Sequence[Cluster], state: CycleState
    ) -> Exchange[Division | Status]:
        """Request the replicas of each cluster; with `unplaced` they must add up to the desired replicas.

        The framework checks the limits, as for every plugin.
        """
        try:
            limits = limits_payload(unit, clusters)
            answer, entries = yield from self._ask("replicas", unit, clusters, state, limits)
            replicas = {
                name: responses.read_integer(entries[name], "replicas", REPLICAS_MAX, of=name) for name in limits
            }
            unplaced = responses.read_integer({"unplaced": 0, **answer}, "unplaced", REPLICAS_MAX)
            self._remark(state, entries)
        except PluginError as problem:
            return error(str(problem))
        placed, wanted = sum(replicas.values()), unit.desired_replicas or 0
        if placed + unplaced != wanted:
            return error(f"replicas add up to {placed}, with unplaced {unplaced}, not to the {wanted} that are wanted")
        step = {"step": "plugin", "by": self._options.name, "replicas": replicas, "unplaced": unplaced}
        return Division(replicas, {"steps": [step]})

    def _ask(
        self, point: str, unit: SchedulingUnit, clusters: Sequence[Cluster], state: CycleState, extras: Extras
    ) -> Exchange[tuple[Mapping[str, Any], Mapping[str, Entry]]]:
        """Return the response and its entries by cluster; PluginError when it is invalid."""
        options, url = self._options, self._options.urls.get(point)
        if url is None:
            raise PluginError(f"the configuration has no {point}Path")
        uid = request_uid(options.name, point, unit.plural, unit.key, state.now.isoformat())
        body = self._payload.body(point, uid, unit, clusters, extras)
        (response,) = yield [
            PluginRequest(url, body, HEADERS, options.timeout_s, options.tls, options.name, RETRIES_MAX)
        ]
        answer = responses.read_object(response)
        return answer, responses.read_entries(answer, uid, [cluster.name for cluster in clusters])

    def _remark(self, state: CycleState, entries: Mapping[str, Entry]) -> None:
        for name, entry in entries.items():
            if reasons := responses.read_reasons(entry):
                state.remark(self._options.name, name, *reasons)

    def _filtered(self, entry: Entry) -> Status:
        if responses.read_bool(entry, "selected"):
            return SUCCESS
        default = f"cluster(s) were filtered by plugin {self._options.name}"
        return unschedulable(*(responses.read_reasons(entry) or (default,)))
