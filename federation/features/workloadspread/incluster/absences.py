"""Proofs that admitted pods do not exist: a complete list of their namespace that begins after their requests ended.

The end of a creation is not reported to webhooks: after them come other webhooks, quotas and the store. A record whose
pod is not seen may belong to a pod that still comes, or that the watch has not delivered. So its age is measured from
the moment at which this process first saw it, which no other clock can shorten.

Decision: docs/decisions/0217-records-end-by-evidence.md
"""

from collections.abc import Iterable, Mapping
from typing import Any

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import ApiError, ClusterError
from federation.apimachinery.resources import PODS, Object
from federation.client.client import Client
from federation.features.workloadspread.rules.ledger import id_of

REQUEST_S_MAX = 60.0
"""The longest request: kube-apiserver's default `--request-timeout`. It ends creations after 34 s."""
_SLACK_S = 15.0
"""How old a record may be when it is used again for the same pod (`ledger.choose_subset`)."""
_PAGE_SIZE = 500

Record = tuple[str, Any]
"""The id of a pod and the time of its record."""


class Absences:
    """The records of one cluster's WorkloadSpreads, and when this process first saw each of them."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._since: dict[str, dict[Record, float]] = {}

    async def prove(self, spread: Object, records: Mapping[str, Any]) -> frozenset[Record]:
        """Return those records, of pods that are not seen, whose pods are proven absent; none without an answer."""
        uid, now_s = spread["metadata"]["uid"], self._clock.monotonic()
        known = self._since.pop(uid, {})
        since = {record: known.get(record, now_s) for record in records.items()}
        if not since:
            return frozenset()
        self._since[uid] = since
        due = [record for record, since_s in since.items() if now_s - since_s >= REQUEST_S_MAX + _SLACK_S]
        if not due:
            return frozenset()
        try:
            present = await self._present(spread["metadata"]["namespace"])
        except (ApiError, ClusterError):
            return frozenset()
        return frozenset(record for record in due if record[0] not in present)

    def forget(self, spread: Object) -> None:
        """Drop what is kept for a deleted object."""
        self._since.pop(spread["metadata"]["uid"], None)

    async def _present(self, namespace: str) -> set[str]:
        """Return the names and ids of all pods of a namespace, from the API server."""
        found: set[str] = set()
        async for pod in self._client.list_all(PODS, namespace, limit=_PAGE_SIZE):
            found.update(_ids(pod))
        return found


def _ids(pod: Object) -> Iterable[str]:
    return str(pod["metadata"].get("name") or ""), id_of(pod)
