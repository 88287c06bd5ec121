"""Who asks, and what for: the vocabulary that authentication, authorization and reviews share. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"
SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"
SERVICE_ACCOUNTS_GROUP = "system:serviceaccounts"
CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
"""Key in a user's extra: which of their credentials was shown."""


@dataclass(frozen=True, slots=True)
class User:
    """An identity: name, groups, and what the authenticator knows besides."""

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
    """What is asked: a verb on a resource, or on a `path` that is not a resource (then `resource` is "")."""

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
    """The authorizer's answer; `reason` explains it to people."""

    is_allowed: bool
    reason: str = ""


def service_account_user(
    namespace: str, name: str, uid: str, extra: Mapping[str, tuple[str, ...]] | None = None
) -> User:
    """Return the identity of a ServiceAccount."""
    return User(
        f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}",
        (SERVICE_ACCOUNTS_GROUP, f"{SERVICE_ACCOUNTS_GROUP}:{namespace}", AUTHENTICATED),
        uid,
        extra or {},
    )
