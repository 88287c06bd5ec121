"""Impersonation (`kubectl --as`): the user that a request's Impersonate-* headers name, if the caller may act as it."""

from collections.abc import Iterable
from urllib.parse import unquote

from federation.apimachinery.errors import BadRequest
from federation.apimachinery.wellknown import AUTHENTICATED
from federation.apiserver.auth.authorization import Authorizer, authorize
from federation.apiserver.auth.identity import (
    SERVICE_ACCOUNT_PREFIX,
    SERVICE_ACCOUNTS_GROUP,
    UNAUTHENTICATED,
    Attributes,
    User,
)

_EXTRA_PREFIX = b"impersonate-extra-"


async def impersonate(authorizer: Authorizer, user: User, headers: Iterable[tuple[bytes, bytes]]) -> User:
    """Return the impersonated user; Forbidden unless `user` may impersonate its name, groups, uid and extra."""
    name = uid = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}
    for key, value in headers:
        if key == b"impersonate-user":
            name = value.decode("latin-1")
        elif key == b"impersonate-uid":
            uid = value.decode("latin-1")
        elif key == b"impersonate-group":
            groups.append(value.decode("latin-1"))
        elif key.startswith(_EXTRA_PREFIX):
            extra.setdefault(unquote(key[len(_EXTRA_PREFIX) :].decode("latin-1")), []).append(value.decode("latin-1"))
    if not name:
        raise BadRequest("requested to impersonate groups, uid or extra without impersonating a user")
    required = [_name_attributes(name)]
    required += [Attributes("impersonate", resource="groups", name=group) for group in groups]
    if uid:
        required.append(Attributes("impersonate", "authentication.k8s.io", "v1", "uids", name=uid))
    required += [
        Attributes("impersonate", "authentication.k8s.io", "v1", "userextras", key, name=value)
        for key, values in extra.items()
        for value in values
    ]
    for attributes in required:
        await authorize(authorizer, user, attributes)
    if name.startswith(SERVICE_ACCOUNT_PREFIX) and not groups:
        groups = [SERVICE_ACCOUNTS_GROUP, f"{SERVICE_ACCOUNTS_GROUP}:{name.split(':')[2]}"]
    if UNAUTHENTICATED not in groups:
        groups.append(UNAUTHENTICATED if name == "system:anonymous" else AUTHENTICATED)
    return User(name, tuple(dict.fromkeys(groups)), uid, {key: tuple(values) for key, values in extra.items()})


def _name_attributes(name: str) -> Attributes:
    if name.startswith(SERVICE_ACCOUNT_PREFIX) and name.count(":") == 3:
        _, _, namespace, account = name.split(":")
        return Attributes("impersonate", resource="serviceaccounts", namespace=namespace, name=account)
    return Attributes("impersonate", resource="users", name=name)
