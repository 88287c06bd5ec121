"""Users, request attributes and decisions: the types that authentication and authorization share. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from federation.apimachinery.wellknown import AUTHENTICATED

UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"
SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"
SERVICE_ACCOUNTS_GROUP = "system:serviceaccounts"
CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
"""Key in a user's extra: identifies the credential of the request."""


@dataclass(frozen=True, slots=True)
class User:
    """An identity, as Kubernetes' user info."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def to_info(self) -> dict[str, Any]:
        """Return Kubernetes' UserInfo."""
        info: dict[str, Any] = {"username": self.name}
        if self.uid:
            info["uid"] = self.uid
        info["groups"] = list(self.groups)
        if self.extra:
            info["extra"] = {key: list(values) for key, values in self.extra.items()}
        return info


ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))


class Attributes(NamedTuple):
    """The authorizer's input: a verb on a resource, or on a non-resource `path` (then `resource` is "")."""

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """The authorizer's answer; `reason` is for messages and audit events."""

    is_allowed: bool
    reason: str = ""


def service_account_user(
    namespace: str, name: str, uid: str, extra: Mapping[str, tuple[str, ...]] | None = None
) -> User:
    """Return the user of a ServiceAccount."""
    return User(
        f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}",
        (SERVICE_ACCOUNTS_GROUP, f"{SERVICE_ACCOUNTS_GROUP}:{namespace}", AUTHENTICATED),
        uid,
        extra or {},
    )
