"""The control plane's service account in a member: its objects, its rights and its tokens.

A ClusterRole with the rights of `planning/clusters/memberrights.py` is bound to the account; a Role in our namespace
lets the account request tokens for itself. All objects belong to the ClusterRole, and that to our namespace, so that
they are removed together. A rotation creates a second account beside the first and removes the first when the second
is in use: that revokes every token of the first. These requests need the rights of an administrator of the member,
except `request_token`, which the account itself may send.
"""

import base64
from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery import wellknown
from federation.apimachinery.errors import AlreadyExists, FederationError, MethodNotAllowed, NotFound
from federation.apimachinery.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    Object,
    Resource,
)
from federation.client.client import Client, PatchType, Request
from federation.planning.clusters.memberrights import plan_account_rules, plan_rules

TOKEN_LIFETIME_S = 30 * 24 * 3600
"""Requested lifetime of a token; a member may shorten it. The control plane renews it after a third of that time."""
_SET_BY_US = ("rules", "subjects")


class NotYetError(FederationError):
    """The member is not ready for this step of the join yet; a retry helps."""

    retryable = True


async def ensure_account(
    member: Client,
    namespace: Object,
    types: Iterable[FederatedType],
    *,
    account: str = names.MEMBER_SERVICE_ACCOUNT,
    beside: Sequence[str] = (),
) -> None:
    """Create the account with the rights for the federated types, or correct its rights; `namespace` is ours.

    The accounts `beside` keep the same rights. The ClusterRole is written first: without the right to do that, nothing
    is left behind.
    """
    role = {
        "apiVersion": CLUSTER_ROLES.api_version,
        "kind": "ClusterRole",
        "metadata": {"name": names.MEMBER_CLUSTER_ROLE, "ownerReferences": [_owner("v1", "Namespace", namespace)]},
        "rules": plan_rules(types),
    }
    stored = await _put(member, CLUSTER_ROLES, role)
    owner = _owner(CLUSTER_ROLES.api_version, "ClusterRole", stored)
    await _put(
        member,
        SERVICE_ACCOUNTS,
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {**_local(account), "ownerReferences": [owner]},
            "automountServiceAccountToken": False,
        },
    )
    await _bind(member, owner, (*beside, account))


async def find_accounts(member: Client) -> list[str]:
    """Return the names of the accounts that have our rights."""
    try:
        binding = await member.get(CLUSTER_ROLE_BINDINGS, names.MEMBER_CLUSTER_ROLE)
    except NotFound:
        return []
    return [
        str(subject.get("name"))
        for subject in binding.get("subjects") or ()
        if subject.get("kind") == "ServiceAccount" and subject.get("namespace") == names.SYSTEM_NAMESPACE
    ]


async def keep_accounts(member: Client, kept: Sequence[str]) -> None:
    """Remove every account but these: all tokens of the others become invalid. Without any, remove our role too."""
    others = [name for name in await find_accounts(member) if name not in kept]
    if kept:
        role = await member.get(CLUSTER_ROLES, names.MEMBER_CLUSTER_ROLE)
        await _bind(member, _owner(CLUSTER_ROLES.api_version, "ClusterRole", role), kept)
    else:
        await _delete(member, CLUSTER_ROLES, names.MEMBER_CLUSTER_ROLE)
    for name in others:
        await _delete(member, SERVICE_ACCOUNTS, name, names.SYSTEM_NAMESPACE)
        # A Secret of this name holds the token of an older version.
        await _delete(member, SECRETS, name, names.SYSTEM_NAMESPACE)


async def request_token(member: Client, account: str, lifetime_s: int = TOKEN_LIFETIME_S) -> str:
    """Return a new token of the account; NotFound and MethodNotAllowed if the member serves no TokenRequest."""
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "metadata": {"name": account},
        "spec": {"expirationSeconds": lifetime_s},
    }
    answer = await member.transport.request(
        Request("create", SERVICE_ACCOUNTS, names.SYSTEM_NAMESPACE, account, "token", orjson.dumps(body))
    )
    token = (answer.get("status") or {}).get("token")
    if not isinstance(token, str) or not token:
        raise NotYetError("the member answered the TokenRequest without a token")
    return token


