"""Scheduler plugins over HTTP, protocol `v1alpha1` (spec §6.7): what to ask, and what an answer means.

A SchedulerPluginWebhookConfiguration is a plugin of its own name. The plugin does no I/O: it yields the requests, one
per cluster for filter and score and one for select, and is resumed with the responses. An answer is not trusted:
whatever is not exactly what the protocol says is this plugin's failure, and the last placement stays (D8).
`webhookpayload.py` has the bodies.
"""

import base64
import binascii
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import orjson

from federation.api.durations import parse_duration
from federation.base.errors import PluginError
from federation.scheduling.framework.interfaces import Arguments
from federation.scheduling.framework.registry import PluginRegistry
from federation.scheduling.framework.scores import normalise_to_max
from federation.scheduling.framework.types import (
    SUCCESS,
    Cluster,
    ClusterScore,
    PluginRequest,
    PluginResponse,
    PluginTLS,
    SchedulingUnit,
    Status,
    error,
    unschedulable,
)
from federation.scheduling.webhookpayload import cluster_bodies, select_body

PAYLOAD_VERSIONS = frozenset({"v1alpha1"})
HEADERS: Mapping[str, str] = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    "User-Agent": "kubeadmiral-scheduler",
}
TIMEOUT_S = 5.0
_QUOTED_MAX = 1000
"""Characters of a strange answer that are repeated in reasons."""

T = TypeVar("T")
Exchange = Generator[Sequence[PluginRequest], Sequence[PluginResponse], T]


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """Where a plugin is. `urls` maps the extension points that it has to addresses."""

    name: str
    urls: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = TIMEOUT_S
    tls: PluginTLS = field(default_factory=PluginTLS)


def compile_webhook(source: Mapping[str, Any]) -> WebhookOptions:
    """Return what a SchedulerPluginWebhookConfiguration says; PluginError when it cannot be used, and why."""
    name, spec = str(source["metadata"]["name"]), source.get("spec") or {}
    versions = spec.get("payloadVersions") or ()
    if PAYLOAD_VERSIONS.isdisjoint(versions):
        known = ", ".join(sorted(PAYLOAD_VERSIONS))
        raise PluginError(
            f"webhook {name!r}: none of its payloadVersions {list(versions)} is supported; known: {known}"
        )
    prefix = str(spec.get("urlPrefix") or "")
    if not prefix.startswith(("http://", "https://")):
        raise PluginError(f"webhook {name!r}: urlPrefix {prefix!r} is not an http or https address")
    try:
        timeout_s = parse_duration(str(spec.get("httpTimeout") or "0"))
    except ValueError as problem:
        raise PluginError(f"webhook {name!r}: httpTimeout: {problem}") from problem
    paths = {point: str(spec.get(f"{point}Path") or "") for point in ("filter", "score", "select")}
    return WebhookOptions(
        name,
        {point: f"{prefix.rstrip('/')}/{path.lstrip('/')}" for point, path in paths.items() if path},
        timeout_s if timeout_s > 0 else TIMEOUT_S,
        _tls(name, spec.get("tlsConfig") or {}),
    )


def compile_for(installed: PluginRegistry, source: Mapping[str, Any]) -> WebhookOptions:
    """Return what a configuration says; PluginError also when an installed plugin has its name: none is replaced."""
    name = str(source["metadata"]["name"])
    if name in installed.names:
        raise PluginError(f"webhook {name!r}: an installed plugin has this name")
    return compile_webhook(source)


def with_webhooks(installed: PluginRegistry, webhooks: Iterable[WebhookOptions]) -> PluginRegistry:
    """Return the installed plugins and these."""
    registry = installed
    for options in webhooks:
        registry = registry.with_plugin(options.name, partial(_make, options))
    return registry


def _make(options: WebhookOptions, _: Arguments) -> "Webhook":
    return Webhook(options)


