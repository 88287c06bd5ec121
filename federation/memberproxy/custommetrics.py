"""`custom.metrics.k8s.io` on the host, answered by the members with the rights that the user has there.

The host authorizes a request as Kubernetes does: `get` on `pods/METRIC` of the group, for example. Nothing is stored
and no metric is listed in discovery, because each member has its own. `custommetricvalues.py` merges the answers.
"""

import asyncio
from functools import partial
from urllib.parse import urlencode

from federation.apimachinery.deadline import Deadline
from federation.apimachinery.errors import (
    ApiError,
    BadRequest,
    ClusterError,
    Forbidden,
    NotFound,
    ServiceUnavailable,
    not_served,
)
from federation.apimachinery.paths import ResourcePath, parse
from federation.apimachinery.resources import Object
from federation.apimachinery.selectors import parse_label_selector
from federation.apimachinery.usedtime import in_thread
from federation.apiserver.http.asgi import Request
from federation.apiserver.http.forwarding import encoded_target
from federation.apiserver.http.requestinfo import to_verb
from federation.apiserver.http.statuserrors import method_not_allowed
from federation.apiserver.http.websockets import WEBSOCKET
from federation.client.pool import ClusterPool
from federation.memberproxy import memberreads
from federation.memberproxy.custommetricvalues import MetricQuery, MetricValue, from_answer, merge, to_query
from federation.memberproxy.mergedreader import MergedOptions
from federation.memberproxy.placedclusters import Visibility
from federation.memberproxy.readproblems import to_warnings

_SELECTORS = ("labelSelector", "metricLabelSelector")


class CustomMetricsConnector:
    """A `Connector` of every path of the group. Objects without a namespace are those of the clusters `everywhere`."""

    is_namespaced = True
    forwards = False

    def __init__(
        self, pool: ClusterPool, placed: Visibility, everywhere: Visibility, options: MergedOptions | None = None
    ) -> None:
        self._pool = pool
        self._placed = placed
        self._everywhere = everywhere
        self._options = options or MergedOptions()
        self._slots = asyncio.Semaphore(self._options.clusters_at_once_max)

    def is_watch(self, request: Request, path: ResourcePath) -> bool:  # noqa: ARG002  # an interface's signature
        """Return False: metrics cannot be watched."""
        return False

    def is_stream(self, request: Request, path: ResourcePath) -> bool:  # noqa: ARG002  # an interface's signature
        """Return False: every answer is complete."""
        return False

    def narrower_right(self, _request: Request, _path: ResourcePath, _verb: str) -> None:
        """Return None: the right on the metric is needed."""

    async def serve(self, request: Request, path: ResourcePath, *, timeout_s: float | None) -> None:
        """Answer with the values of the members; a Warning names those that do not answer."""
        if WEBSOCKET in request.scope.get("extensions", ()):
            raise BadRequest("metrics cannot be read over WebSocket")
        if parse(request.path) is None:
            raise not_served()  # it goes on after the metric
        query = to_query(path)
        if to_verb(request, path) != "get":
            raise method_not_allowed()
        selectors = {key: text for key in _SELECTORS if (text := request.query.get(key, ""))}
        for text in selectors.values():
            parse_label_selector(text)
        visibility = self._placed if query.namespace else self._everywhere
        names = query.names(visibility.clusters(query.namespace))
        with Deadline(timeout_s or self._options.answer_s_max):
            answers, problems = await self._gather(request, query, names, selectors)
            # A thread, because thousands of values take longer than other requests should wait.
            answer = await in_thread(partial(self._combine, query, names, answers, problems))
        request.warnings.extend(self._warnings(problems))
        await request.respond_json(200, answer)

    def stop(self) -> None:
        """Do nothing: requests end within their time limits."""

    async def _gather(
        self, request: Request, query: MetricQuery, names: dict[str, str], selectors: dict[str, str]
    ) -> tuple[dict[str, Object], dict[str, Exception]]:
        """Return the clusters' answers, and the problems of those that do not answer."""
        problems, parameters = dict[str, Exception](), urlencode(selectors).encode()
        targets = {cluster: encoded_target(query.path(name), parameters) for cluster, name in names.items()}
        bytes_max = self._options.member_bytes_min

        async def ask(cluster: str, target: str) -> Object | None:
            try:
                async with self._slots, asyncio.timeout(self._options.answer_s_max):
                    return await memberreads.read(self._pool, cluster, request.user, target, bytes_max)
            except (ApiError, ClusterError, TimeoutError) as problem:
                problems[cluster] = problem
                return None

        answers = await asyncio.gather(*(ask(cluster, target) for cluster, target in targets.items()))
        return {cluster: answer for cluster, answer in zip(names, answers, strict=True) if answer is not None}, problems

    def _combine(
        self, query: MetricQuery, names: dict[str, str], answers: dict[str, Object], problems: dict[str, Exception]
    ) -> Object:
        """Return the host's list and add the malformed answers to the problems; raise what the user gets instead."""
        found: dict[str, list[MetricValue]] = {}
        for cluster, answer in answers.items():
            try:
                found[cluster] = from_answer(cluster, query, names[cluster], answer)
            except ClusterError as problem:
                problems[cluster] = problem
        silent = {name: each for name, each in problems.items() if not isinstance(each, NotFound | Forbidden)}
        # A second meaning of the name may be in a cluster that does not answer.
        is_ambiguous = query.is_in_one_cluster and not query.is_list
        if silent and (is_ambiguous or not found):
            raise ServiceUnavailable("; ".join(self._warnings(silent)))
        if problems and not found:
            raise min(problems.values(), key=lambda each: isinstance(each, NotFound))
        return merge(query, found)

    def _warnings(self, problems: dict[str, Exception]) -> list[str]:
        # A cluster without the metric is no problem: the workload may not run there.
        known = {cluster: each for cluster, each in problems.items() if not isinstance(each, NotFound)}
        return to_warnings("metrics", known, self._options.answer_s_max)
