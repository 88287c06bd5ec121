"""The work of a control plane, counted by its own metrics: reconciles, writes, requests to members, bytes on disk.

Unlike times, counts hardly depend on what else runs on the machine.
"""

from dataclasses import dataclass, fields

from scraped import scrape

from federation.api.resources import FEDERATED_CLUSTERS, OVERRIDE_POLICIES, PROPAGATION_POLICIES
from federation.client.http import HTTPClient

_SHARED = {
    "cluster": frozenset({""}),
    "resource": frozenset(
        each.group_resource for each in (FEDERATED_CLUSTERS, OVERRIDE_POLICIES, PROPAGATION_POLICIES)
    ),
}
_WRITES = frozenset({"create", "update", "patch", "apply", "delete"})


@dataclass(frozen=True, slots=True)
class CountedWork:
    """Counts since the start of the processes, or of an interval."""

    reconciles: float = 0
    conflicts: float = 0
    host_writes: float = 0
    """Each write takes one revision of the store, without gaps. Those of clusters and policies are left out, heartbeats
    and counts of users: their number does not follow that of the objects."""
    commits: float = 0
    """Transactions of the store; writes share them."""
    commit_seconds: float = 0
    """Not a count: how long the commits took, with the disk's sync. It tells a slow disk from a slow process."""
    member_reads: float = 0
    """Gets and lists; health probes are not among them."""
    member_writes: float = 0
    stored_bytes: float = 0
    """Objects with their recent history, and the journal."""

    def __add__(self, other: "CountedWork") -> "CountedWork":
        """Return the sum of two processes on one store."""
        summed = {each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)}
        shared = {name: max(getattr(self, name), getattr(other, name)) for name in ("host_writes", "stored_bytes")}
        return CountedWork(**summed | shared)

    def since(self, before: "CountedWork", count: int) -> dict[str, float]:
        """Return what each of `count` objects took since an earlier reading."""
        names = [each.name for each in fields(self)]
        return {name: round((getattr(self, name) - getattr(before, name)) / count, 4) for name in names}


async def read_counted_work(host: HTTPClient) -> CountedWork:
    total = (await scrape(host)).total
    requests, events = "federation_client_requests_total", "federation_runtime_informer_events_total"
    return CountedWork(
        reconciles=total("federation_runtime_reconciles_total"),
        conflicts=total("federation_runtime_reconciles_total", outcome=frozenset({"conflict"})),
        host_writes=int((await host.list(FEDERATED_CLUSTERS)).resource_version) - total(events, **_SHARED),
        commits=total("federation_store_commits_total"),
        commit_seconds=total("federation_store_commit_seconds_sum"),
        member_reads=total(requests, verb=frozenset({"get", "list"})),
        member_writes=total(requests, verb=_WRITES),
        stored_bytes=total("federation_store_used_bytes"),
    )
