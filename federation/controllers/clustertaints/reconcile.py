"""The step for one FederatedCluster: write the taints that its condition Ready calls for.

The write is conditional on the version that was read, because a merge patch replaces the whole list: a taint that a
user adds at the same time must not be lost. A conflict is retried. A flapping cluster keeps its taints for a while
after its return (`planning/failover/holdout.py`).
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery import conditions
from federation.apimachinery.clock import parse_rfc3339, to_rfc3339
from federation.apimachinery.errors import NotFound
from federation.apimachinery.listening import AWAY_S
from federation.apimachinery.resources import Object
from federation.controllers.clustertaints.names import (
    EVENT_CLUSTER_HELD_OUT,
    EVENT_CLUSTER_TAINTED,
    EVENT_CLUSTER_UNTAINTED,
)
from federation.planning.clusters.clustertaints import HEALTH_TAINT_KEYS, describe_changes, plan_taints, postpone
from federation.planning.clusters.health import LOST_REFRESH_S, is_lost
from federation.planning.failover.halts import state_of
from federation.planning.failover.holdout import (
    HoldoutOptions,
    held_out_until,
    is_of_restart,
    losses_of,
    losses_text,
    next_losses,
)
from federation.runtime.controller import DONE, Result
from federation.runtime.events import NORMAL, WARNING
from federation.runtime.host import Host


class Reconciler:
    """Writes the health taints of one cluster per call. `cluster` returns the cached FederatedCluster."""

    def __init__(self, host: Host, cluster: Callable[[str], Object | None], options: HoldoutOptions) -> None:
        self._options = options
        self._client = host.client
        self._cluster = cluster
        self._recorder = host.recorder
        self._clock = host.clock
        self._started_at = host.clock.now()
        self._ready_at_first: set[str] = set()
        self._presence = host.presence
        self._counted_s: dict[str, float] = {}
        """By cluster: how long this process had been away, as far as its taints take that into account."""

    def see(self, cluster: Object) -> None:
        """Note the state of a cluster that is seen for the first time."""
        state = state_of(cluster)
        if state is not None and state.is_ready:
            self._ready_at_first.add(cluster["metadata"]["name"])

    async def reconcile(self, name: str) -> Result:
        """Add the taints of a cluster that is not ready, or remove them; a cluster that leaves stays as it is."""
        cluster = self._cluster(name)
        if cluster is None or cluster["metadata"].get("deletionTimestamp"):
            return DONE
        ready = conditions.find((cluster.get("status") or {}).get("conditions"), names.CLUSTER_READY)
        if ready is None:
            return DONE  # it has not joined yet
        taints = (cluster.get("spec") or {}).get("taints") or []
        now, away_s = self._clock.now(), self._presence.away_s
        unheard_s = self._unheard_s(name, ready, now, away_s)
        heard = postpone(taints, unheard_s, now) if unheard_s else taints
        status, reason = str(ready.get("status")), str(ready.get("reason") or "")
        planned = plan_taints(heard, status, now, is_lost=is_lost(status, reason))
        if planned is None and heard != taints:
            planned = heard
        until = self._held_out_until(cluster) if planned is not None else None
        if until is not None and now < until:
            return Result((until - now).total_seconds())
        annotations = self._losses(cluster)
        if planned is None and not annotations:
            self._counted_s[name] = away_s
            return DONE
        metadata = {"resourceVersion": cluster["metadata"]["resourceVersion"], "annotations": annotations}
        spec = {} if planned is None else {"taints": planned or None}
        patch = {"metadata": metadata, "spec": spec}
        try:
            written = await self._client.patch(FEDERATED_CLUSTERS, name, patch, field_manager=names.FIELD_MANAGER)
        except NotFound:
            return DONE
        self._counted_s[name] = away_s
        self._report({**_TYPE, **written}, *describe_changes(taints, taints if planned is None else planned))
        return DONE

    def _unheard_s(self, name: str, ready: Mapping[str, Any], now: datetime, away_s: float) -> float:
        """Return for how long, since the taints were written, no process could hear an answer of the cluster.

        At the first look of a process that is the time since the last probe that an earlier one has recorded.
        """
        counted_s = self._counted_s.get(name)
        if counted_s is not None:
            return away_s - counted_s if away_s - counted_s >= AWAY_S else 0.0
        probed_at = parse_rfc3339(ready.get("lastProbeTime"))
        gap_s = (now - probed_at).total_seconds() if probed_at is not None else 0.0
        return gap_s if gap_s >= LOST_REFRESH_S + AWAY_S else 0.0

    def _held_out_until(self, cluster: Object) -> datetime | None:
        """Return until when a flapping cluster that is ready again keeps its taints; None while it is not ready."""
        state, losses = state_of(cluster), losses_of(cluster)
        if state is None or not state.is_ready or losses is None:
            return None
        was_ready = cluster["metadata"]["name"] in self._ready_at_first
        if is_of_restart(losses, self._started_at, self._options, was_ready=was_ready):
            return None
        until = held_out_until(losses, state.since, self._options)
        if self._clock.now() < until:
            text = f"lost {losses.count} times in a row: it keeps its taints until {to_rfc3339(until)}"
            self._recorder.event({**_TYPE, **cluster}, WARNING, EVENT_CLUSTER_HELD_OUT, text)
        return until

    def _losses(self, cluster: Object) -> dict[str, str]:
        """Return the annotation that records a further loss, {} without one."""
        state = state_of(cluster)
        if state is None or not state.is_lost or (key := HEALTH_TAINT_KEYS.get(state.ready)) is None:
            return {}
        losses = next_losses(cluster, losses_of(cluster), state.since, key, self._options)
        return {} if losses is None else {names.LOSSES: losses_text(losses)}

    def _report(self, cluster: Object, added: str, removed: str) -> None:
        if added:
            self._recorder.event(cluster, WARNING, EVENT_CLUSTER_TAINTED, f"added taints {added}")
        elif removed:
            self._recorder.event(cluster, NORMAL, EVENT_CLUSTER_UNTAINTED, f"removed taints {removed}")


_TYPE = {"apiVersion": FEDERATED_CLUSTERS.api_version, "kind": FEDERATED_CLUSTERS.kind}
