"""Derive the published health of a cluster from its probes, without flapping (docs/reference/clusters.md). Pure.

`damp` takes the published, the pending and the observed health and returns the next ones. A change of health must be
observed several times in a row, and for some time, before it is published, because every object of the cluster is
reconciled when it changes. `next_probe_s` says when a member is probed again. `controllers/cluster` probes and writes;
`clustertaints.py` derives the taints from the published conditions.
"""

import re
from dataclasses import dataclass
from functools import cache

from federation.api import names
from federation.planning.clusters.names import (
    REASON_AGENTS_NOT_CONNECTED,
    REASON_CLUSTER_NOT_REACHABLE,
    REASON_CLUSTER_REACHABLE,
    REASON_CLUSTER_READY,
    REASON_CONTROL_PLANE_BUSY,
    REASON_CREDENTIALS_REJECTED,
    REASON_HEALTHZ_NOT_OK,
    REASON_NAME_NOT_FOUND,
    REASON_PROBE_FORBIDDEN,
    REASON_REQUESTS_THROTTLED,
    REASON_UNEXPECTED_ANSWER,
)

_ADDRESS = re.compile(r"^https?://\S+: ")
PROBE_TIME_REFRESH_S = 300.0
"""How old a published probe time may be while nothing changes: a write per cluster and probe would be too many."""
LOST_REFRESH_S = 30.0
"""The same for a cluster that is not ready: the next process learns from it for how long none has probed."""
_ANSWERED_LOSSES = frozenset(
    {
        REASON_HEALTHZ_NOT_OK,
        REASON_CREDENTIALS_REJECTED,
        REASON_PROBE_FORBIDDEN,
        REASON_REQUESTS_THROTTLED,
        REASON_UNEXPECTED_ANSWER,
        REASON_CONTROL_PLANE_BUSY,
        REASON_AGENTS_NOT_CONNECTED,
    }
)
"""Reasons that a restart of the member's API server or of ours, or a busy moment, has for a while."""
_DAMPED_RETURNS = frozenset({REASON_CLUSTER_NOT_REACHABLE, REASON_HEALTHZ_NOT_OK})
"""Reasons whose end must last too. Any other reason ends with the first successful probe: it is about caches or
credentials of the control plane, not about the health of the member."""


@dataclass(frozen=True, slots=True)
class HealthState:
    """The Ready and Offline conditions of one probe; the message explains both."""

    ready: str
    ready_reason: str
    offline: str
    offline_reason: str
    message: str = ""

    @property
    def is_ready(self) -> bool:
        """Whether the cluster may be used."""
        return self.ready == "True"

    @property
    def is_lost(self) -> bool:
        """Whether the probe is evidence against the cluster, as `is_lost` says."""
        return is_lost(self.ready, self.ready_reason)

    @property
    def is_silent(self) -> bool:
        """Whether the probe had no answer."""
        return self.ready == "Unknown"

    def is_same(self, other: "HealthState") -> bool:
        """Return True if status and reason are equal; messages may differ."""
        return self._key == other._key

    @property
    def _key(self) -> tuple[str, str, str, str]:
        return self.ready, self.ready_reason, self.offline, self.offline_reason


@cache
def healthy(path: str = "/readyz") -> HealthState:
    """Return the health for the answer "ok" of the probed path."""
    return HealthState("True", REASON_CLUSTER_READY, "False", REASON_CLUSTER_REACHABLE, f"{path} responded with ok")


def unhealthy(answer: str, path: str = "/readyz") -> HealthState:
    """Return the health for another answer than "ok"."""
    text = f"{path} responded without ok: {answer}" if answer else f"{path} responded without ok"
    return HealthState("False", REASON_HEALTHZ_NOT_OK, "False", REASON_CLUSTER_REACHABLE, text)


def unreachable(error: str) -> HealthState:
    """Return the health for a probe without an answer; the address is in the cluster's spec."""
    error = without_address(error)
    return HealthState(
        "Unknown",
        REASON_CLUSTER_NOT_REACHABLE,
        "True",
        REASON_CLUSTER_NOT_REACHABLE,
        f"cluster is not reachable: {error}" if error else "cluster is not reachable",
    )


def not_usable(reason: str, error: str) -> HealthState:
    """Return the health for a cluster that answers, but that cannot be used, for a reason of its own."""
    return HealthState("False", reason, "False", REASON_CLUSTER_REACHABLE, error)


def not_asked(reason: str, error: str) -> HealthState:
    """Return the health for a cluster that no request reached, for a reason on our side."""
    return HealthState("False", reason, "Unknown", reason, error)


def without_address(error: str) -> str:
    """Return the text of an error without the address at its beginning."""
    return _ADDRESS.sub("", error)


def is_lost(ready: str, reason: str) -> bool:
    """Return whether condition Ready is evidence against the cluster: it is silent, or says that it is not healthy.

    Any other reason is about our credentials, certificates, limits or machine, so nothing leaves the cluster for it.
    """
    return ready == "Unknown" or (ready == "False" and reason == REASON_HEALTHZ_NOT_OK)


