"""The claim on a member: which FederatedCluster a member belongs to.

The claim is the annotation federated-cluster-uid on the member's system namespace: one member belongs to one
FederatedCluster. A namespace that existed before, without the annotation, is adopted: it loses the annotation when
the cluster leaves. A namespace that the join created is deleted then. Every step may be repeated. `memberaccount.py`
creates the account.

Reference: docs/reference/clusters.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.errors import AlreadyExists, FederationError, NotFound
from federation.apimachinery.resources import CLUSTER_ROLES, NAMESPACES, Object, Resource
from federation.client.client import Client, PatchType
from federation.client.identity import cluster_uid
from federation.controllers.cluster.memberaccount import NotYetError


class UnjoinableError(FederationError):
    """The member belongs to another FederatedCluster, which the message names. This is final."""


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


async def claim(member: Client, uid: str, host: Host, host_client: Client | None) -> Object:
    """Claim the member's system namespace for the FederatedCluster with this uid, and return it.

    The claim of a FederatedCluster that this host had and removed by force is taken over; without a client the caller
    knows that the host has none with that claim. UnjoinableError if it has
    another claim; NotYetError while it is being deleted after an earlier membership.
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
    annotations = namespace["metadata"].get("annotations") or {}
    owner = annotations.get(names.FEDERATED_CLUSTER_UID)
    if owner == uid:
        return namespace
    is_used = host_client is not None and await _is_in_use(host_client, str(owner))
    is_former = is_claim_of(annotations, host.uid) and not is_used
    if owner is not None and not is_former:
        raise UnjoinableError(
            f"the cluster belongs to another federation: its namespace {names.SYSTEM_NAMESPACE} carries"
            f" {names.FEDERATED_CLUSTER_UID}={owner}; unjoin it there, or delete that namespace if it no longer exists"
        )
    patch = {
        "metadata": {
            # If two federations claim at the same moment, the second patch is a Conflict.
            "resourceVersion": namespace["metadata"]["resourceVersion"],
            # A claim that is taken over keeps its mark: who created the namespace does not change.
            "annotations": ours if is_former else {**ours, names.ADOPTED: "true"},
        }
    }
    return await _merge(member, NAMESPACES, names.SYSTEM_NAMESPACE, patch)


async def _is_in_use(host: Client, uid: str) -> bool:
    """Return whether the host has a FederatedCluster with this uid; the server decides, not a cache."""
    return any(cluster["metadata"]["uid"] == uid for cluster in (await host.list(FEDERATED_CLUSTERS)).items)


def is_claim_of(annotations: Mapping[str, str], host_uid: str) -> bool:
    """Return whether the annotations of a member's system namespace have a claim of the host with this uid."""
    hosts = str(annotations.get(names.HOST_CLUSTER_UIDS, ""))
    return bool(host_uid) and names.FEDERATED_CLUSTER_UID in annotations and hosts.split(",", maxsplit=1)[0] == host_uid


async def find_claim(member: Client, uid: str) -> Object | None:
    """Return the member's system namespace if it carries the claim of this FederatedCluster."""
    try:
        namespace = await member.get(NAMESPACES, names.SYSTEM_NAMESPACE)
    except NotFound:
        return None
    owner = (namespace["metadata"].get("annotations") or {}).get(names.FEDERATED_CLUSTER_UID)
    return namespace if owner == uid else None


async def release(member: Client, namespace: Object) -> None:
    """Remove from the member what joining created; `namespace` carries our claim.

    The last request removes our account, so nothing can be requested with its token afterwards.
    """
    if (namespace["metadata"].get("annotations") or {}).get(names.ADOPTED) != "true":
        await member.delete(NAMESPACES, names.SYSTEM_NAMESPACE, uid=namespace["metadata"]["uid"])
        return
    ours = (names.FEDERATED_CLUSTER_UID, names.HOST_CLUSTER_UIDS, names.ADOPTED)
    patch = {"metadata": {"annotations": dict.fromkeys(ours)}}
    await _merge(member, NAMESPACES, names.SYSTEM_NAMESPACE, patch)
    try:
        await member.delete(CLUSTER_ROLES, names.MEMBER_CLUSTER_ROLE, propagation_policy="Background")
    except NotFound:
        return


async def unclaim(member: Client, uid: str) -> None:
    """Remove from the member what joining created, if the claim is that of this FederatedCluster."""
    namespace = await find_claim(member, uid)
    if namespace is not None:
        await release(member, namespace)


async def _merge(member: Client, resource: Resource, name: str, patch: Object) -> Object:
    return await member.patch(resource, name, patch, patch_type=PatchType.MERGE, field_manager=names.FIELD_MANAGER)