def _tls(name: str, config: Mapping[str, Any]) -> PluginTLS:
    def data(key: str) -> bytes:
        try:
            return base64.b64decode(str(config.get(key) or ""), validate=True)
        except binascii.Error as problem:
            raise PluginError(f"webhook {name!r}: tlsConfig.{key} is not base64: {problem}") from problem

    tls = PluginTLS(
        data("caData"),
        data("certData"),
        data("keyData"),
        str(config.get("serverName") or ""),
        bool(config.get("insecure")),
    )
    if bool(tls.cert_data) != bool(tls.key_data):
        raise PluginError(f"webhook {name!r}: tlsConfig has one of certData and keyData without the other")
    return tls


class Webhook:
    """A filter, score and select plugin whose answers come over HTTP."""

    def __init__(self, options: WebhookOptions) -> None:
        self._options = options

    def filter_clusters(
        self, unit: SchedulingUnit, clusters: Sequence[Cluster], state: object
    ) -> Exchange[Sequence[Status]]:
        """Ask about each cluster; `selected: false` means unschedulable."""
        url = self._options.urls.get("filter")
        if url is None:
            return [_unsupported("filter")] * len(clusters)
        responses = yield [self._request(url, body) for body in cluster_bodies(unit, clusters)]
        return [self._filtered(response) for response in responses]

    def score_clusters(
        self, unit: SchedulingUnit, clusters: Sequence[Cluster], state: object
    ) -> Exchange[Sequence[int] | Status]:
        """Ask for each cluster's raw score, an integer that is not negative."""
        url = self._options.urls.get("score")
        if url is None:
            return _unsupported("score")
        responses = yield [self._request(url, body) for body in cluster_bodies(unit, clusters)]
        scores = []
        for response in responses:
            score = _field(response, "score", int, 0)
            if isinstance(score, Status):
                return score
            if not 0 <= score < 2**63:
                return error(f"score {score} is not a 64 bit integer of at least 0")
            scores.append(score)
        return scores

    def normalise(self, unit: SchedulingUnit, scores: Sequence[int], state: object) -> Sequence[int]:
        """Scale the raw scores to 0..100."""
        return normalise_to_max(scores)

    def select_clusters(
        self, unit: SchedulingUnit, scored: Sequence[ClusterScore], state: object
    ) -> Exchange[Sequence[ClusterScore] | Status]:
        """Ask once which clusters to take, in order."""
        url = self._options.urls.get("select")
        if url is None:
            return _unsupported("select")
        (response,) = yield [self._request(url, select_body(unit, scored))]
        selected = _field(response, "selectedClusterNames", list, [])
        if isinstance(selected, Status):
            return selected
        offered = {entry.cluster.name: entry for entry in scored}
        for name in selected:
            if not isinstance(name, str) or name not in offered:
                return error(f"the webhook selected the unknown cluster {str(name)[:_QUOTED_MAX]!r}")
        return [offered[name] for name in selected]

    def _request(self, url: str, body: bytes) -> PluginRequest:
        return PluginRequest(url, body, HEADERS, self._options.timeout_s, self._options.tls)

    def _filtered(self, response: PluginResponse) -> Status:
        selected = _field(response, "selected", bool, False)
        if isinstance(selected, Status):
            return selected
        if selected:
            return SUCCESS
        return unschedulable(f"cluster(s) were filtered by webhookPlugin({self._options.name})")


def _unsupported(point: str) -> Status:
    return error(f"{point} is not supported by the webhook")


def _field(response: PluginResponse, name: str, type_: type[T], absent: T) -> T | Status:
    """Return one field of a good answer, `absent` when it is not there; an ERROR for any answer that is not good."""
    if response.status == 0:
        return error(f"request failed: {response.error[:_QUOTED_MAX]}")
    if response.status != 200:
        quoted = response.body[: 4 * _QUOTED_MAX].decode(errors="replace")[:_QUOTED_MAX]
        return error(f"unexpected status code: {response.status}, body: {quoted}")
    try:
        answer = orjson.loads(response.body)
    except orjson.JSONDecodeError as problem:
        return error(f"the response is not JSON: {problem}")
    if not isinstance(answer, dict):
        return error("the response is not a JSON object")
    if answer.get("error"):
        return error(str(answer["error"])[:_QUOTED_MAX])
    value = answer.get(name)
    if value is None:
        return absent
    if type(value) is not type_:
        return error(f"field {name!r} of the response is not of type {type_.__name__}")
    return value
