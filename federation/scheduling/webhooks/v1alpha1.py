"""Scheduler plugins over HTTP, protocol `v1alpha1` (docs/reference/webhook-plugins.md): KubeAdmiral's, whose
webhooks work unchanged.

One request per cluster for filter and score, one for select. Answers are read as KubeAdmiral reads them: field names in
any case, what is absent is false, 0 or empty. Whatever is not what the protocol says is this plugin's failure, and the
last placement stays; KubeAdmiral leaves out the cluster for which the call failed. `v1alpha1payload.py` has the
bodies.
"""

from collections.abc import Sequence
from typing import TypeVar

from federation.apimachinery.errors import PluginError
from federation.apimachinery.quantity import INT64_MAX, INT64_MIN
from federation.scheduling.framework.normalization import normalise_to_max
from federation.scheduling.framework.types import (
    SUCCESS,
    Cluster,
    ClusterScore,
    Exchange,
    PluginRequest,
    PluginResponse,
    SchedulingUnit,
    Status,
    error,
    unschedulable,
)
from federation.scheduling.webhooks.configuration import WebhookOptions
from federation.scheduling.webhooks.responses import QUOTED_MAX, clean, printable, quote, read_object
from federation.scheduling.webhooks.v1alpha1payload import cluster_bodies, select_body

T = TypeVar("T")

HEADERS = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "kubeadmiral-scheduler"}


class Webhook:
    """A filter, score and select plugin over HTTP."""

    def __init__(self, options: WebhookOptions) -> None:
        self.is_ignorable = options.is_ignorable
        self._options = options

    def filter_clusters(
        self, unit: SchedulingUnit, clusters: Sequence[Cluster], state: object
    ) -> Exchange[Sequence[Status]]:
        """Send one request per cluster; `selected: false` means unschedulable."""
        url = self._options.urls.get("filter")
        if url is None:
            return [_unsupported("filter")] * len(clusters)
        responses = yield [self._request(url, body) for body in cluster_bodies(unit, clusters)]
        return [self._filtered(response) for response in responses]

    def score_clusters(
        self, unit: SchedulingUnit, clusters: Sequence[Cluster], state: object
    ) -> Exchange[Sequence[int] | Status]:
        """Request each cluster's raw score, a 64 bit integer."""
        url = self._options.urls.get("score")
        if url is None:
            return _unsupported("score")
        responses = yield [self._request(url, body) for body in cluster_bodies(unit, clusters)]
        try:
            scores = [_read(response, "score", int, 0) for response in responses]
        except PluginError as problem:
            return error(str(problem))
        for score in scores:
            if not INT64_MIN <= score <= INT64_MAX:
                return error(f"score {score} is not a 64 bit integer")
        return scores

    def normalise(self, unit: SchedulingUnit, scores: Sequence[int], state: object) -> Sequence[int]:
        """Scale the raw scores to 0..100; when there are negative ones, the lowest becomes 0."""
        return normalise_to_max(scores)

    def select_clusters(
        self, unit: SchedulingUnit, scored: Sequence[ClusterScore], state: object
    ) -> Exchange[Sequence[ClusterScore] | Status]:
        """Request the selected clusters, in order."""
        url = self._options.urls.get("select")
        if url is None:
            return _unsupported("select")
        (response,) = yield [self._request(url, select_body(unit, scored))]
        try:
            selected = _read(response, "selectedClusterNames", list, [])
        except PluginError as problem:
            return error(str(problem))
        offered = {entry.cluster.name: entry for entry in scored}
        for name in selected:
            if not isinstance(name, str) or name not in offered:
                return error(f'cluster "{clean(quote(name))}" was not in the request sent to the webhook')
        return [offered[name] for name in dict.fromkeys(selected)]

    def _request(self, url: str, body: bytes) -> PluginRequest:
        options = self._options
        return PluginRequest(url, body, HEADERS, options.timeout_s, options.tls, options.name)

    def _filtered(self, response: PluginResponse) -> Status:
        try:
            selected = _read(response, "selected", bool, False)
        except PluginError as problem:
            return error(str(problem))
        if selected:
            return SUCCESS
        return unschedulable(f"cluster(s) were filtered by webhookPlugin({self._options.name})")


def _unsupported(point: str) -> Status:
    return error(f"{point} is not supported by the webhook")


def _read(response: PluginResponse, name: str, type_: type[T], absent: T) -> T:
    """Return one field of a valid response, `absent` when it is missing; PluginError for an invalid one."""
    answer = {key.lower(): value for key, value in read_object(response).items()}
    if answer.get("error"):
        raise PluginError(printable(quote(answer["error"])[:QUOTED_MAX]))
    value = answer.get(name.lower())
    if value is None:
        return absent
    if type(value) is not type_:
        raise PluginError(f"field {name!r} of the response is not of type {type_.__name__}")
    return value
