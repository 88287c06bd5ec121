"""From probes to a published verdict: how often must a cluster look different before it counts (spec §15.3).

A pure state machine per cluster: `damp` takes what is published, what was seen before and what is seen now, and returns
what to publish. A loss of health must last before it is believed, because every object in the cluster is looked at
again when it flips; a return to health counts at once by default. `controllers/cluster` probes and writes.
"""

from dataclasses import dataclass

from federation.api import names


@dataclass(frozen=True, slots=True)
class Verdict:
    """The Ready and Offline conditions that one probe justifies; the message explains both to a person."""

    ready: str
    ready_reason: str
    offline: str
    offline_reason: str
    message: str = ""

    @property
    def is_ready(self) -> bool:
        """Whether the cluster may be used."""
        return self.ready == "True"

    def is_same(self, other: "Verdict") -> bool:
        """Say whether both publish the same status and reason; messages may differ from probe to probe."""
        return self._key == other._key

    @property
    def _key(self) -> tuple[str, str, str, str]:
        return self.ready, self.ready_reason, self.offline, self.offline_reason


def healthy() -> Verdict:
    """The cluster answered that all is well."""
    return Verdict(
        "True",
        names.REASON_CLUSTER_READY,
        "False",
        names.REASON_CLUSTER_REACHABLE,
        "/healthz responded with ok",
    )


def unhealthy(answer: str) -> Verdict:
    """The cluster answered, but not with "ok"."""
    text = f"/healthz responded without ok: {answer}" if answer else "/healthz responded without ok"
    return Verdict("False", names.REASON_HEALTHZ_NOT_OK, "False", names.REASON_CLUSTER_REACHABLE, text)


def unreachable(error: str) -> Verdict:
    """No answer from the cluster."""
    return Verdict(
        "Unknown",
        names.REASON_CLUSTER_NOT_REACHABLE,
        "True",
        names.REASON_CLUSTER_NOT_REACHABLE,
        f"cluster is not reachable: {error}" if error else "cluster is not reachable",
    )


def not_usable(reason: str, error: str) -> Verdict:
    """The cluster answers, but what we need from it (resources, discovery) never arrived yet."""
    return Verdict("False", reason, "False", names.REASON_CLUSTER_REACHABLE, error)


@dataclass(frozen=True, slots=True)
class Damping:
    """How long an observation must have been the same before it replaces the published one, per direction."""

    failure_s: float = 30.0
    recovery_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Pending:
    """An observation that differs from the published one, and since when (monotonic seconds) it has been seen."""

    verdict: Verdict
    since_s: float


def damp(
    published: Verdict | None, pending: Pending | None, observed: Verdict, now_s: float, damping: Damping
) -> tuple[Verdict, Pending | None]:
    """Return what to publish now and what is waiting to be believed; the first observation is published at once."""
    if published is None or published.is_same(observed):
        return observed, None
    since_s = pending.since_s if pending is not None and pending.verdict.is_same(observed) else now_s
    wait_s = damping.recovery_s if observed.is_ready else damping.failure_s
    if now_s - since_s >= wait_s:
        return observed, None
    return published, Pending(observed, since_s)
