"""The right of a user to what a namespace has in members: the same request in that namespace of the host. Pure.

Who may list the pods of a namespace of the host may list them in a member that runs something of it. So the roles of a
namespace (`view`, `edit`) are enough to see one's own objects, and give no more in a member than on the host. The
member authorizes the user besides. Writes need the right on the cluster: they would bypass the federation's policies.
"""

from federation.apimachinery.paths import ResourcePath
from federation.apiserver.auth.authorization import to_attributes
from federation.apiserver.auth.identity import Attributes

_READ_VERBS = frozenset({"get", "list", "watch"})
_READ_SUBRESOURCES = frozenset({"", "log", "scale", "status"})
"""Others, such as `proxy` of pods and services, reach more than an object of the API."""
_COMMANDS = frozenset({"attach", "exec", "portforward"})
_COMMAND_VERBS = frozenset({"get", "create"})


def namespace_right(inner: ResourcePath | None, verb: str) -> Attributes | None:
    """Return the right on the host that allows a request with this path and verb in a member; None if none does."""
    if inner is None or not inner.namespace or inner.is_watch:
        return None
    is_read = verb in _READ_VERBS and inner.subresource in _READ_SUBRESOURCES
    is_pod = (inner.group, inner.plural) == ("", "pods")
    is_command = is_pod and inner.subresource in _COMMANDS and verb in _COMMAND_VERBS
    return to_attributes(inner, verb) if is_read or is_command else None
