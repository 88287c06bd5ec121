"""What joining and leaving do in the member: prove ownership, exchange credentials, clean up.

The proof is the annotation federated-cluster-uid on the member's system namespace: one member belongs to one
FederatedCluster. A namespace that was there before without the annotation is claimed, and only un-claimed when the
cluster leaves; one that we made is deleted then. Every step may be repeated.

Reference: docs/reference/clusters.md.
"""

from dataclasses import dataclass
from typing import Any

from federation.api import names
from federation.apimachinery import wellknown
from federation.apimachinery.errors import AlreadyExists, FederationError, NotFound
from federation.apimachinery.resources import NAMESPACES, SECRETS, SERVICE_ACCOUNTS, Object, Resource
from federation.client.client import Client, PatchType
from federation.client.identity import cluster_uid

CLUSTER_ROLES = Resource("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDINGS = Resource(
    "rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False
)


class UnjoinableError(FederationError):
    """The member belongs to somebody else; the message says to whom. Trying again is of no use."""


class NotYetError(FederationError):
    """The member is not ready for this step of the join yet; a retry helps."""

    retryable = True


@dataclass(frozen=True, slots=True)
class Host:
    """The host cluster of this federation."""

    uid: str
    """The uid of its namespace kube-system."""
    hosts: tuple[str, ...] = ()
    """The uids of the clusters that this host is, directly or not, a member of."""


async def find_host(host: Client) -> Host:
    """Return the identity of the host."""
    try:
        namespace = await host.get(NAMESPACES, names.SYSTEM_NAMESPACE)
    except NotFound:
        return Host(await cluster_uid(host.transport))
    hosts = str((namespace["metadata"].get("annotations") or {}).get(names.HOST_CLUSTER_UIDS, ""))
    return Host(await cluster_uid(host.transport), tuple(filter(None, hosts.split(","))))


async def identify(member: Client, host: Host) -> str:
    """Return the member's uid, "" if we may not read it; UnjoinableError for the host itself and a host of the host."""
    uid = await cluster_uid(member.transport)
    if uid and uid == host.uid:
        raise UnjoinableError("the cluster is the host of this federation; a federation cannot join itself")
    if uid and uid in host.hosts:
        raise UnjoinableError(
            "the host of this federation is a member of that cluster's federation; federations cannot form a cycle"
        )
    return uid


async def claim(member: Client, uid: str, host: Host) -> Object:
    """Make the member's system namespace ours and return it.

    UnjoinableError when it is another's; NotYetError while it goes away, as it does after an earlier membership.
    """
    ours = {names.FEDERATED_CLUSTER_UID: uid, names.HOST_CLUSTER_UIDS: ",".join((host.uid, *host.hosts))}
    wanted = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": names.SYSTEM_NAMESPACE, "annotations": ours},
    }
    try:
        namespace = await member.get(NAMESPACES, names.SYSTEM_NAMESPACE)
    except NotFound:
        try:
            return await member.create(NAMESPACES, wanted, field_manager=names.FIELD_MANAGER)
        except AlreadyExists:
            namespace = await member.get(NAMESPACES, names.SYSTEM_NAMESPACE)
    if namespace["metadata"].get("deletionTimestamp"):
        raise NotYetError(f"the member is still removing its namespace {names.SYSTEM_NAMESPACE}")
    owner = (namespace["metadata"].get("annotations") or {}).get(names.FEDERATED_CLUSTER_UID)
    if owner == uid:
        return namespace
    if owner is not None:
        raise UnjoinableError(
            f"the cluster belongs to another federation: its namespace {names.SYSTEM_NAMESPACE} carries"
            f" {names.FEDERATED_CLUSTER_UID}={owner}; unjoin it there, or delete that namespace if it no longer exists"
        )
    patch = {
        "metadata": {
            # Two federations that claim at the same moment: the second one's patch is a Conflict.
            "resourceVersion": namespace["metadata"]["resourceVersion"],
            "annotations": {**ours, names.ADOPTED: "true"},
        }
    }
    return await _merge(member, NAMESPACES, names.SYSTEM_NAMESPACE, patch)


