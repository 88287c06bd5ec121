"""Followers in a plan: what goes elsewhere because the workloads that need it do.

The index of the follower controller (`planning/followers/`) is filled with the world as it is, then every walked
workload is put in again; whoever that makes a difference to gets the patch that the controller would write once its
leaders have settled. That they wait for each other on the way is no part of a plan.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from federation.api.federatedtype import FederatedType
from federation.planning.followers.following import is_refusing, plan_following
from federation.planning.followers.index import FollowerIndex
from federation.planning.followers.leading import Lead, identity_of, is_leader_kind, lead_of
from federation.planning.followers.references import Identity
from federation.planning.followers.released import NOBODY_KEPT, kept_for
from federation.planning.naming import federated_object_name
from federation.scheduling.whatif.walk import Walk
from federation.scheduling.whatif.world import Facts, Name

_LEADERS_NOTED_MAX = 100
_LEADERS_SHOWN_MAX = 3


class Followers:
    """Who follows whom in a world, and what changes of that while objects are walked."""

    def __init__(self, federated: Iterable[Mapping[str, Any]], facts: Facts) -> None:
        self._facts = facts
        self._types = {(type_.resource.group, type_.resource.kind): type_ for type_ in facts.types.values()}
        self._index = FollowerIndex()
        self._changed: dict[Identity, None] = {}
        for fed_object in federated:
            if is_leader_kind(_template(fed_object)):
                self._index.put(identity_of(fed_object), self._lead(fed_object).followers)

    def walked(self, before: Mapping[str, Any] | None, under_way: Walk | None) -> None:
        """Take over what became of an object; `under_way` is None when it is deleted."""
        fed_object = under_way.fed_object if under_way is not None else before
        if fed_object is None:
            return
        identity = identity_of(fed_object)
        if not is_leader_kind(_template(fed_object)):
            if under_way is not None and self._index.leaders_of(identity):
                self._changed[identity] = None
            return
        lead = Lead({})
        if under_way is not None:
            lead = self._lead(fed_object)
            under_way.note(lead.problem)
        self._changed |= dict.fromkeys(sorted(self._index.put(identity, lead.followers)))

    def changed(self) -> list[tuple[Name, FederatedType]]:
        """Return the federated objects, by name, that may go elsewhere, and their types."""
        found = []
        for identity in sorted(self._changed):
            type_ = self._types.get((identity.group, identity.kind))
            if type_ is not None:
                found.append(((identity.namespace, federated_object_name(identity.name, type_.name)), type_))
        return found

    def follow(self, under_way: Walk) -> bool:
        """Place an object where its leaders are, and say whether that changes anything."""
        identity = identity_of(under_way.fed_object)
        is_free = is_refusing(under_way.fed_object)
        leaders = frozenset() if is_free else frozenset(self._index.leaders_of(identity))
        clusters = frozenset() if is_free else self._index.clusters_of(identity)
        kept = NOBODY_KEPT if is_free else kept_for(under_way.fed_object)
        under_way.follows = describe(leaders)
        stages = under_way.type_.controllers
        return under_way.apply(
            plan_following(under_way.fed_object, stages, leaders, clusters, kept, leaders_max=_LEADERS_NOTED_MAX)
        )

    def _lead(self, fed_object: Mapping[str, Any]) -> Lead:
        return lead_of(fed_object, self._facts.type_of(_template(fed_object)), self._type_of)

    def _type_of(self, group: str, kind: str) -> FederatedType | None:
        return self._types.get((group, kind))


def describe(leaders: Iterable[Identity]) -> str:
    """Return in one line whom an object follows."""
    named = sorted(map(str, leaders))
    if not named:
        return "it follows nobody any more"
    more = len(named) - _LEADERS_SHOWN_MAX
    return f"it follows {', '.join(named[:_LEADERS_SHOWN_MAX])}" + (f" and {more} more" if more > 0 else "")


def _template(fed_object: Mapping[str, Any]) -> Mapping[str, Any]:
    template: Mapping[str, Any] = (fed_object.get("spec") or {}).get("template") or {}
    return template
