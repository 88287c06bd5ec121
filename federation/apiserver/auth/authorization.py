"""Authorization of requests: attributes from a path, the `Authorizer` protocol, and Kubernetes' 403.

`rbac.py` implements the protocol. `impersonation.py` and `escalation.py` are further checks on top of it.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from federation.apimachinery.errors import Forbidden, ServiceUnavailable
from federation.apimachinery.paths import ResourcePath
from federation.apiserver.auth.identity import MASTERS, Attributes, Decision, User, service_account_user
from federation.apiserver.auth.policyrules import PolicyRule
from federation.apiserver.semantics.cel.authorizer import AccessCheck, AccessDecision

_SYNC_S_MAX = 10.0
_ALLOWED = Decision(is_allowed=True)


class Authorizer(Protocol):
    """Decides about permissions from a cache, without I/O."""

    @property
    def has_synced(self) -> bool:
        """Whether the cache was filled once."""
        ...

    async def wait_synced(self) -> None:
        """Return when the cache was filled once."""
        ...

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        """Return whether the user may do this, and why."""
        ...

    def names_of(self, user: User, attributes: Attributes) -> frozenset[str]:
        """Return the names of the only objects for which the user may do this."""
        ...

    def rules_of(self, user: User, namespace: str) -> list[PolicyRule]:
        """Return every rule that holds for the user in a namespace, cluster-wide rules included."""
        ...

    def namespaces_of(self, user: User) -> frozenset[str]:
        """Return the namespaces in which the user has a role of his own."""
        ...

    def role_rules(self, namespace: str, name: str) -> list[PolicyRule] | None:
        """Return the rules of a Role, or of a ClusterRole for namespace ""; None when it is not known."""
        ...


def to_attributes(path: ResourcePath, verb: str) -> Attributes:
    """Return the attributes of a resource request; a Namespace object counts as being in its own namespace."""
    namespace = path.name if path.plural == "namespaces" and not path.group else path.namespace
    return Attributes(verb, path.group, path.version, path.plural, path.subresource, namespace, path.name)


async def authorize(
    authorizer: Authorizer, user: User, attributes: Attributes, annotations: dict[str, str] | None = None
) -> None:
    """Raise Forbidden unless the user may do this; ServiceUnavailable when roles cannot be loaded.

    Decision and reason are added to `annotations`, for the audit event.
    """
    decision = await _decide_synced(authorizer, user, attributes)
    if annotations is not None:
        annotations["authorization.k8s.io/decision"] = "allow" if decision.is_allowed else "forbid"
        annotations["authorization.k8s.io/reason"] = decision.reason
    if not decision.is_allowed:
        raise forbidden(user, attributes, decision.reason)


async def is_allowed(authorizer: Authorizer, user: User, attributes: Attributes) -> bool:
    """Return whether the user may do this; ServiceUnavailable when roles cannot be loaded."""
    return (await _decide_synced(authorizer, user, attributes)).is_allowed


async def _decide_synced(authorizer: Authorizer, user: User, attributes: Attributes) -> Decision:
    """Return the decision once roles are loaded. Members of `system:masters` do not wait for roles."""
    if MASTERS in user.groups:
        return _ALLOWED
    if not authorizer.has_synced:
        try:
            async with asyncio.timeout(_SYNC_S_MAX):
                await authorizer.wait_synced()
        except TimeoutError as error:
            raise ServiceUnavailable("roles are not loaded yet") from error
    return authorizer.authorize(user, attributes)


def to_user(info: Mapping[str, Any]) -> User:
    """Return the user of a UserInfo."""
    extra = {key: tuple(values) for key, values in (info.get("extra") or {}).items()}
    return User(str(info.get("username", "")), tuple(info.get("groups") or ()), str(info.get("uid", "")), extra)


def decide(authorizer: Authorizer, info: Mapping[str, Any], check: AccessCheck) -> AccessDecision:
    """Answer CEL's `authorizer` variable about the requester (`info`, a UserInfo) or about a service account."""
    user = service_account_user(*check.service_account, "") if any(check.service_account) else to_user(info)
    if check.path:
        attributes = Attributes(check.verb, path=check.path)
    else:
        attributes = Attributes(
            check.verb,
            check.group,
            "*",
            check.resource,
            check.subresource,
            check.namespace,
            check.name,
        )
    decision = authorizer.authorize(user, attributes)
    is_unknown = not decision.is_allowed and not authorizer.has_synced
    return AccessDecision(decision.is_allowed, decision.reason, "the roles are not known yet" if is_unknown else "")


def forbidden(user: User, attributes: Attributes, reason: str = "") -> Forbidden:
    """Return Kubernetes' 403 for a request."""
    if attributes.path:
        text = f'User "{user.name}" cannot {attributes.verb} path "{attributes.path}"'
        return Forbidden(f"forbidden: {text}{': ' + reason if reason else ''}")
    resource = f"{attributes.resource}/{attributes.subresource}" if attributes.subresource else attributes.resource
    scope = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
    text = (
        f'User "{user.name}" cannot {attributes.verb} resource "{resource}" in API group "{attributes.group}" {scope}'
    )
    qualified = f"{attributes.resource}.{attributes.group}" if attributes.group else attributes.resource
    named = f'{qualified} "{attributes.name}"' if attributes.name else qualified
    details = {"name": attributes.name, "group": attributes.group, "kind": attributes.resource}
    return Forbidden(
        f"{named} is forbidden: {text}{': ' + reason if reason else ''}",
        details={key: value for key, value in details.items() if value},
    )