@dataclass(frozen=True, slots=True)
class Cadence:
    """When a member is probed, and for how long a probe waits for its answer."""

    period_s: float = 3.0
    """Between two probes of a healthy member. A watch event or another answer counts as a probe."""
    busy_period_s: float = 10.0
    """The same for a member whose watch events count as probes: a probe also finds members that are not ready."""
    recheck_s: float = 0.5
    """Between two probes while an observation differs from the published health."""
    unready_period_s: float = 2.0
    """Between two probes of a member that is published as unhealthy."""
    timeout_s: float = 3.0
    """Deadline of one probe."""


@dataclass(frozen=True, slots=True)
class Damping:
    """How often in a row, and for how long, a change must be observed before it is published."""

    failures_min: int = 2
    """Failed probes in a row before a loss of health is published."""
    failure_s: float = 3.0
    """Time from the beginning of the first of them to the end of the last."""
    answered_failure_s: float = 30.0
    """The same time for a member that answers, but not with ok: an overloaded one still takes most writes."""
    recoveries_min: int = 3
    """Successful probes in a row before the return of a member is published."""
    recovery_s: float = 2.0
    """Time from the beginning of the first of them to the end of the last."""
    watch_s_max: float = 30.0
    """How long watch events keep a member healthy whose probes have no answer."""


@dataclass(frozen=True, slots=True)
class Pending:
    """The last of `count` observations in a row that differ from the published one; the first began at `since_s`.

    `away_s` is what `Observation.away_before_s` was then.
    """

    state: HealthState
    since_s: float
    count: int = 1
    away_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Observation:
    """The health that one probe found, its beginning and end, and the last answer or watch event of the member.

    Times are monotonic seconds; `answered_s` is minus infinity before the first answer.
    """

    state: HealthState
    began_s: float
    ended_s: float
    answered_s: float = float("-inf")
    is_first_success: bool = False
    """Whether no earlier probe of this process succeeded."""
    away_before_s: float = 0.0
    """How long this process has stood still in all its life, when the probe began."""
    away_s: float = 0.0
    """The same when it ended: in that time no answer could be heard."""


def damp(
    published: HealthState | None, pending: Pending | None, observed: Observation, damping: Damping
) -> tuple[HealthState, Pending | None]:
    """Return the health to publish and the pending one; the first one, and a wrong identity, is published at once.

    The first successful probe of a process is published at once, too: what was published before it says more about the
    control plane, which was away, than about the member.

    A probe without an answer does not count when the member has sent a watch event or another answer since the probe
    began, for `watch_s_max` at most. A lost cluster whose name disappears stays lost: the name of a deleted one does.
    """
    state = observed.state
    if published is not None and published.is_lost and state.ready_reason == REASON_NAME_NOT_FOUND:
        return published, None
    if published is None or published.is_same(state) or state.ready_reason == names.REASON_IDENTITY_MISMATCH:
        return state, None
    if state.is_ready and (observed.is_first_success or published.ready_reason not in _DAMPED_RETURNS):
        return state, None
    row = Pending(state, observed.began_s, 1, observed.away_before_s)
    if pending is not None and _continues(published, pending.state, state):
        row = Pending(state, pending.since_s, pending.count + 1, pending.away_s)
    count, lasted_s = row.count, observed.ended_s - row.since_s - (observed.away_s - row.away_s)
    waiting = published, row
    if state.is_silent and observed.answered_s > observed.began_s and lasted_s < damping.watch_s_max:
        return waiting
    count_min, wait_s = damping.failures_min, damping.failure_s
    if state.is_ready:
        count_min, wait_s = damping.recoveries_min, damping.recovery_s
    elif state.ready_reason in _ANSWERED_LOSSES and (published.is_ready or state.is_lost):
        wait_s = max(wait_s, damping.answered_failure_s)
    return (state, None) if count >= count_min and lasted_s >= wait_s else waiting


def _continues(published: HealthState, pending: HealthState, observed: HealthState) -> bool:
    """Return whether the observation continues the pending row: of losses, of returns, or of one other reason.

    An answer that is no evidence against the cluster ends a row of losses, as any answer does.
    """
    if published.is_ready != observed.is_ready:
        return (pending.is_ready, pending.is_lost) == (observed.is_ready, observed.is_lost)
    return pending.is_same(observed)


def next_probe_s(
    published: HealthState | None, pending: Pending | None, probed_s: float, answered_s: float, cadence: Cadence
) -> float:
    """Return when the next probe is due, in monotonic seconds; the last one ended at `probed_s`.

    A row of differing observations is continued quickly. Without one, a healthy member is probed when it was silent for
    a period, and at the latest after the period for busy members.
    """
    if pending is not None:
        return probed_s + cadence.recheck_s
    if published is None or not published.is_ready:
        return probed_s + cadence.unready_period_s
    latest_s = probed_s + max(cadence.period_s, cadence.busy_period_s)
    return min(max(probed_s, answered_s) + cadence.period_s, latest_s)


def detection_s_max(cadence: Cadence, damping: Damping) -> float:
    """Return the longest time from the last sign of life of a member to the end of the probe that reports its loss."""
    probe_s = cadence.timeout_s + cadence.recheck_s
    by_count_s = damping.failures_min * probe_s - cadence.recheck_s
    return cadence.period_s + max(by_count_s, damping.failure_s + probe_s)
