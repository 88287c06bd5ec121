"""The applications of objects that are imported from a member: what goes with them, what is left, what they need."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from federation.api import names
from federation.apimachinery.amounts import first_of
from federation.apimachinery.ownerreferences import controller_of
from federation.apimachinery.resources import Object
from federation.cli.applications.surroundings import Surroundings, read_surroundings
from federation.planning.applications.graph import Application, identity_of_object
from federation.planning.applications.moving import listable_parts, reason_to_stay, with_listed
from federation.planning.applications.needs import needs_of
from federation.planning.federatedobject.imported import is_made_by_cluster
from federation.planning.followers.references import Identity
from federation.planning.followers.ties import POD
from federation.scheduling.whatif.state import ObjectSet

if TYPE_CHECKING:
    from federation.client.http import HTTPClient

_PROBLEMS_MAX = 3


async def describe_applications(
    host: "HTTPClient",
    world: ObjectSet,
    cluster: str,
    namespace: str,
    found: Sequence[Object],
    named: Collection[str],
) -> dict[str, dict[str, str]]:
    """Print what is left in the member of the applications of the objects, and what these need in a cluster.

    `named` are the titles of objects that are named as left already. Returns the annotations with which the parts that
    are imported follow their workload, by the workload's title.
    """
    around = await read_surroundings(host, world, namespace, (cluster,))
    imported = {identity_of_object(each) for each in found}
    mine = [each for each in around.applications() if each.identity in imported]
    for line in _left(mine, around, cluster, imported, named):
        print(line)
    followers = {}
    for application in mine:
        type_ = around.find_type(application.identity.group, application.identity.kind)
        if needs := [need.title for need in needs_of(application, type_)]:
            print(f"{application.identity} needs in each cluster that it moves to: {', '.join(needs)}")
        listed = [
            each
            for each in listable_parts(application, around.find_type)
            if Identity(each.group, each.kind, namespace, each.name) in imported
        ]
        if (text := with_listed(application.workload, listed)) is not None:
            followers[str(application.identity)] = {names.FOLLOWERS: text}
    return followers


def _left(
    found: Sequence[Application],
    around: Surroundings,
    cluster: str,
    imported: Collection[Identity],
    named: Collection[str],
) -> list[str]:
    """Return a line for each object that belongs to an imported workload and is not imported."""
    lines = dict[str, None]()
    for application in found:
        for part in application.parts.values():
            is_here = part.obj is not None and part.identity not in around.federated
            is_named = part.identity in imported or str(part.identity) in named
            if is_here and not is_named and not is_made_by_cluster(part.obj or {}):
                reason = reason_to_stay(part, around.find_type, cluster)
                lines[f"left in {cluster}: {part.identity}, which {part.relation} {part.to}: {reason}"] = None
    reading = around.members[cluster]
    for pod in reading.objects.get(POD, ()) if found else ():
        if controller_of(pod) is None:
            lines[f"left in {cluster}: pod/{pod['metadata']['name']}: it has no controller, so nothing moves it"] = None
    if reading.problems:
        lines[f"not checked: {first_of(reading.problems, _PROBLEMS_MAX)}"] = None
    return list(lines)
