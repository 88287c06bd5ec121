"""Map users of the host to users of a member. Pure.

A member's own names mean nothing on the host, and the reverse: `system:serviceaccount:shop:web` of a member is another
account than the host's, and `system:masters` administers one cluster only. So names that begin with `system:` get a
prefix. Such a name has no rights in the member until an administrator there binds a role to it.
"""

from typing import Final

from federation.apimachinery.errors import Forbidden
from federation.apimachinery.wellknown import AUTHENTICATED
from federation.apiserver.auth.identity import UNAUTHENTICATED, User

PREFIX: Final = "federation:"
"""Begins the names of users and groups in a member that would otherwise be names of the member's own system."""
_RESERVED: Final = ("system:", PREFIX)
_RESERVED_DOMAINS: Final = ("kubernetes.io", "k8s.io")
"""Extra of these domains describes credentials, pods and nodes of the host."""


def to_member_user(user: User) -> User:
    """Return the user in whose name a member gets the request; Forbidden for a request without a user.

    Different users of the host are different users of the member. The uid stays here: it is the host's.
    """
    if UNAUTHENTICATED in user.groups:
        raise Forbidden("requests to members need a user: log in to the host first")
    # A member adds its own group of authenticated users.
    groups = tuple(_to_member_name(group) for group in user.groups if group != AUTHENTICATED)
    extra = {key: values for key, values in user.extra.items() if not _is_reserved_key(key)}
    return User(_to_member_name(user.name), groups, "", extra)


def _to_member_name(name: str) -> str:
    # The prefix itself is reserved, too: else a user could have the name that another one gets in members.
    return PREFIX + name if name.startswith(_RESERVED) else name


def _is_reserved_key(key: str) -> bool:
    domain, _, name = key.partition("/")
    return bool(name) and any(domain == each or domain.endswith(f".{each}") for each in _RESERVED_DOMAINS)
