"""Kubernetes URL paths: resource, object and subresource of a path. Pure.

    /api/v1/namespaces/NS/pods/NAME/status          the core group
    /apis/apps/v1/namespaces/NS/deployments/NAME    every other group
    /apis/GROUP/VERSION/watch/…                     the deprecated watch prefix

`/api/v1/namespaces/NAME` is the Namespace object; `status` and `finalize` are its subresources.
"""

from typing import NamedTuple

from federation.apimachinery.textcache import cache_short

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
        """Return Kubernetes' verb for an HTTP method, "" for an unknown one; a watch is a list here."""
        verbs = _VERBS.get(method)
        if verbs is None:
            return ""
        return verbs[1] if self.name else verbs[0]


@cache_short(4096)
def parse(path: str) -> ResourcePath | None:
    """Return the parts of a resource path; None for any other path."""
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


def parse_forwarded(path: str) -> ResourcePath | None:
    """Return the parts of a path of another server, which may go on after the subresource; None as for `parse`."""
    parts = path.split("/")
    scope_parts = 2 if len(parts) > 7 and parts[4] == "namespaces" else 0
    return parse("/".join(parts[: 4 + scope_parts + 3]))
