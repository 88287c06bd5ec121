"""When no replica may leave a lost cluster, whatever its taints say. Pure.

More than a share of the clusters lost at once means that the clusters are less likely the cause than something that
they share. And if no cluster answers any more, all lost within one probe period, the control plane's own network is the
likelier cause; a single answer, even a bad one, shows that it works. Evictions halt until enough clusters are back, and
a moment longer, so that the rest can return too.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from federation.api import names
from federation.apimachinery import conditions
from federation.apimachinery.clock import from_rfc3339, to_rfc3339
from federation.planning.changehold import Hold
from federation.planning.clusters.health import is_lost


@dataclass(frozen=True, slots=True)
class HaltOptions:
    """When evictions halt."""

    share: float = 0.5
    """More than this share of the clusters not ready halts evictions; 1 for no such halt."""
    probe_period_s: float = 10.0
    """Clusters that were lost within this time count as lost at once. It should not be below the probes' interval."""
    settle_s: float = 15.0
    """How long evictions wait after a halt, and for the loss of further clusters after the first one."""


class HaltReason(StrEnum):
    """Why evictions halt; also the reason of condition EvictionAllowed of a FederatedCluster."""

    MAJORITY = "MajorityNotReady"
    NETWORK = "NetworkSuspected"
    SETTLING = "Settling"
    NOT_LOST = "NotLost"


@dataclass(frozen=True, slots=True)
class ClusterState:
    """Condition Ready of a joined cluster: "True", "False" or "Unknown", since when, and why."""

    name: str
    ready: str
    since: datetime
    reason: str = ""

    @property
    def is_ready(self) -> bool:
        """Whether the cluster is ready."""
        return self.ready == "True"

    @property
    def is_lost(self) -> bool:
        """Whether the reason is evidence against the cluster."""
        return is_lost(self.ready, self.reason)


def state_of(cluster: Mapping[str, Any]) -> ClusterState | None:
    """Return the state of a FederatedCluster; None unless it has joined and was probed, or while it leaves."""
    metadata, stated = cluster.get("metadata") or {}, (cluster.get("status") or {}).get("conditions")
    ready = conditions.find(stated, names.CLUSTER_READY)
    if metadata.get("deletionTimestamp") or ready is None or not conditions.is_true(stated, names.CLUSTER_JOINED):
        return None
    try:
        since = from_rfc3339(str(ready.get("lastTransitionTime")))
    except ValueError:
        return None
    return ClusterState(str(metadata.get("name")), str(ready.get("status")), since, str(ready.get("reason") or ""))


def states_of(clusters: Iterable[Mapping[str, Any]]) -> list[ClusterState]:
    """Return the states of the clusters that have one."""
    return [state for cluster in clusters if (state := state_of(cluster)) is not None]


def next_halt(
    previous: Hold | None, states: Sequence[ClusterState], now: datetime, options: HaltOptions
) -> Hold | None:
    """Return the halt that holds now, None if replicas may leave; `previous` is the halt that held until now."""
    found = _find(states, options)
    if found is not None or previous is None:
        return found
    if previous.until is None:
        until = now + timedelta(seconds=options.settle_s)
        return Hold(HaltReason.SETTLING, f"enough clusters are back; evictions resume at {to_rfc3339(until)}", until)
    return previous if now < previous.until else None


def halt_of(cluster: Mapping[str, Any]) -> str:
    """Return why nothing may leave this lost FederatedCluster, as its condition says; "" if replicas may leave."""
    found = conditions.find((cluster.get("status") or {}).get("conditions"), names.EVICTION_ALLOWED)
    return str(found.get("message") or "") if found is not None and found.get("status") == "False" else ""


def fault_of(cluster: Mapping[str, Any]) -> str:
    """Return why a FederatedCluster is not ready although it is not lost, with the remedy; "" for any other cluster."""
    state = state_of(cluster)
    if state is None or state.is_ready or state.is_lost:
        return ""
    ready = conditions.find((cluster.get("status") or {}).get("conditions"), names.CLUSTER_READY) or {}
    return str(ready.get("message") or state.reason)


def _find(states: Sequence[ClusterState], options: HaltOptions) -> Hold | None:
    lost = [state for state in states if state.is_lost]
    if len(states) < 2 or not lost:  # with one cluster there is no other one to move to
        return None
    times = sorted(state.since for state in lost)
    spread_s = (times[-1] - times[0]).total_seconds()
    if all(state.ready == "Unknown" for state in states) and spread_s <= options.probe_period_s:
        text = f"all {len(states)} clusters stopped answering within {options.probe_period_s:g} s"
        return Hold(HaltReason.NETWORK, f"{text}: the control plane's own network is the likelier cause")
    if len(lost) > options.share * len(states):
        # Without the clusters' names: a tenant who may read one cluster's condition need not be allowed to read others.
        text = f"{len(lost)} of {len(states)} clusters are lost, more than {options.share:.0%}"
        return Hold(HaltReason.MAJORITY, text)
    return None
