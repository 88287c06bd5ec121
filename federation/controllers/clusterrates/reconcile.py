"""Request the rates, write them to the labels of clusters, and say in a condition whether they are current.

The labels are the cache: while the source fails, and after a restart, the last rates stay in force. Nothing else waits
for the source.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Protocol

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery import conditions
from federation.apimachinery.connection import Connection
from federation.apimachinery.resources import Object
from federation.apimachinery.webhookclient import WebhookResponse
from federation.controllers.clusterrates.names import RATES_CURRENT, REASON_RATES_READ, REASON_RATES_UNAVAILABLE
from federation.planning.cost.ratelist import RateOptions, label_changes, parse_rates
from federation.runtime.controller import Result
from federation.runtime.events import WARNING
from federation.runtime.host import Host
from federation.runtime.informer import Informer

_HEADERS = {"User-Agent": "federation-rates", "Accept": "application/json"}
_TIMEOUT_S = 10.0
_TYPE = {"apiVersion": FEDERATED_CLUSTERS.api_version, "kind": FEDERATED_CLUSTERS.kind}


class Source(Protocol):
    """The network: a `WebhookClient`, which limits the answer's length, or a double in tests."""

    async def get(self, connection: Connection, headers: Mapping[str, str], *, timeout_s: float) -> WebhookResponse:
        """Return the response, or the reason why there is none; never raises."""
        ...


class Reconciler:
    """Reads all rates with one request per interval."""

    def __init__(self, host: Host, clusters: Informer, source: Source, options: RateOptions) -> None:
        self._client = host.client
        self._clusters = clusters
        self._recorder = host.recorder
        self._source = source
        self._clock = host.clock
        self._options = options

    async def reconcile(self, _: str) -> Result:
        """Write what the answer says about each cluster; without one, keep all rates and say so."""
        response = await self._source.get(Connection(self._options.url), _HEADERS, timeout_s=_TIMEOUT_S)
        problem = response.error
        rates: Mapping[str, Mapping[str, Any]] = {}
        if not problem and response.status != HTTPStatus.OK:
            problem = f"HTTP status {response.status}"
        if not problem:
            try:
                rates = parse_rates(response.body)
            except ValueError as wrong:
                problem = str(wrong)
        for cluster in self._clusters.list():
            entry = rates.get(cluster["metadata"]["name"])
            if entry is not None:
                await self._write_labels(cluster, entry)
                await self._publish(cluster, "True", REASON_RATES_READ, "the rates are those of the source")
            elif _condition(cluster) is not None:
                reason = problem or "the source of rates has no entry for the cluster"
                message = f"the last rates stay in force: {reason}"
                await self._publish(cluster, "False", REASON_RATES_UNAVAILABLE, message)
        return Result(self._options.interval_s)

    async def _write_labels(self, cluster: Object, entry: Mapping[str, Any]) -> None:
        if changes := label_changes(cluster["metadata"].get("labels") or {}, entry):
            name = cluster["metadata"]["name"]
            body = {"metadata": {"labels": changes}}
            await self._client.patch(FEDERATED_CLUSTERS, name, body, field_manager=names.FIELD_MANAGER)

    async def _publish(self, cluster: Object, status: str, reason: str, message: str) -> None:
        """Write the condition when it changes; what exactly fails may vary during an outage and is written once."""
        old, name = _condition(cluster), cluster["metadata"]["name"]
        if old is not None and old.get("status") == status:
            return
        present = await self._client.get(FEDERATED_CLUSTERS, name)
        after = conditions.set_condition(
            list((present.get("status") or {}).get("conditions") or ()),
            type_=RATES_CURRENT,
            status=status,
            reason=reason,
            message=message,
            now=self._clock.now(),
            time_fields=("lastProbeTime",),
        )
        # The whole list is written, for the version that was read: its other conditions have other writers.
        body = {
            "metadata": {"resourceVersion": present["metadata"]["resourceVersion"]},
            "status": {"conditions": after},
        }
        await self._client.patch(
            FEDERATED_CLUSTERS, name, body, subresource="status", field_manager=names.FIELD_MANAGER
        )
        if status == "False":
            self._recorder.event({**_TYPE, **present}, WARNING, reason, message)


def _condition(cluster: Object) -> Mapping[str, Any] | None:
    return conditions.find((cluster.get("status") or {}).get("conditions"), RATES_CURRENT)
