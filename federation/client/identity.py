"""Prove that the server at a member's address is the cluster that joined.

Addresses are reused: after a move, another cluster can answer at a member's endpoint and accept its credentials. Two
facts identify a member: the uid of its namespace kube-system, which the FederatedCluster records when it joins, and the
annotation federated-cluster-uid on its system namespace. `limitedtransport.py` checks both before it uses a connection.
"""

from contextvars import ContextVar
from dataclasses import dataclass

from federation.api import names
from federation.apimachinery.errors import ClusterIdentityMismatch, Forbidden, NotFound
from federation.apimachinery.resources import NAMESPACES, Object
from federation.client.client import Request, Transport

KUBE_SYSTEM = "kube-system"
"""The namespace whose uid identifies a cluster: every cluster has it, and nothing recreates it."""

_REMEDY = "if another cluster has taken its place: fedctl unjoin CLUSTER --force --reason TEXT, and join the new one"

is_checking: ContextVar[bool] = ContextVar("is_checking", default=False)
"""True in a task that checks an identity: its requests need no checked connection and no slot."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The certificate or account that a member must show."""

    claim: str
    """The uid of the FederatedCluster."""
    cluster_uid: str = ""
    """The uid of the member's kube-system namespace; "" for a member that joined before uids were recorded."""
    is_leaving: bool = False
    """The FederatedCluster is being deleted: its claim may be gone already."""


def identity_of(cluster: Object) -> Identity | None:
    """Return the identity of a joined FederatedCluster; None before it has joined."""
    status, metadata = cluster.get("status") or {}, cluster["metadata"]
    if not status.get("joinPerformed"):
        return None
    recorded = str(status.get("clusterUid") or "")
    return Identity(str(metadata.get("uid", "")), recorded, is_leaving=bool(metadata.get("deletionTimestamp")))


async def check_identity(cluster: str, transport: Transport, identity: Identity) -> str:
    """Return the uid of the cluster behind the transport; ClusterIdentityMismatch.

    The uid is "" if none was recorded and we may not read it. Forbidden: one was recorded, but our rights are lost.
    """
    title = f"the server at the address of cluster {cluster} is not the cluster that joined"
    uid = await (_kube_system_uid(transport) if identity.cluster_uid else cluster_uid(transport))
    if identity.cluster_uid and uid != identity.cluster_uid:
        raise ClusterIdentityMismatch(
            f"{title}: the uid of its namespace {KUBE_SYSTEM} is {uid or None}, recorded is {identity.cluster_uid};"
            f" correct spec.apiEndpoint; {_REMEDY}"
        )
    owner = await _owner(transport)
    if owner == identity.claim:
        return uid
    # A claim that an administrator removed is no evidence of another cluster if the recorded uid matches.
    if owner == "" and (identity.cluster_uid or identity.is_leaving):
        return uid
    raise ClusterIdentityMismatch(
        f"{title}: its namespace {names.SYSTEM_NAMESPACE} has {names.FEDERATED_CLUSTER_UID}={owner or None},"
        f" expected is {identity.claim}; correct spec.apiEndpoint; {_REMEDY}"
    )


async def cluster_uid(transport: Transport) -> str:
    """Return the uid of the cluster's namespace kube-system, "" if there is none or we may not read it."""
    try:
        return await _kube_system_uid(transport)
    except Forbidden:
        return ""


async def _kube_system_uid(transport: Transport) -> str:
    try:
        return _text(await transport.request(Request("get", NAMESPACES, name=KUBE_SYSTEM)), "uid")
    except NotFound:
        return ""


async def _owner(transport: Transport) -> str:
    try:
        namespace = await transport.request(Request("get", NAMESPACES, name=names.SYSTEM_NAMESPACE))
    except NotFound:
        return ""
    metadata = namespace.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    owner = annotations.get(names.FEDERATED_CLUSTER_UID) if isinstance(annotations, dict) else None
    return owner if isinstance(owner, str) else ""


def _text(obj: Object, key: str) -> str:
    metadata = obj.get("metadata")
    value = metadata.get(key) if isinstance(metadata, dict) else None
    return value if isinstance(value, str) else ""