async def obtain_token(member: Client, account: str, lifetime_s: int = TOKEN_LIFETIME_S) -> str:
    """Return a token of the account, from a Secret without expiry if the member serves no TokenRequest; NotYetError."""
    try:
        return await request_token(member, account, lifetime_s)
    except (NotFound, MethodNotAllowed):
        return await _token_of_secret(member, account)


async def _token_of_secret(member: Client, account: str) -> str:
    role = await member.get(CLUSTER_ROLES, names.MEMBER_CLUSTER_ROLE)
    metadata: Object = {
        **_local(account),
        "annotations": {"kubernetes.io/service-account.name": account},
        "ownerReferences": [_owner(CLUSTER_ROLES.api_version, "ClusterRole", role)],
    }
    await _put(
        member,
        SECRETS,
        {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": wellknown.SERVICE_ACCOUNT_TOKEN_TYPE},
    )
    secret = await member.get(SECRETS, account, names.SYSTEM_NAMESPACE)
    token = base64.b64decode(str((secret.get("data") or {}).get("token") or ""))
    if not token:
        raise NotYetError("the member has not issued the service account's token yet")
    return token.decode("ascii", errors="replace")


async def _bind(member: Client, owner: Object, accounts: Sequence[str]) -> None:
    """Give the accounts, and nobody else, our ClusterRole and the right to their own tokens."""
    subjects = [{"kind": "ServiceAccount", **_local(account)} for account in accounts]
    api_version = CLUSTER_ROLES.api_version
    local = {**_local(names.MEMBER_SERVICE_ACCOUNT), "ownerReferences": [owner]}
    await _put(
        member,
        CLUSTER_ROLE_BINDINGS,
        {
            "apiVersion": api_version,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": names.MEMBER_CLUSTER_ROLE, "ownerReferences": [owner]},
            "roleRef": _role_reference("ClusterRole", names.MEMBER_CLUSTER_ROLE),
            "subjects": subjects,
        },
    )
    rules = plan_account_rules(accounts)
    await _put(member, ROLES, {"apiVersion": api_version, "kind": "Role", "metadata": local, "rules": rules})
    await _put(
        member,
        ROLE_BINDINGS,
        {
            "apiVersion": api_version,
            "kind": "RoleBinding",
            "metadata": local,
            "roleRef": _role_reference("Role", names.MEMBER_SERVICE_ACCOUNT),
            "subjects": subjects,
        },
    )


def _role_reference(kind: str, name: str) -> Object:
    return {"apiGroup": CLUSTER_ROLES.group, "kind": kind, "name": name}


def _local(name: str) -> Object:
    return {"name": name, "namespace": names.SYSTEM_NAMESPACE}


def _owner(api_version: str, kind: str, obj: Object) -> Object:
    metadata = obj["metadata"]
    return {"apiVersion": api_version, "kind": kind, "name": metadata["name"], "uid": metadata["uid"]}


async def _delete(member: Client, resource: Resource, name: str, namespace: str = "") -> None:
    try:
        await member.delete(resource, name, namespace, propagation_policy="Background")
    except NotFound:
        return


async def _put(member: Client, resource: Resource, obj: Object) -> Object:
    """Create the object, or set owners, rules and subjects of the existing one."""
    metadata = obj["metadata"]
    try:
        return await member.create(resource, obj, field_manager=names.FIELD_MANAGER)
    except AlreadyExists:
        patch: dict[str, Any] = {key: obj[key] for key in _SET_BY_US if key in obj}
        patch["metadata"] = {"ownerReferences": metadata["ownerReferences"]}
        return await member.patch(
            resource,
            metadata["name"],
            patch,
            patch_type=PatchType.MERGE,
            namespace=metadata.get("namespace", ""),
            field_manager=names.FIELD_MANAGER,
        )
