"""What `fedctl why` says of objects that the scheduler does not place: whom they follow, and where they are.

No decision is behind that, so that it is read from the federated object as it is now.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console

from federation.api import names
from federation.api.federatedtype import from_config
from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, FEDERATED_OBJECTS, FEDERATED_TYPE_CONFIGS, Resource
from federation.base.errors import Forbidden, NotFound
from federation.cli.printing import print_field
from federation.client.http import HTTPClient
from federation.planning.followers.following import stored_leaders
from federation.planning.followers.leading import identity_of, may_follow
from federation.planning.followers.released import kept_for
from federation.planning.naming import federated_object_name
from federation.planning.placements import effective_placement, placement_of

_LEADERS_SHOWN_MAX = 5


@dataclass(frozen=True, slots=True)
class Following:
    """Whom an object follows, as kind/name, and where to; `kept` has clusters by deleted leaders whose copies stay."""

    leaders: list[str]
    clusters: list[str]
    kept: dict[str, list[str]]

    def to_json(self) -> dict[str, Any]:
        """Return it as `-o json` prints it."""
        told = {"follows": self.leaders, "clusters": self.clusters}
        return {**told, "keptFor": self.kept} if self.kept else told


@dataclass(frozen=True, slots=True)
class Placed:
    """An object as the federation knows it.

    `is_federated`: its kind is one that members get at all; `may_follow`: one that may follow workloads.
    """

    is_federated: bool = True
    may_follow: bool = False
    fed_object: Mapping[str, Any] | None = None

    def following(self) -> Following | None:
        """Return whom it follows or followed to where it still is, None when nobody."""
        if self.fed_object is None:
            return None
        leaders = [str(leader) for leader in stored_leaders(self.fed_object)]
        kept = {str(leader): sorted(clusters) for leader, clusters in sorted(kept_for(self.fed_object).items())}
        if not (leaders or kept):
            return None
        return Following(leaders, placement_of(self.fed_object, names.FOLLOWER_CONTROLLER), kept)

    def clusters(self) -> list[str]:
        """Return the clusters that it goes to, whoever says so."""
        return sorted(effective_placement(self.fed_object or {}))


async def read_placed(host: HTTPClient, resource: Resource, namespace: str, name: str) -> Placed:
    """Return what the federation knows of an object; what the user may not read is not known."""
    try:
        configs = (await host.list(FEDERATED_TYPE_CONFIGS)).items
    except Forbidden:
        return Placed()
    federated_resource = FEDERATED_OBJECTS if resource.namespaced else CLUSTER_FEDERATED_OBJECTS
    placed = Placed(is_federated=False)
    for config in configs:
        source = config["spec"]["sourceType"]
        if (source.get("group", ""), source["kind"]) != (resource.group, resource.kind):
            continue
        placed = Placed(may_follow=may_follow(resource.group, resource.kind, from_config(config)))
        try:
            federated_name = federated_object_name(name, config["metadata"]["name"])
            found = await host.get(federated_resource, federated_name, namespace if resource.namespaced else "")
        except (NotFound, Forbidden):
            continue
        if identity_of(found).name == name:
            return replace(placed, fed_object=found)
    return placed


def print_following(console: Console, following: Following) -> None:
    """Print it under what is said of the object."""
    shown = ", ".join(following.leaders[:_LEADERS_SHOWN_MAX])
    more = len(following.leaders) - _LEADERS_SHOWN_MAX
    if following.leaders:
        print_field(console, "follows", f"{shown}{f' and {more} more' if more > 0 else ''}")
    print_field(console, "goes to", ", ".join(following.clusters) or "no cluster: its leaders are in none")
    for leader, clusters in following.kept.items():
        print_field(console, "stays", f"in {', '.join(clusters)} for {leader}: deleted, its copies were left")
