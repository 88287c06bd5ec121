"""What `fedctl why` says of an object that goes where its leaders go: whom it follows, and to which clusters.

No decision of the scheduler is behind that, so that it is read from the federated object as it is now.
"""

from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape

from federation.api import names
from federation.api.resources import FEDERATED_OBJECTS, FEDERATED_TYPE_CONFIGS, Resource
from federation.base.errors import Forbidden, NotFound
from federation.client.http import HTTPClient
from federation.planning.followers.following import stored_leaders
from federation.planning.followers.leading import identity_of
from federation.planning.naming import federated_object_name
from federation.planning.placements import placement_of

_LEADERS_SHOWN_MAX = 5


@dataclass(frozen=True, slots=True)
class Following:
    """Whom an object follows, as kind/name, and where to."""

    leaders: list[str]
    clusters: list[str]

    def to_json(self) -> dict[str, Any]:
        """Return it as `-o json` prints it."""
        return {"follows": self.leaders, "clusters": self.clusters}


async def read_following(host: HTTPClient, resource: Resource, namespace: str, name: str) -> Following | None:
    """Return whom an object follows, None when nobody, or when the user may not read that."""
    if not resource.namespaced:
        return None
    try:
        configs = (await host.list(FEDERATED_TYPE_CONFIGS)).items
    except Forbidden:
        return None
    for config in configs:
        source = config["spec"]["sourceType"]
        if (source.get("group", ""), source["kind"]) != (resource.group, resource.kind):
            continue
        try:
            federated_name = federated_object_name(name, config["metadata"]["name"])
            federated = await host.get(FEDERATED_OBJECTS, federated_name, namespace)
        except (NotFound, Forbidden):
            continue
        leaders = [str(leader) for leader in stored_leaders(federated)]
        if leaders and identity_of(federated).name == name:
            return Following(leaders, placement_of(federated, names.FOLLOWER_CONTROLLER))
    return None


def print_following(console: Console, following: Following) -> None:
    """Print it under what is said of the object."""
    shown = ", ".join(following.leaders[:_LEADERS_SHOWN_MAX])
    more = len(following.leaders) - _LEADERS_SHOWN_MAX
    console.print(f"  follows   {escape(shown)}{f' and {more} more' if more > 0 else ''}")
    console.print(f"  goes to   {escape(', '.join(following.clusters) or 'no cluster: its leaders are in none')}")
