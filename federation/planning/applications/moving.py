"""What goes along when a workload moves, and what is left behind. Pure.

Parts that are placed where the workload is go along: those that it refers to do so by themselves, and the others once
its annotation `followers` lists them. A part that cannot, or that only a member knows, stays; so does what a cluster
itself must have. `fedctl migrate`, `import` and `app` say so before anything moves.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from federation.api import names
from federation.planning.applications.graph import Application, FindType, Part
from federation.planning.federatedobject.imported import import_problem, is_made_by_cluster
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.followers.followerplan import is_following_disabled
from federation.planning.followers.leaderplan import is_follower_scheduling_enabled, may_follow
from federation.planning.followers.references import FollowersError, Identity, Reference, listed_followers
from federation.planning.followers.ties import Relation


@dataclass(frozen=True, slots=True)
class Left:
    """A part of an application that is not where the workload goes: in which clusters it is missing, and why."""

    part: Part
    clusters: frozenset[str]
    reason: str

    @property
    def is_essential(self) -> bool:
        """Whether the application would not start, or not serve, there."""
        return self.part.relation.is_essential

    def __str__(self) -> str:
        part, where = self.part, ", ".join(sorted(self.clusters))
        return f"{part.identity}, which {part.relation} {part.to}, is not in {where}: {self.reason}"


def source_of(federated: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the object that a federated object delivers, with the annotation `followers` of its source."""
    template: Mapping[str, Any] = federated["spec"]["template"]
    listed = (federated["metadata"].get("annotations") or {}).get(names.FOLLOWERS)
    if listed is None:
        return template
    metadata = template["metadata"]
    annotations = {**(metadata.get("annotations") or {}), names.FOLLOWERS: listed}
    return {**template, "metadata": {**metadata, "annotations": annotations}}


def followers_to_list(
    application: Application, federated: Mapping[Identity, Mapping[str, Any]], find_type: FindType
) -> str | None:
    """Return the annotation `followers` with which all parts that can go along do so; None if it is so already.

    `federated` has the federated objects of the namespace. Parts that are in no cluster of the workload do not go
    along: they are the host's own, or of other clusters.
    """
    leader = federated.get(application.identity)
    if leader is None or not is_follower_scheduling_enabled(leader):
        return None
    found = {
        _reference(part.identity)
        for part in application.parts.values()
        if (each := federated.get(part.identity)) is not None
        and _is_listable(part, find_type)
        and not is_following_disabled(each)
        and effective_placement(each) & effective_placement(leader)
    }
    return with_listed(application.workload, found)


def placements_if_moved(
    application: Application,
    federated: Mapping[Identity, Mapping[str, Any]],
    gained: frozenset[str],
    find_type: FindType,
) -> dict[Identity, frozenset[str]]:
    """Return the clusters of the application's parts once the workload is in the clusters `gained`, too."""
    leader = federated.get(application.identity)
    is_followed = leader is not None and is_follower_scheduling_enabled(leader)
    found = {}
    for part in application.parts.values():
        if (each := federated.get(part.identity)) is None:
            continue
        identity = part.identity
        follows = is_followed and not is_following_disabled(each) and part.relation is not Relation.GRANTS
        follows &= may_follow(identity.group, identity.kind, find_type(identity.group, identity.kind))
        found[identity] = effective_placement(each) | (gained if follows else frozenset())
    return found


def with_listed(workload: Mapping[str, Any], found: Collection[Reference]) -> str | None:
    """Return the annotation `followers` of a workload with further ones, None if that does not change it.

    One that cannot be read is left as it is: its author has to mend it.
    """
    try:
        listed = listed_followers(workload["metadata"].get("annotations") or {})
    except FollowersError:
        return None
    if listed.issuperset(found):
        return None
    entries = [{key: value for key, value in each._asdict().items() if value} for each in sorted(listed.union(found))]
    return orjson.dumps(entries).decode()


def listable_parts(application: Application, find_type: FindType) -> list[Reference]:
    """Return the parts that the annotation `followers` has to list for them to go along."""
    return [_reference(part.identity) for part in application.parts.values() if _is_listable(part, find_type)]


def _is_listable(part: Part, find_type: FindType) -> bool:
    """Return True if the part goes along only if it is listed, and objects of its kind may go along."""
    identity = part.identity
    type_ = find_type(identity.group, identity.kind)
    return (
        part.obj is not None
        and type_ is not None
        and part.relation is not Relation.GRANTS
        and may_follow(identity.group, identity.kind, type_)
        and not _follows_unlisted(part)
    )


def _follows_unlisted(part: Part) -> bool:
    """Return True for a reference of pods, service accounts and Ingresses, which are followed without a list."""
    return part.relation is Relation.NEEDED and part.identity.kind != "Gateway"


def left_behind(
    application: Application,
    gained: frozenset[str],
    placed: Mapping[Identity, frozenset[str]],
    there: Mapping[str, Collection[Identity]],
    find_type: FindType,
    *,
    source: str,
) -> list[Left]:
    """Return the parts that will not be in the clusters that the workload gains; `source` is one where it is now.

    `placed` are the clusters after the move, `there` what the gained clusters have already. A part that is known by
    name only is missing where it was before, so it does not count.
    """
    found = []
    for part in application.parts.values():
        if part.obj is None or is_made_by_cluster(part.obj):
            continue
        missing = {
            cluster
            for cluster in gained - placed.get(part.identity, frozenset())
            if part.identity not in there.get(cluster, ())
        }
        if missing:
            reason = reason_to_stay(part, find_type, source, is_placed=part.identity in placed)
            found.append(Left(part, frozenset(missing), reason))
    return found


def reason_to_stay(part: Part, find_type: FindType, source: str, *, is_placed: bool = False) -> str:
    """Return why a part does not go along by itself, and the remedy; `source` is a cluster that has it."""
    identity = part.identity
    if part.relation is Relation.GRANTS and is_placed:
        return "rights do not follow; place them with a policy"
    if find_type(identity.group, identity.kind) is None:
        return (
            f"kind {identity.kind} is not federated; make a FederatedTypeConfig for it, or create it where it is needed"
        )
    if is_placed:
        return f"its policy or the annotation {names.DISABLE_FOLLOWING} keeps it where it is; place it with a policy"
    if part.obj is not None and (problem := import_problem(part.obj)):
        return problem
    return f"import it with: fedctl import --from-cluster {source} {identity} -n {identity.namespace}"


def _reference(identity: Identity) -> Reference:
    return Reference(identity.group, identity.kind, identity.name)
