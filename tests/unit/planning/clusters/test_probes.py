"""What a probe says about a member: a table of all that it can see."""

import pytest
from tests.unit.planning.clusters.test_clustertaints import NOW

from federation.api import names
from federation.apimachinery.errors import (
    ClusterError,
    ClusterIdentityMismatch,
    ClusterLimitExceeded,
    ClusterUnreachable,
    ConfigurationError,
    FederationError,
    Forbidden,
    InternalError,
    Obstacle,
    RequestTimeout,
    Unauthorized,
)
from federation.planning.clusters import health
from federation.planning.clusters.clustertaints import plan_taints
from federation.planning.clusters.probes import Answer, judge
from federation.tunnel.tunnel import CarrierClosed

UPDATE = "fedctl join --update-credentials east --kubeconfig FILE"


def unreached(obstacle: Obstacle) -> ClusterUnreachable:
    return ClusterUnreachable(f"https://east:6443: {obstacle.value}", obstacle)


LOST = [
    (Answer(500, b"etcd failed"), "HealthzNotOK", "/readyz responded without ok: 500 etcd failed"),
    (Answer(503), "HealthzNotOK", "503"),
    (Answer(200, b"not ok"), "HealthzNotOK", "200 not ok"),
    (InternalError("boom"), "HealthzNotOK", "500 boom"),
    (ClusterUnreachable("https://east:6443: no connection (Connection refused)"), "ClusterNotReachable", "refused"),
    (CarrierClosed("the tunnel has ended"), "ClusterNotReachable", "the tunnel has ended"),
    (RequestTimeout("no answer within 3 s"), "ClusterNotReachable", "no answer within 3 s"),
]
ANSWERED = [
    (Answer(401, b"Unauthorized"), "CredentialsRejected", UPDATE),
    (Unauthorized("token expired"), "CredentialsRejected", UPDATE),
    (Answer(403), "ProbeForbidden", UPDATE),
    (Forbidden("namespaces is forbidden"), "ProbeForbidden", UPDATE),
    (Answer(429, b"too many {requests}"), "RequestsThrottled", "FEDERATION_MEMBER_REQUESTS_IN_FLIGHT_MAX"),
    (Answer(404), "UnexpectedAnswer", UPDATE),
    (Answer(302), "UnexpectedAnswer", UPDATE),
    (unreached(Obstacle.UNTRUSTED), "CertificateNotTrusted", UPDATE),
    (unreached(Obstacle.EXPIRED), "CertificateExpired", "set the clock of the control plane's machine"),
    (unreached(Obstacle.NOT_YET_VALID), "CertificateNotYetValid", "set the clock of the control plane's machine"),
    (unreached(Obstacle.OTHER_NAME), "CertificateOfOtherName", UPDATE),
    (unreached(Obstacle.TLS_REFUSED), "TLSRefused", UPDATE),
    (ClusterIdentityMismatch("another cluster"), names.REASON_IDENTITY_MISMATCH, "another cluster"),
]
NOT_ASKED = [
    (unreached(Obstacle.UNRESOLVED), "NameNotResolved", "/etc/resolv.conf"),
    (unreached(Obstacle.NO_SUCH_NAME), "NameNotFound", "fedctl unjoin east --force --reason TEXT"),
    (unreached(Obstacle.PROXY_AWAY), "ProxyNotReachable", UPDATE),
    (unreached(Obstacle.AGENTS_AWAY), "AgentsNotConnected", "load balancer"),
    (unreached(Obstacle.PROXY_REFUSED), "ProxyRefused", "proxy-url"),
    (unreached(Obstacle.OURS), "NotAsked", "the control plane's log"),
    (ConfigurationError('Secret "east" does not exist'), "CredentialsUnusable", UPDATE),
    (ClusterError("token file /x: No such file"), "CredentialsUnusable", UPDATE),
    (ClusterLimitExceeded("an answer of more than 32 MiB"), "CredentialsUnusable", "32 MiB"),
]


def test_the_answer_ok_is_the_only_one_of_a_ready_member() -> None:
    assert judge("east", "/readyz", Answer(200, b"ok\n")) == health.healthy("/readyz")


@pytest.mark.parametrize(("seen", "reason", "text"), LOST, ids=str)
def test_a_silence_and_the_own_word_of_a_member_are_evidence_against_it(
    seen: Answer | FederationError, reason: str, text: str
) -> None:
    found = judge("east", "/readyz", seen)
    assert (found.ready_reason, found.is_lost) == (reason, True)
    assert text in found.message
    assert "https://" not in found.message


@pytest.mark.parametrize(("seen", "reason", "text"), [*ANSWERED, *NOT_ASKED], ids=str)
def test_a_fault_of_ours_makes_a_cluster_unready_names_the_remedy_and_moves_nothing(
    seen: Answer | FederationError, reason: str, text: str
) -> None:
    found = judge("east", "/readyz", seen)
    assert (found.ready, found.ready_reason, found.is_lost) == ("False", reason, False)
    assert text in found.message
    assert "https://" not in found.message
    is_asked = not any(seen is each for each, _, _ in NOT_ASKED)
    assert found.offline == ("False" if is_asked else "Unknown")
    taints = plan_taints([], found.ready, NOW, is_lost=found.is_lost) or []
    assert [taint["effect"] for taint in taints] == ["NoSchedule"]


def test_a_silence_says_nothing_about_a_member_if_this_process_stood_still() -> None:
    silent = judge("east", "/readyz", RequestTimeout("no answer within 3 s"), was_away=True)
    assert (silent.ready, silent.ready_reason, silent.is_lost) == ("False", "ControlPlaneBusy", False)
    assert "give it more CPU" in silent.message
    refused = ClusterUnreachable("no connection (Connection refused)")
    assert judge("east", "/readyz", refused, was_away=True).is_lost, "the kernel waits for nobody"


def test_every_obstacle_has_a_verdict_of_its_own() -> None:
    reasons = {judge("east", "/readyz", unreached(each)).ready_reason for each in Obstacle}
    assert len(reasons) == len(Obstacle)
    lost = [each for each in Obstacle if judge("east", "/readyz", unreached(each)).is_lost]
    assert lost == [Obstacle.NO_ANSWER], "all others can be faults of ours"