async def unclaim(member: Client, uid: str) -> None:
    """Remove from the member what joining put there, when it is still ours."""
    try:
        namespace = await member.get(NAMESPACES, names.SYSTEM_NAMESPACE)
    except NotFound:
        return
    annotations = namespace["metadata"].get("annotations") or {}
    if annotations.get(names.FEDERATED_CLUSTER_UID) != uid:
        return
    if annotations.get(names.ADOPTED) != "true":
        await member.delete(NAMESPACES, names.SYSTEM_NAMESPACE, uid=namespace["metadata"]["uid"])
        return
    ours = (names.FEDERATED_CLUSTER_UID, names.HOST_CLUSTER_UIDS, names.ADOPTED)
    patch = {"metadata": {"annotations": dict.fromkeys(ours)}}
    await _merge(member, NAMESPACES, names.SYSTEM_NAMESPACE, patch)
    # The last request, as it takes the account along that we may be using: all its parts belong to the role.
    try:
        await member.delete(CLUSTER_ROLES, names.MEMBER_CLUSTER_ROLE, propagation_policy="Background")
    except NotFound:
        return


async def ensure_service_account(member: Client, namespace: Object) -> str:
    """Make our account with all rights in the member and return its token in base64, "" while there is none yet."""
    rules: list[dict[str, Any]] = [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["get"]},
    ]
    metadata = {"name": names.MEMBER_CLUSTER_ROLE, "ownerReferences": [_owner("v1", "Namespace", namespace)]}
    version = CLUSTER_ROLES.api_version
    wanted = {"apiVersion": version, "kind": "ClusterRole", "metadata": metadata, "rules": rules}
    role = await _create(member, CLUSTER_ROLES, wanted)
    # In this order: a token Secret whose account does not exist is removed by the member at once.
    for resource, obj in _account_objects(_owner(version, "ClusterRole", role)):
        await _create(member, resource, obj)
    secret = await member.get(SECRETS, names.MEMBER_SERVICE_ACCOUNT, names.SYSTEM_NAMESPACE)
    return str((secret.get("data") or {}).get("token") or "")


def _owner(api_version: str, kind: str, obj: Object) -> Object:
    metadata = obj["metadata"]
    return {"apiVersion": api_version, "kind": kind, "name": metadata["name"], "uid": metadata["uid"]}


def _account_objects(owner: Object) -> list[tuple[Resource, Object]]:
    """Return the account and what gives it its rights; all belong to the role, so that they leave together."""
    account: Object = {"name": names.MEMBER_SERVICE_ACCOUNT, "namespace": names.SYSTEM_NAMESPACE}
    local: Object = {**account, "ownerReferences": [owner]}
    rbac = CLUSTER_ROLES.group
    return [
        (
            SERVICE_ACCOUNTS,
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {**local, "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}},
                "automountServiceAccountToken": False,
            },
        ),
        (
            SECRETS,
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {**local, "annotations": {"kubernetes.io/service-account.name": account["name"]}},
                "type": wellknown.SERVICE_ACCOUNT_TOKEN_TYPE,
            },
        ),
        (
            CLUSTER_ROLE_BINDINGS,
            {
                "apiVersion": CLUSTER_ROLES.api_version,
                "kind": "ClusterRoleBinding",
                "metadata": {"name": names.MEMBER_CLUSTER_ROLE, "ownerReferences": [owner]},
                "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": names.MEMBER_CLUSTER_ROLE},
                "subjects": [{"kind": "ServiceAccount", **account}],
            },
        ),
    ]


async def _create(member: Client, resource: Resource, obj: Object) -> Object:
    """Create the object, or return the one that is there."""
    try:
        return await member.create(resource, obj, field_manager=names.FIELD_MANAGER)
    except AlreadyExists:
        metadata = obj["metadata"]
        return await member.get(resource, metadata["name"], metadata.get("namespace", ""))


async def _merge(member: Client, resource: Resource, name: str, patch: Object) -> Object:
    return await member.patch(resource, name, patch, patch_type=PatchType.MERGE, field_manager=names.FIELD_MANAGER)
