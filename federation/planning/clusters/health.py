"""Derive the published health of a cluster from its probes, without flapping (docs/reference/clusters.md). Pure.

`damp` takes the published, the pending and the observed verdict and returns the next ones. A loss of health must last
before it is published, because every object of the cluster is reconciled when it changes; a recovery is published at
once by default. `controllers/cluster` probes and writes.
"""

from dataclasses import dataclass

from federation.api import names


@dataclass(frozen=True, slots=True)
class Verdict:
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

    def is_same(self, other: "Verdict") -> bool:
        """Return True if status and reason are equal; messages may differ."""
        return self._key == other._key

    @property
    def _key(self) -> tuple[str, str, str, str]:
        return self.ready, self.ready_reason, self.offline, self.offline_reason


def healthy() -> Verdict:
    """Return the verdict for the answer "ok"."""
    return Verdict(
        "True",
        names.REASON_CLUSTER_READY,
        "False",
        names.REASON_CLUSTER_REACHABLE,
        "/healthz responded with ok",
    )


def unhealthy(answer: str) -> Verdict:
    """Return the verdict for another answer than "ok"."""
    text = f"/healthz responded without ok: {answer}" if answer else "/healthz responded without ok"
    return Verdict("False", names.REASON_HEALTHZ_NOT_OK, "False", names.REASON_CLUSTER_REACHABLE, text)


def unreachable(error: str) -> Verdict:
    """Return the verdict for a probe without an answer."""
    return Verdict(
        "Unknown",
        names.REASON_CLUSTER_NOT_REACHABLE,
        "True",
        names.REASON_CLUSTER_NOT_REACHABLE,
        f"cluster is not reachable: {error}" if error else "cluster is not reachable",
    )


def not_usable(reason: str, error: str) -> Verdict:
    """Return the verdict for a reachable cluster whose resources or API were never discovered."""
    return Verdict("False", reason, "False", names.REASON_CLUSTER_REACHABLE, error)


@dataclass(frozen=True, slots=True)
class Damping:
    """How long an observation must last before it replaces the published one."""

    failure_s: float = 30.0
    recovery_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Pending:
    """An observation that differs from the published one, and the monotonic time of its first occurrence."""

    verdict: Verdict
    since_s: float


def damp(
    published: Verdict | None, pending: Pending | None, observed: Verdict, now_s: float, damping: Damping
) -> tuple[Verdict, Pending | None]:
    """Return the verdict to publish and the pending one; the first one, and a wrong identity, is published at once."""
    if published is None or published.is_same(observed) or observed.ready_reason == names.REASON_IDENTITY_MISMATCH:
        return observed, None
    since_s = pending.since_s if pending is not None and pending.verdict.is_same(observed) else now_s
    wait_s = damping.recovery_s if observed.is_ready else damping.failure_s
    if now_s - since_s >= wait_s:
        return observed, None
    return published, Pending(observed, since_s)
