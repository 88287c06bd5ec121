"""Wait until the pods of workloads run where they are placed: what `fedctl migrate` and `rebalance` call done.

The control plane's own view of the delivery is read, which `fedctl why` prints, too. Why pods do not run is read from
the member.

Decision: docs/decisions/0237-done-means-running.md
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from federation.apimachinery.amounts import to_count
from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import ApiError, ClusterError, ConfigurationError
from federation.apimachinery.listening import Patience
from federation.apimachinery.resources import Resource
from federation.cli.applications.deliveryview import read_delivery
from federation.cli.members.access import Member
from federation.cli.members.fanout import describe_problem
from federation.cli.members.lookup import Scope, read_one, read_pods
from federation.planning.applications.notrunning import why_not_running
from federation.plans.edits import describe_object

if TYPE_CHECKING:
    from federation.client.http import HTTPClient

_POLL_S = 0.5
_STILL_S = 10.0
"""After this time without progress the reason is printed once."""
_PATIENCE_S = 5.0


class Workload(NamedTuple):
    """A workload of the host."""

    resource: Resource
    namespace: str
    name: str

    @property
    def title(self) -> str:
        """`deployment/web in shop`."""
        return describe_object(self.resource, self.namespace, self.name)


class _Late(NamedTuple):
    """A cluster in which a workload is not as it is to be; `wanted` is 0 where it is to end."""

    workload: Workload
    cluster: str
    ready: int
    wanted: int
    message: str


async def wait_running(host: "HTTPClient", workloads: Sequence[Workload], clock: Clock, patience: Patience) -> int:
    """Wait until every workload runs where it is placed and nowhere else; print the outcome, return 1 if it does not.

    Kinds whose ready pods are not counted, such as Jobs, are done once their clusters have them.
    """
    last, changed_s, is_said = None, clock.monotonic(), False
    while True:
        rows = {workload: await _rows(host, workload) for workload in workloads}
        late = [each for workload, found in rows.items() for each in _late(workload, found)]
        if not late:
            for workload, found in rows.items():
                print(_running(workload, found))
            return 0
        if late != last:
            last, changed_s, is_said = late, clock.monotonic(), False
        elif not is_said and clock.monotonic() - changed_s >= _STILL_S:
            is_said = True
            for each in late:
                print(f"waiting: {await _describe(host, each)}")
        if patience.is_over():
            for each in late:
                print(await _describe(host, each))
            print(f"decided, and not running after {patience.timeout_s:g} s")
            return 1
        await asyncio.sleep(_POLL_S)


async def _rows(host: "HTTPClient", workload: Workload) -> Sequence[Mapping[str, Any]]:
    rows: Sequence[Mapping[str, Any]] = (await read_delivery(host, *workload))["clusters"]
    return rows


def _late(workload: Workload, rows: Sequence[Mapping[str, Any]]) -> list[_Late]:
    found = []
    for row in rows:
        ready, wanted, message = row["ready"], row["wanted"] or 0, row["message"]
        if not row["placed"]:
            found.append(_Late(workload, row["cluster"], ready or 0, 0, message or "it is being removed"))
        elif row["applied"] != "yes":
            status = ": ".join(filter(None, (row["status"], message)))
            found.append(_Late(workload, row["cluster"], ready or 0, wanted, status or "it is not delivered yet"))
        elif ready is not None and ready < wanted:
            found.append(_Late(workload, row["cluster"], ready, wanted, ""))
    return found


def _running(workload: Workload, rows: Sequence[Mapping[str, Any]]) -> str:
    counts = [f"{_kept(row)} in {row['cluster']}" for row in rows if row["ready"] is not None]
    if counts:
        return f"running: {workload.title}: {', '.join(counts)}"
    return f"decided: {workload.title}; pods of this kind are not counted"


def _kept(row: Mapping[str, Any]) -> int:
    """Return the ready replicas that stay. Those beyond the wanted ones stop, unless an autoscaler there wants them."""
    ready: int = row["ready"]
    return ready if row["wanted"] is None or row.get("scaler") else min(ready, row["wanted"])


async def _describe(host: "HTTPClient", late: _Late) -> str:
    workload, cluster, ready, wanted, message = late
    if wanted == 0 and message:
        left = f"{to_count(ready, 'replica')} still there" if ready else "still there"
        return f"{workload.title}: {left} in {cluster}: {message}"
    text = f"{workload.title}: {ready} of {to_count(wanted, 'replica')} run in {cluster}"
    member = Member(host, cluster, _PATIENCE_S)
    try:
        live = await read_one(member, workload.resource, workload.namespace, workload.name)
        pods = await read_pods(member, workload.resource, Scope(workload.namespace), workload.name) if live else []
        reason = why_not_running(live, pods) or message or "its pods are not ready yet"
    except (ApiError, ClusterError, ConfigurationError) as error:
        reason = f"the reason cannot be read: {describe_problem(cluster, error)}"
    return f"{text}: {reason}"
