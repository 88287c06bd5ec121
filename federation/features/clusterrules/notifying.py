"""The webhooks of Remedies: a request when one becomes active in a cluster, and one when it ends there.

A request is recorded in the cluster once it was answered. After a crash it is sent again, so receivers see each request
at least once. Addresses are checked where the connection is opened, as those of gates of rollouts.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import orjson

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import NotFound
from federation.apimachinery.resources import Object
from federation.featureapi.surroundings import GateTransport
from federation.features.clusterrules.names import CLUSTER_RULES, EVENT_WEBHOOK_FAILED
from federation.features.clusterrules.rules.ruleset import Rule, Webhook, is_ruled, record_of
from federation.features.clusterrules.rules.states import Entry, to_text
from federation.runtime.controller import DONE, Result
from federation.runtime.events import WARNING
from federation.runtime.host import Host

_HEADERS = {"Content-Type": "application/json", "User-Agent": "federation-remedy"}
_RETRY_S = 30.0
_TYPE = {"apiVersion": FEDERATED_CLUSTERS.api_version, "kind": FEDERATED_CLUSTERS.kind}


class Notifier:
    """Sends what is due about one cluster per call."""

    def __init__(
        self,
        host: Host,
        transport: GateTransport,
        cluster: Callable[[str], Object | None],
        rules: Callable[[], Iterable[Rule]],
    ) -> None:
        self._client = host.client
        self._recorder = host.recorder
        self._transport = transport
        self._cluster = cluster
        self._rules = rules

    async def reconcile(self, name: str) -> Result:
        """Send the requests that are due, and record those that were answered with success."""
        cluster = self._cluster(name)
        if cluster is None or not is_ruled(cluster):
            return DONE
        entries, failed = record_of(cluster), False
        told: dict[str, Entry] = {}
        for rule in tuple(self._rules()):  # rules come and go while a request is under way
            entry = entries.get(rule.name, Entry())
            if not rule.webhooks or not entry.news:
                continue
            problems = [await self._send(cluster, rule, entry, webhook) for webhook in rule.webhooks]
            if problem := next(filter(None, problems), ""):
                failed = True
                text = f"{rule.name}: {entry.news} could not be told, and is tried again: {problem}"
                self._recorder.event({**_TYPE, **cluster}, WARNING, EVENT_WEBHOOK_FAILED, text)
            else:
                told[rule.name] = replace(entry, told="" if entry.news == "Cleared" else entry.news)
        if told:
            await self._record(cluster, {**entries, **told})
        return Result(_RETRY_S) if failed else DONE

    async def _record(self, cluster: Object, entries: Mapping[str, Entry]) -> None:
        metadata = cluster["metadata"]
        body = {
            "metadata": {
                "resourceVersion": metadata["resourceVersion"],
                "annotations": {CLUSTER_RULES: to_text(entries)},
            }
        }
        try:
            await self._client.patch(FEDERATED_CLUSTERS, metadata["name"], body, field_manager=names.FIELD_MANAGER)
        except NotFound:
            return

    async def _send(self, cluster: Object, rule: Rule, entry: Entry, webhook: Webhook) -> str:
        """Return why the request failed, "" if it did not."""
        since = to_rfc3339(entry.since) if entry.since is not None else None
        body = orjson.dumps(
            {
                "apiVersion": FEDERATED_CLUSTERS.api_version,
                "kind": "RemedyNotification",
                "remedy": rule.name.partition("/")[2],
                "cluster": cluster["metadata"]["name"],
                "state": entry.news,
                "since": since,
                "message": webhook.message,
            }
        )
        connection = Connection(webhook.url, ca_data=webhook.ca_data)
        response = await self._transport.post(connection, body, _HEADERS, timeout_s=webhook.timeout_s)
        failed = response.problem(
            f"its webhook answered with HTTP status {response.status}",
            hidden="its webhook did not answer with a status of success",
        )
        return "" if 200 <= response.status < 300 else failed
