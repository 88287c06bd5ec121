"""Objects that a user may not read because of their content, whatever kind they are of: they carry values of Secrets.

Without the right to read Secrets in the namespace, such an object is not in lists and watches, as if a selector left it
out; reads, updates and patches of it get a 403. A deletion of it answers with a Status. Reading the kind of the object
needs its own right as well, as always. Built-in kinds have schemas without a place for other objects, but for
ControllerRevisions, so their lists cost nothing more.
"""

from collections.abc import Callable
from dataclasses import dataclass

from federation.apimachinery.errors import Forbidden
from federation.apimachinery.paths import ResourcePath
from federation.apiserver.auth.authorization import Authorizer, is_allowed
from federation.apiserver.auth.identity import Attributes, User
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.verbs.context import status_details

_ANY_CONTENT = "controllerrevisions.apps"
_LISTS = frozenset({"list", "watch", "deletecollection"})


@dataclass(frozen=True, slots=True)
class ContentRule:
    """What content needs the right to read another resource as well."""

    carries: Callable[[bytes], bool]
    """Returns whether an object carries content of the other resource."""
    group: str
    resource: str


@dataclass(slots=True)
class Hiding:
    """What one request may not show. `hides` is called with objects as they are stored or served."""

    carries: Callable[[bytes], bool]
    reason: str
    has_hidden: bool = False
    """Whether an object was hidden."""

    def hides(self, value: bytes) -> bool:
        """Return whether the user may not see the object."""
        is_hidden = self.carries(value)
        self.has_hidden |= is_hidden
        return is_hidden

    def check(self, info: KindInfo, name: str, value: bytes) -> None:
        """Raise Forbidden if the user may not see the object."""
        if self.hides(value):
            text = f'{info.group_resource} "{name}" is forbidden: {self.reason}'
            raise Forbidden(text, details=status_details(info, name))

    @property
    def warning(self) -> str:
        """The warning of a list that left objects out."""
        return f"some objects are not listed: {self.reason}"


class HiddenContent:
    """Decides for each request what it may not show."""

    def __init__(self, authorizer: Authorizer, rule: ContentRule | None) -> None:
        self._authorizer = authorizer
        self._rule = rule

    async def of(self, user: User, path: ResourcePath, verb: str, info: KindInfo) -> Hiding | None:
        """Return what a request may not show, None if it may show everything."""
        rule = self._rule
        if rule is None or verb == "create" or not (info.is_custom or info.group_resource == _ANY_CONTENT):
            return None
        wanted = "list" if verb in _LISTS else "get"
        right = Attributes(wanted, rule.group, "*", rule.resource, namespace=path.namespace)
        if await is_allowed(self._authorizer, user, right):
            return None
        where = f'in the namespace "{path.namespace}"' if path.namespace else "at the cluster scope"
        reason = f"it carries values of {rule.resource}, which the user cannot {wanted} {where}"
        return Hiding(rule.carries, reason)
