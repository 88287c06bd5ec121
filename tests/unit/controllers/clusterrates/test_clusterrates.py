"""Rates from an HTTP source: written to labels, kept while the source fails, and said to be old."""

import json
from collections.abc import Mapping
from typing import Any

from tests.unit.controllers.hosting import Host

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery import conditions
from federation.apimachinery.connection import Connection
from federation.apimachinery.resources import Object
from federation.apimachinery.webhookclient import WebhookResponse
from federation.controllers.clusterrates.names import RATES_CURRENT
from federation.controllers.clusterrates.reconcile import Reconciler
from federation.planning.cost.ratelist import RateOptions

CPU = f"{names.PRICE_PREFIX}cpu"


class Source:
    """A source whose next answer the test sets."""

    def __init__(self) -> None:
        self.answer = WebhookResponse(0, error="no answer within 10 s")

    async def get(self, connection: Connection, headers: Mapping[str, str], *, timeout_s: float) -> WebhookResponse:
        assert connection.server == "https://rates.example.com"
        return self.answer


def a_price(price: float) -> WebhookResponse:
    return WebhookResponse(200, json.dumps({"clusters": {"east": {"price": {"cpu": price}}}}).encode())


def condition_of(cluster: Object) -> Any:
    return conditions.find((cluster.get("status") or {}).get("conditions"), RATES_CURRENT)


async def test_rates_follow_the_source_and_stay_while_it_fails(host: Host) -> None:
    for name in ("east", "west"):
        cluster = {"apiVersion": FEDERATED_CLUSTERS.api_version, "kind": "FederatedCluster", "metadata": {"name": name}}
        spec = {"apiEndpoint": "https://x", "secretRef": {"name": name}}
        await host.user.create(FEDERATED_CLUSTERS, {**cluster, "spec": spec})
    clusters, source = host.informers.for_resource(FEDERATED_CLUSTERS), Source()
    await clusters.wait_synced()
    options = RateOptions("https://rates.example.com", 60)
    reconciler = Reconciler(host.wired, clusters, source, options)

    async def east_after(answer: WebhookResponse) -> Object:
        source.answer = answer
        assert (await reconciler.reconcile("")).requeue_after_s == 60
        await host.settle()
        return await host.user.get(FEDERATED_CLUSTERS, "east")

    before = await east_after(source.answer)
    assert condition_of(before) is None
    east = await east_after(a_price(0.04))
    assert east["metadata"]["labels"] == {CPU: "0.04"}
    assert condition_of(east)["status"] == "True"
    writes = sum(host.client.writes.values())
    await east_after(a_price(0.04))
    assert sum(host.client.writes.values()) == writes

    east = await east_after(WebhookResponse(503))
    assert east["metadata"]["labels"] == {CPU: "0.04"}
    assert condition_of(east)["message"] == "the last rates stay in force: HTTP status 503"
    assert ("FederatedCluster", "RatesUnavailable", condition_of(east)["message"]) in await host.events()
    assert condition_of(await east_after(WebhookResponse(200, b'{"clusters": 3}')))["status"] == "False"

    east = await east_after(a_price(0.03))
    assert (east["metadata"]["labels"], condition_of(east)["status"]) == ({CPU: "0.03"}, "True")
    west = await host.user.get(FEDERATED_CLUSTERS, "west")
    assert "labels" not in west["metadata"]
    assert condition_of(west) is None
