"""Followers in a plan: objects whose placement changes because the workloads that need them move.

The follower index (`planning/followers/`) is built from the current objects; each computed workload then updates it.
Followers that an update affects get the patch that the follower controller writes once their leaders are placed. The
intermediate steps, in which leaders and followers wait for each other, are not part of a plan.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from federation.api.federatedtype import FederatedType
from federation.apimachinery.amounts import first_of
from federation.planning.federatedobject.naming import federated_object_name
from federation.planning.federatedobject.placements import Name
from federation.planning.followers.followerplan import is_following_disabled, plan_following
from federation.planning.followers.index import FollowerIndex
from federation.planning.followers.leaderplan import (
    LeaderPlan,
    has_secrets,
    identity_of,
    inputs_of_secrets,
    is_leader,
    plan_leader,
)
from federation.planning.followers.orphaned import NOTHING_KEPT, kept_for
from federation.planning.followers.references import Identity
from federation.scheduling.whatif.pipelinerun import PipelineRun
from federation.scheduling.whatif.state import CompiledState

_LEADERS_RECORDED_MAX = 100
_LEADERS_SHOWN_MAX = 3


class FollowerChanges:
    """Follower relations, and the followers that computed objects affect."""

    def __init__(self, objects: Iterable[Mapping[str, Any]], state: CompiledState) -> None:
        self._state = state
        self._types = {(type_.resource.group, type_.resource.kind): type_ for type_ in state.types.values()}
        self._index = FollowerIndex()
        self._affected: dict[Identity, None] = {}
        self._with_secrets: dict[Identity, Mapping[str, Any]] = {}
        self._leaders: dict[Identity, Mapping[str, Any]] = {}
        for federated in objects:
            if self._is_leader(federated):
                self._leaders[identity_of(federated)] = federated
            elif has_secrets(identity := identity_of(federated)):
                self._with_secrets[identity] = federated
        for identity, federated in self._leaders.items():
            self._index.put(identity, self._lead(federated).followers)

    def record(self, before: Mapping[str, Any] | None, run: PipelineRun | None) -> None:
        """Update the relations with the result of an object; `run` is None when it is deleted."""
        federated = run.federated if run is not None else before
        if federated is None:
            return
        identity = identity_of(federated)
        if not self._is_leader(federated):
            if run is not None and self._index.leaders_of(identity):
                self._affected[identity] = None
            if has_secrets(identity):
                self._record_secrets_of(identity, federated if run is not None else None)
            return
        lead = LeaderPlan({})
        self._leaders.pop(identity, None)
        if run is not None:
            self._leaders[identity] = federated
            lead = self._lead(federated)
            run.add_problem(lead.problem)
        self._affected |= dict.fromkeys(sorted(self._index.put(identity, lead.followers)))

    def _record_secrets_of(self, follower: Identity, federated: Mapping[str, Any] | None) -> None:
        """Update the relations of the workloads that take its Secrets along; None if it is deleted."""
        before = self._with_secrets.pop(follower, None)
        if federated is not None:
            self._with_secrets[follower] = federated
        if inputs_of_secrets(before) == inputs_of_secrets(federated):
            return
        for leader in sorted(self._index.leaders_of(follower)):
            changed = self._index.put(leader, self._lead(self._leaders[leader]).followers)
            self._affected |= dict.fromkeys(sorted(changed))

    def affected(self) -> list[tuple[Name, FederatedType]]:
        """Return the names and types of the federated objects whose placement may change."""
        found = []
        for identity in sorted(self._affected):
            type_ = self._types.get((identity.group, identity.kind))
            if type_ is not None:
                found.append(((identity.namespace, federated_object_name(identity.name, type_.name)), type_))
        return found

    def follow(self, run: PipelineRun) -> bool:
        """Place a follower where its leaders are; return whether that changes it."""
        identity = identity_of(run.federated)
        is_disabled = is_following_disabled(run.federated)
        leaders = frozenset() if is_disabled else frozenset(self._index.leaders_of(identity))
        clusters = frozenset() if is_disabled else self._index.clusters_of(identity)
        kept = NOTHING_KEPT if is_disabled else kept_for(run.federated)
        run.follows = describe(leaders)
        stages = run.type_.controllers
        return run.apply(
            plan_following(run.federated, stages, leaders, clusters, kept, leaders_max=_LEADERS_RECORDED_MAX)
        )

    def _lead(self, federated: Mapping[str, Any]) -> LeaderPlan:
        type_ = self._state.type_of(_template(federated))
        return plan_leader(federated, type_, self._type_of, self._with_secrets.get)

    def _is_leader(self, federated: Mapping[str, Any]) -> bool:
        return is_leader(_template(federated), self._state.type_of(_template(federated)))

    def _type_of(self, group: str, kind: str) -> FederatedType | None:
        return self._types.get((group, kind))


def describe(leaders: Iterable[Identity]) -> str:
    """Return the leaders of an object in one line."""
    named = sorted(map(str, leaders))
    if not named:
        return "it follows no workload any more"
    return f"it follows {first_of(named, _LEADERS_SHOWN_MAX)}"


def _template(federated: Mapping[str, Any]) -> Mapping[str, Any]:
    template: Mapping[str, Any] = (federated.get("spec") or {}).get("template") or {}
    return template
