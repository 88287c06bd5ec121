"""What one health probe of a member says about the member, and what it says about us only. Pure.

A member that answers is not lost: it rejects our credentials, its certificate is not one that we accept, or another
server answers at its address. Such a cluster is not ready, because nothing can be done in it, but its pods run: nothing
new is placed there, and nothing leaves. `health.is_lost` is the other half of this rule: only silence and the member's
own word that it is not healthy are evidence against it.

Decision: docs/decisions/0211-a-fault-of-ours-is-not-a-fault-of-the-cluster.md
"""

from dataclasses import dataclass

from federation.api import names
from federation.apimachinery.errors import (
    ApiError,
    ClusterIdentityMismatch,
    ClusterUnreachable,
    FederationError,
    Obstacle,
    RequestTimeout,
)
from federation.planning.clusters import health
from federation.planning.clusters.health import HealthState
from federation.planning.clusters.names import (
    REASON_AGENTS_NOT_CONNECTED,
    REASON_CERTIFICATE_EXPIRED,
    REASON_CERTIFICATE_NOT_TRUSTED,
    REASON_CERTIFICATE_NOT_YET_VALID,
    REASON_CERTIFICATE_OTHER_NAME,
    REASON_CONTROL_PLANE_BUSY,
    REASON_CREDENTIALS_REJECTED,
    REASON_CREDENTIALS_UNUSABLE,
    REASON_NAME_NOT_FOUND,
    REASON_NAME_NOT_RESOLVED,
    REASON_NOT_ASKED,
    REASON_PROBE_FORBIDDEN,
    REASON_PROXY_NOT_REACHABLE,
    REASON_PROXY_REFUSED,
    REASON_REQUESTS_THROTTLED,
    REASON_TLS_REFUSED,
    REASON_UNEXPECTED_ANSWER,
)

_OK = b"ok"
_TEXT_MAX = 200
_UPDATE = "fedctl join --update-credentials {cluster} --kubeconfig FILE"
_RENEW = f"renew them with: {_UPDATE}"
_BY_CODE = {
    401: (REASON_CREDENTIALS_REJECTED, "the member rejects our credentials ({answer}); " + _RENEW),
    403: (
        REASON_PROBE_FORBIDDEN,
        "our credentials may not read {path} ({answer}); grant that to our account, or " + _RENEW,
    ),
    429: (
        REASON_REQUESTS_THROTTLED,
        "the member limits our requests ({answer}); raise its limit, or lower FEDERATION_MEMBER_REQUESTS_IN_FLIGHT_MAX",
    ),
}
_OTHER_CODE = (
    "what answers {path} is no healthy API server ({answer}); if the member has moved, correct its address with: "
    + _UPDATE
)
_BY_OBSTACLE = {
    Obstacle.UNTRUSTED: (
        REASON_CERTIFICATE_NOT_TRUSTED,
        "{answer}; if the member has a new CA, store it with: "
        + _UPDATE
        + "; otherwise another server answers at its address",
    ),
    Obstacle.EXPIRED: (
        REASON_CERTIFICATE_EXPIRED,
        "{answer}; renew the certificate of the member's API server, or set the clock of the control plane's machine",
    ),
    Obstacle.NOT_YET_VALID: (
        REASON_CERTIFICATE_NOT_YET_VALID,
        "{answer}; set the clock of the control plane's machine, or that of the member's",
    ),
    Obstacle.OTHER_NAME: (
        REASON_CERTIFICATE_OTHER_NAME,
        "{answer}; give an address or a tls-server-name that the certificate has, with: " + _UPDATE,
    ),
    Obstacle.TLS_REFUSED: (
        REASON_TLS_REFUSED,
        "{answer}; check the port of the member's address, and renew a client certificate with: " + _UPDATE,
    ),
}
"""A server answered, but not as the API server that we know."""
_NOT_ASKED = {
    Obstacle.UNRESOLVED: (
        REASON_NAME_NOT_RESOLVED,
        "{answer}; check the DNS server of the control plane's machine (/etc/resolv.conf)",
    ),
    Obstacle.NO_SUCH_NAME: (
        REASON_NAME_NOT_FOUND,
        "{answer}; check the DNS record of the member's address, and the DNS server and search domains of the control"
        " plane's machine (/etc/resolv.conf); if the member has moved: " + _UPDATE + "; if it was deleted:"
        " fedctl unjoin {cluster} --force --reason TEXT",
    ),
    Obstacle.PROXY_AWAY: (
        REASON_PROXY_NOT_REACHABLE,
        "{answer}; start the proxy that proxy-url names, or correct its address with: " + _UPDATE,
    ),
    Obstacle.AGENTS_AWAY: (
        REASON_AGENTS_NOT_CONNECTED,
        "{answer}; check the load balancer, the firewall and the certificate of the address in the agents' tokens",
    ),
    Obstacle.PROXY_REFUSED: (
        REASON_PROXY_REFUSED,
        "{answer}; correct the user or the rules of the proxy that proxy-url names",
    ),
    Obstacle.OURS: (REASON_NOT_ASKED, "the member was not asked: {answer}; see the control plane's log and limits"),
}
"""No request reached the member, for a reason on our side."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer to a probe."""

    code: int
    body: bytes = b""

    def __str__(self) -> str:
        text = self.body[:1000].decode(errors="replace").strip()
        return f"{self.code} {text[:_TEXT_MAX]}".strip()


def judge(cluster: str, path: str, seen: Answer | FederationError, *, was_away: bool = False) -> HealthState:
    """Return the health that follows from what a probe of `path` saw: an answer, or the error that came instead.

    `was_away`: this process stood still for so long that it could not have noticed an answer in time.
    """
    match seen:
        case Answer():
            return _judge_answer(cluster, path, seen)
        case ApiError():  # of the requests that check the member's identity
            return _judge_answer(cluster, path, Answer(seen.code, seen.message.encode()))
        case ClusterIdentityMismatch():
            return health.not_usable(names.REASON_IDENTITY_MISMATCH, str(seen))
        case RequestTimeout() if was_away:
            text = "this process was too busy to hear an answer of the member; give it more CPU, or fewer clusters"
            return health.not_asked(REASON_CONTROL_PLANE_BUSY, text)
        case RequestTimeout():
            return health.unreachable(str(seen))
        case ClusterUnreachable():
            return _judge_obstacle(cluster, path, seen)
        case _:  # the Secret, a token file, a plugin, an answer beyond a limit
            text = f"{seen}; correct them with: {_UPDATE.format(cluster=cluster)}"
            return health.not_asked(REASON_CREDENTIALS_UNUSABLE, f"the member cannot be asked: {text}")


def _judge_answer(cluster: str, path: str, answer: Answer) -> HealthState:
    if answer.code == 200 and answer.body.strip() == _OK:
        return health.healthy(path)
    if answer.code == 200 or answer.code >= 500:
        return health.unhealthy(str(answer), path)
    reason, text = _BY_CODE.get(answer.code, (REASON_UNEXPECTED_ANSWER, _OTHER_CODE))
    return health.not_usable(reason, text.format(cluster=cluster, path=path, answer=answer))


def _judge_obstacle(cluster: str, path: str, seen: ClusterUnreachable) -> HealthState:
    said = health.without_address(str(seen))
    if (ours := _NOT_ASKED.get(seen.obstacle)) is not None:
        return health.not_asked(ours[0], ours[1].format(cluster=cluster, answer=said))
    if (found := _BY_OBSTACLE.get(seen.obstacle)) is not None:
        return health.not_usable(found[0], found[1].format(cluster=cluster, path=path, answer=said))
    return health.unreachable(str(seen))
