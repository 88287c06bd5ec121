"""From a request to the authorizer's question, and from its answer to a 403 in Kubernetes' words.

Also impersonation (`kubectl --as`): who may act as another is asked like any other permission.
"""

import asyncio
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from federation.base.errors import BadRequest, Forbidden, ServiceUnavailable
from federation.registry.cel.authorizer import Question, Verdict
from federation.server.asgi import Request
from federation.server.identity import (
    AUTHENTICATED,
    MASTERS,
    SERVICE_ACCOUNT_PREFIX,
    SERVICE_ACCOUNTS_GROUP,
    UNAUTHENTICATED,
    Attributes,
    Decision,
    User,
    service_account_user,
)
from federation.server.paths import ResourcePath
from federation.server.reviews import Authorizer

_SYNC_S_MAX = 10.0
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")
_UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_MASTER = Decision(is_allowed=True)
_EXTRA_PREFIX = b"impersonate-extra-"


def to_attributes(path: ResourcePath, verb: str) -> Attributes:
    """Return what is asked of the authorizer; a Namespace object counts as being in its own namespace."""
    namespace = path.name if path.plural == "namespaces" and not path.group else path.namespace
    return Attributes(verb, path.group, path.version, path.plural, path.subresource, namespace, path.name)


async def check(
    authorizer: Authorizer, user: User, attributes: Attributes, annotations: dict[str, str] | None = None
) -> None:
    """Raise Forbidden unless the user may do this; ServiceUnavailable when roles cannot be loaded.

    Decision and reason are added to `annotations`, for the audit event.
    """
    decision = await _ask(authorizer, user, attributes)
    if annotations is not None:
        _note(annotations, "allow" if decision.is_allowed else "forbid", decision.reason)
    if not decision.is_allowed:
        raise forbidden(user, attributes, decision.reason)


async def is_allowed(authorizer: Authorizer, user: User, attributes: Attributes) -> bool:
    """Say whether the user may do this; ServiceUnavailable when roles cannot be loaded."""
    return (await _ask(authorizer, user, attributes)).is_allowed


async def _ask(authorizer: Authorizer, user: User, attributes: Attributes) -> Decision:
    if MASTERS in user.groups:
        return _MASTER
    if not authorizer.has_synced:
        try:
            async with asyncio.timeout(_SYNC_S_MAX):
                await authorizer.wait_synced()
        except TimeoutError as error:
            raise ServiceUnavailable("roles are not loaded yet") from error
    return authorizer.authorize(user, attributes)


def _note(annotations: dict[str, str], decision: str, reason: str) -> None:
    annotations["authorization.k8s.io/decision"] = decision
    annotations["authorization.k8s.io/reason"] = reason


def decide(authorizer: Authorizer, info: Mapping[str, Any], question: Question) -> Verdict:
    """Answer what an expression of admission asks about the requester's permissions, or a service account's."""
    if any(question.account):
        user = service_account_user(*question.account, "")
    else:
        extra = {key: tuple(values) for key, values in (info.get("extra") or {}).items()}
        user = User(str(info.get("username", "")), tuple(info.get("groups") or ()), str(info.get("uid", "")), extra)
    if question.path:
        attributes = Attributes(question.verb, path=question.path)
    else:
        attributes = Attributes(
            question.verb,
            question.group,
            "*",
            question.resource,
            question.subresource,
            question.namespace,
            question.name,
        )
    decision = authorizer.authorize(user, attributes)
    return Verdict(decision.is_allowed, decision.reason)


def forbidden(user: User, attributes: Attributes, reason: str = "") -> Forbidden:
    """Return Kubernetes' 403 for a request."""
    if attributes.path:
        text = f'User "{user.name}" cannot {attributes.verb} path "{attributes.path}"'
        return Forbidden(f"forbidden: {text}{': ' + reason if reason else ''}")
    resource = f"{attributes.resource}/{attributes.subresource}" if attributes.subresource else attributes.resource
    where = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
    text = (
        f'User "{user.name}" cannot {attributes.verb} resource "{resource}" in API group "{attributes.group}" {where}'
    )
    qualified = f"{attributes.resource}.{attributes.group}" if attributes.group else attributes.resource
    named = f'{qualified} "{attributes.name}"' if attributes.name else qualified
    details = {"name": attributes.name, "group": attributes.group, "kind": attributes.resource}
    return Forbidden(
        f"{named} is forbidden: {text}{': ' + reason if reason else ''}",
        details={key: value for key, value in details.items() if value},
    )


async def impersonate(authorizer: Authorizer, request: Request) -> User:
    """Return the user that the Impersonate-* headers ask for; Forbidden unless the caller may act as it."""
    name, uid = request.header(b"impersonate-user"), request.header(b"impersonate-uid")
    groups: list[str] = []
    extra: dict[str, list[str]] = {}
    for key, value in request.scope["headers"]:
        if key == b"impersonate-group":
            groups.append(value.decode("latin-1"))
        elif key.startswith(_EXTRA_PREFIX):
            extra.setdefault(unquote(key[len(_EXTRA_PREFIX) :].decode("latin-1")), []).append(value.decode("latin-1"))
    if not name:
        raise BadRequest("requested to impersonate groups, uid or extra without impersonating a user")
    asked = [_impersonation_of(name)]
    asked += [Attributes("impersonate", resource="groups", name=group) for group in groups]
    if uid:
        asked.append(Attributes("impersonate", "authentication.k8s.io", "v1", "uids", name=uid))
    asked += [
        Attributes("impersonate", "authentication.k8s.io", "v1", "userextras", key, name=value)
        for key, values in extra.items()
        for value in values
    ]
    for attributes in asked:
        await check(authorizer, request.user, attributes)
    if name.startswith(SERVICE_ACCOUNT_PREFIX) and not groups:
        groups = [SERVICE_ACCOUNTS_GROUP, f"{SERVICE_ACCOUNTS_GROUP}:{name.split(':')[2]}"]
    if UNAUTHENTICATED not in groups:
        groups.append(UNAUTHENTICATED if name == "system:anonymous" else AUTHENTICATED)
    return User(name, tuple(dict.fromkeys(groups)), uid, {key: tuple(values) for key, values in extra.items()})


def duration_s(text: str) -> float:
    """Return a Go duration ("1m30s", "500ms") in seconds, plain numbers as seconds; BadRequest for anything else."""
    if text.isascii() and text.isdigit():
        return float(text[:9])
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise BadRequest(f'invalid timeout specified in the request URL: time: invalid duration "{text[:64]}"')
    return sum(float(number) * _UNITS_S[unit] for number, unit in parts)


def _impersonation_of(name: str) -> Attributes:
    if name.startswith(SERVICE_ACCOUNT_PREFIX) and name.count(":") == 3:
        _, _, namespace, account = name.split(":")
        return Attributes("impersonate", resource="serviceaccounts", namespace=namespace, name=account)
    return Attributes("impersonate", resource="users", name=name)
