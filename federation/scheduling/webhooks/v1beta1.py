"""Scheduler plugins over HTTP, protocol `v1beta1`: one request per extension point and decision, carrying all clusters.

The plugin repeats the request's uid and says something about every cluster: `selected`, `score` (0..100) or `replicas`,
each with optional `reasons` that end up in `fedctl why`. A failure is an ERROR for the framework: it fails the
decision, or is ignored when the configuration says so. The protocol is documented in docs/plugins.md.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from federation.base.errors import PluginError
from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.limits import REPLICAS_MAX
from federation.scheduling.framework.scores import SCORE_MAX
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
from federation.scheduling.webhooks import answers
from federation.scheduling.webhooks.answers import Entry
from federation.scheduling.webhooks.configuration import WebhookOptions
from federation.scheduling.webhooks.v1beta1payload import Extras, Payload, request_uid, scores_of, told_limits

HEADERS = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "federation-scheduler"}
RETRIES_MAX = 2


class Webhook:
    """A filter, score, select and replicas plugin whose answers come over HTTP."""

    def __init__(self, options: WebhookOptions, arguments: Mapping[str, Any] | None = None) -> None:
        self.is_optional = options.is_optional
        self._options = options
        self._payload = Payload(options.unit_fields, options.cluster_fields, arguments or {})

    def filter_clusters(
        self, unit: SchedulingUnit, clusters: Sequence[Cluster], state: CycleState
    ) -> Exchange[Sequence[Status]]:
        """Ask which clusters can take the unit; the reasons of those that cannot are shown to the user."""
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
        """Ask how well each cluster suits, from 0 to 100."""
        try:
            _, entries = yield from self._ask("score", unit, clusters, state, {})
            names = [cluster.name for cluster in clusters]
            scores = [answers.read_integer(entries[name], "score", SCORE_MAX, of=name) for name in names]
            self._remark(state, entries)
        except PluginError as problem:
            return error(str(problem))
        return scores

    def select_clusters(
        self, unit: SchedulingUnit, scored: Sequence[ClusterScore], state: CycleState
    ) -> Exchange[Sequence[ClusterScore] | Status]:
        """Ask which clusters to take; they count in the order of the answer."""
        offered = {entry.cluster.name: entry for entry in scored}
        try:
            clusters = [entry.cluster for entry in scored]
            _, entries = yield from self._ask("select", unit, clusters, state, scores_of(scored))
            selected = [offered[name] for name, entry in entries.items() if answers.read_bool(entry, "selected")]
            self._remark(state, entries)
        except PluginError as problem:
            return error(str(problem))
        return selected

    def replicas_of_clusters(
        self, unit: SchedulingUnit, clusters: Sequence[Cluster], state: CycleState
    ) -> Exchange[Division | Status]:
        """Ask how many replicas each cluster gets; all that are wanted must be accounted for.

        That they keep to the limits is for the framework to check, as of every plugin.
        """
        try:
            limits = told_limits(unit, clusters)
            answer, entries = yield from self._ask("replicas", unit, clusters, state, limits)
            replicas = {name: answers.read_integer(entries[name], "replicas", REPLICAS_MAX, of=name) for name in limits}
            unplaced = answers.read_integer({"unplaced": 0, **answer}, "unplaced", REPLICAS_MAX)
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
        """Return the answer and what it says about each cluster; PluginError when it cannot be used."""
        options, url = self._options, self._options.urls.get(point)
        if url is None:
            raise PluginError(f"the configuration has no {point}Path")
        uid = request_uid(options.name, point, unit.plural, unit.key, state.now.isoformat())
        body = self._payload.body(point, uid, unit, clusters, extras)
        (response,) = yield [
            PluginRequest(url, body, HEADERS, options.timeout_s, options.tls, options.name, RETRIES_MAX)
        ]
        answer = answers.read_object(response)
        return answer, answers.read_entries(answer, uid, [cluster.name for cluster in clusters])

    def _remark(self, state: CycleState, entries: Mapping[str, Entry]) -> None:
        for name, entry in entries.items():
            if reasons := answers.read_reasons(entry):
                state.remark(self._options.name, name, *reasons)

    def _filtered(self, entry: Entry) -> Status:
        if answers.read_bool(entry, "selected"):
            return SUCCESS
        default = f"cluster(s) were filtered by plugin {self._options.name}"
        return unschedulable(*(answers.read_reasons(entry) or (default,)))
