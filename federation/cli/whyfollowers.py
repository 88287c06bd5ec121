"""The part of `fedctl why` about followers: the leaders of an object that no policy selects, and its clusters.

The journal has no decision about such an object, so this is read from its federated object.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rich.console import Console

from federation.api import names
from federation.api.federatedtype import FederatedType, from_config
from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, FEDERATED_OBJECTS, FEDERATED_TYPE_CONFIGS
from federation.apimachinery import conditions
from federation.apimachinery.amounts import first_of
from federation.apimachinery.errors import Forbidden, NotFound
from federation.apimachinery.resources import Resource
from federation.planning.federatedobject.naming import federated_object_name
from federation.planning.federatedobject.placements import placement_of
from federation.planning.followers.followerplan import stored_leaders
from federation.planning.followers.leaderplan import identity_of, may_follow
from federation.planning.followers.orphaned import kept_for
from federation.terminal.printing import print_field

if TYPE_CHECKING:
    from federation.client.http import HTTPClient

_LEADERS_SHOWN_MAX = 5


@dataclass(frozen=True, slots=True)
class FollowerPlacement:
    """An object's leaders, as kind/name, and its clusters.

    `kept` maps each deleted leader whose member objects were orphaned to the clusters that keep the follower for it.
    """

    leaders: list[str]
    clusters: list[str]
    kept: dict[str, list[str]]

    def to_json(self) -> dict[str, Any]:
        """Return the document that `-o json` prints."""
        document = {"follows": self.leaders, "clusters": self.clusters}
        return {**document, "keptFor": self.kept} if self.kept else document


@dataclass(frozen=True, slots=True)
class FederationState:
    """The federation's configuration for the object's kind, and its federated object.

    `type_` is None when no FederatedTypeConfig covers the kind. `may_follow`: objects of it can follow workloads.
    """

    type_: FederatedType | None = None
    may_follow: bool = False
    federated: Mapping[str, Any] | None = None

    def following(self) -> FollowerPlacement | None:
        """Return its leaders and clusters, None when it has no leader and is not kept for a deleted one."""
        if self.federated is None:
            return None
        leaders = [str(leader) for leader in stored_leaders(self.federated)]
        kept = {str(leader): sorted(clusters) for leader, clusters in sorted(kept_for(self.federated).items())}
        if not (leaders or kept):
            return None
        return FollowerPlacement(leaders, placement_of(self.federated, names.FOLLOWER_CONTROLLER), kept)

    def held(self) -> str:
        """Return the clusters that it is held from by the host's admission, and the reason; "" for none."""
        status = (self.federated or {}).get("status") or {}
        condition = conditions.find(status.get("conditions"), names.ADMITTED) or {}
        return str(condition.get("message", "")) if condition.get("status") == "False" else ""


async def read_federation_state(host: "HTTPClient", resource: Resource, namespace: str, name: str) -> FederationState:
    """Return the federation's state of an object; what the user may not read counts as absent."""
    try:
        configs = (await host.list(FEDERATED_TYPE_CONFIGS)).items
    except Forbidden:
        return FederationState(_unknown_type(resource))
    kind = FEDERATED_OBJECTS if resource.namespaced else CLUSTER_FEDERATED_OBJECTS
    state = FederationState()
    for config in configs:
        source = config["spec"]["sourceType"]
        if (source.get("group", ""), source["kind"]) != (resource.group, resource.kind):
            continue
        type_ = from_config(config)
        state = FederationState(type_, may_follow(resource.group, resource.kind, type_))
        try:
            federated_name = federated_object_name(name, config["metadata"]["name"])
            found = await host.get(kind, federated_name, namespace if resource.namespaced else "")
        except (NotFound, Forbidden):
            continue
        if identity_of(found).name == name:
            return replace(state, federated=found)
    return state


def _unknown_type(resource: Resource) -> FederatedType:
    """Return what is assumed about a kind whose configuration the user may not read."""
    source = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    scope = "Namespaced" if resource.namespaced else "Cluster"
    source |= {"pluralName": resource.plural, "scope": scope}
    return from_config({"metadata": {"name": resource.group_resource}, "spec": {"sourceType": source}})


def print_following(console: Console, following: FollowerPlacement) -> None:
    """Print the leaders and clusters."""
    if following.leaders:
        print_field(console, "follows", first_of(following.leaders, _LEADERS_SHOWN_MAX))
    print_field(console, "goes to", ", ".join(following.clusters) or "no cluster: its leaders are not placed")
    for leader, clusters in following.kept.items():
        print_field(console, "stays", f"in {', '.join(clusters)} for {leader}: deleted, its member objects were kept")
