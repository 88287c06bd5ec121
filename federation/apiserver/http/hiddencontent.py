"""Objects that a user may not read because of their content, whatever the rights on their kind.

Objects of any kind that carry values of Secrets need the right to read Secrets in the namespace. Events about an object
without a namespace, such as a cluster, lie in the namespace `default`; they need the right to get that object.

Without the right, the object is not in lists and watches, as if a selector left it out; reads, updates and patches of
it get a 403. A deletion of it answers with a Status. Reading the kind of the object needs its own right as well, as
always. Built-in kinds have schemas without a place for other objects, but for ControllerRevisions, so their lists cost
nothing more.

Decisions: docs/decisions/0250-what-carries-a-secret-is-a-secret.md,
docs/decisions/0256-an-event-is-read-with-its-object.md
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import orjson

from federation.apimachinery.errors import Forbidden
from federation.apimachinery.paths import ResourcePath
from federation.apimachinery.resources import Object
from federation.apiserver.auth.authorization import Authorizer, is_allowed, to_attributes
from federation.apiserver.auth.identity import Attributes, User
from federation.apiserver.semantics.kinds.kinds import KindInfo, Kinds
from federation.apiserver.verbs.context import status_details

_ANY_CONTENT = "controllerrevisions.apps"
_EVENTS = frozenset({"events", "events.events.k8s.io"})
_OF_CLUSTER_OBJECTS = frozenset({"", "default", "kube-system"})
"""Namespaces whose Events may be about an object without a namespace; validation refuses them elsewhere."""
_ABOUT = ("involvedObject", "regarding")
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
        return f"some objects are not listed: one is left out if {self.reason}"


class HiddenContent:
    """Decides for each request what it may not show."""

    def __init__(self, authorizer: Authorizer, kinds: Kinds, rule: ContentRule | None) -> None:
        self._authorizer = authorizer
        self._kinds = kinds
        self._rule = rule

    async def of(self, user: User, path: ResourcePath, verb: str, info: KindInfo) -> Hiding | None:
        """Return what a request may not show, None if it may show everything."""
        if self._rule is None or verb == "create":
            return None
        if info.group_resource in _EVENTS:
            return await self._about_others(user, path)
        if info.is_custom or info.group_resource == _ANY_CONTENT:
            return await self._carrying(self._rule, user, path, verb)
        return None

    async def _carrying(self, rule: ContentRule, user: User, path: ResourcePath, verb: str) -> Hiding | None:
        wanted = "list" if verb in _LISTS else "get"
        right = Attributes(wanted, rule.group, "*", rule.resource, namespace=path.namespace)
        if await is_allowed(self._authorizer, user, right):
            return None
        where = f'in the namespace "{path.namespace}"' if path.namespace else "at the cluster scope"
        reason = f"it carries values of {rule.resource}, which the user cannot {wanted} {where}"
        return Hiding(rule.carries, reason)

    async def _about_others(self, user: User, path: ResourcePath) -> Hiding | None:
        if path.namespace not in _OF_CLUSTER_OBJECTS:
            return None
        if await is_allowed(self._authorizer, user, Attributes("get", "*", "*", "*")):
            return None
        reason = "it is about an object without a namespace, which the user cannot get"
        return Hiding(partial(self._is_about_another, user), reason)

    def _is_about_another(self, user: User, value: bytes) -> bool:
        """Return whether an Event is about an object without a namespace that the user cannot get."""
        event = orjson.loads(value)
        about: Object = next((event[field] for field in _ABOUT if event.get(field)), {})
        if about.get("namespace"):
            return False
        group, _, version = str(about.get("apiVersion") or "").rpartition("/")
        info = self._kinds.served(group, version, str(about.get("kind") or ""))
        if info is None:
            return True  # no role has rights on a kind that is not served, but one with all rights
        resource = info.resource
        if resource.namespaced:
            return False
        named = ResourcePath(group, version, "", resource.plural, str(about.get("name") or ""), "")
        return not self._authorizer.authorize(user, to_attributes(named, "get")).is_allowed
