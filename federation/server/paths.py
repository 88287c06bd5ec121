"""Kubernetes URL paths: what resource, object and subresource a path names. Pure.

    /api/v1/namespaces/NS/pods/NAME/status          the core group
    /apis/apps/v1/namespaces/NS/deployments/NAME    every other group
    /apis/GROUP/VERSION/watch/…                     the deprecated watch prefix

`/api/v1/namespaces/NAME` is the object itself, and so are its subresources `status` and `finalize`.
"""

from functools import lru_cache
from typing import NamedTuple

_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})
_VERBS = {
    "GET": ("list", "get"),
    "HEAD": ("list", "get"),
    "POST": ("create", "create"),
    "PUT": ("update", "update"),
    "PATCH": ("patch", "patch"),
    "DELETE": ("deletecollection", "delete"),
}


class ResourcePath(NamedTuple):
    """A path below a group version. `name` "" is the collection; `namespace` "" is cluster scope or all namespaces."""

    group: str
    version: str
    namespace: str
    plural: str
    name: str
    subresource: str
    is_watch: bool = False

    def verb(self, method: str) -> str:
        """Return Kubernetes' verb for an HTTP method ("" for one that has none); watches are told by the query."""
        verbs = _VERBS.get(method)
        if verbs is None:
            return ""
        return verbs[1] if self.name else verbs[0]


@lru_cache(maxsize=4096)
def parse(path: str) -> ResourcePath | None:
    """Return what the path names; None when it is not a resource path (discovery, health, nonsense)."""
    parts = path.split("/")
    if parts[-1] == "":
        parts.pop()
    if len(parts) > 3 and parts[1] == "api":
        group, version, rest = "", parts[2], parts[3:]
    elif len(parts) > 4 and parts[1] == "apis":
        group, version, rest = parts[2], parts[3], parts[4:]
        if not group:
            return None
    else:
        return None
    is_watch = rest[0] == "watch" and len(rest) > 1
    if is_watch:
        rest = rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
        namespace, rest = rest[1], rest[2:]
        if not namespace:
            return None
    if len(rest) > 3 or not all(rest):
        return None
    rest += [""] * (3 - len(rest))
    return ResourcePath(group, version, namespace, rest[0], rest[1], rest[2], is_watch)
