"""What surrounds the workloads of a namespace: the federation's objects on the host, and those that only members have.

Members are read through the host with the rights that the user has there, as `fedctl get` reads them. What a user may
not read is named, and taken as unknown.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from federation.api.federatedtype import FederatedType
from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_OBJECTS
from federation.apimachinery import dotpaths
from federation.apimachinery.amounts import first_of
from federation.apimachinery.errors import ApiError, ClusterError, ConfigurationError, NotFound
from federation.apimachinery.resources import GroupKind, Object, Resource
from federation.cli.members.access import Member
from federation.cli.members.fanout import describe_problem
from federation.cli.members.lookup import Scope, read_items
from federation.planning.applications.graph import Application, applications, identity_of_object, owners_of
from federation.planning.applications.moving import Left, left_behind, placements_if_moved, source_of
from federation.planning.applications.needs import Need, kinds_of, lacking, needs_of
from federation.planning.applications.room import LIMIT_RANGE, RESOURCE_QUOTA, lacking_room
from federation.planning.followers.leaderplan import identity_of, is_leader_type, pod_path_of
from federation.planning.followers.references import CLAIM, CONFIG_MAP, SECRET, SERVICE_ACCOUNT, Identity
from federation.planning.followers.ties import POD, tied_kinds
from federation.planning.leftovers.record import is_managed
from federation.scheduling.whatif.state import ObjectSet, federated_types

if TYPE_CHECKING:
    from federation.client.http import HTTPClient

_PATIENCE_S = 10.0
_PROBLEMS_MAX = 3
_REFERRED = tuple(GroupKind("", kind) for kind in (CONFIG_MAP, CLAIM, SERVICE_ACCOUNT, SECRET))


@dataclass(frozen=True, slots=True)
class Reading:
    """What a member has, by kind; a kind that could not be read is absent, and `problems` says why."""

    objects: Mapping[GroupKind, Sequence[Object]] = field(default_factory=dict)
    problems: Sequence[str] = ()

    def has(self, identity: Identity) -> bool:
        """Return whether the member has the object."""
        objects = self.objects.get(GroupKind(identity.group, identity.kind), ())
        return any(identity_of_object(obj) == identity for obj in objects)

    def all(self) -> Iterable[Object]:
        """Return all objects."""
        return (obj for objects in self.objects.values() for obj in objects)


@dataclass(frozen=True, slots=True)
class Missing:
    """What a workload would lack in the clusters that it gains: parts, needs by cluster, and served kinds."""

    left: Sequence[Left]
    needs: Sequence[tuple[str, Need]]
    kinds: Sequence[tuple[str, GroupKind, bool]]
    """Clusters and the kinds that they do not serve, each with whether the application fails without the kind."""
    room: Sequence[tuple[str, str]]
    """Clusters, and what a quota or limit range there forbids."""
    bare_pods: Sequence[tuple[str, str]]
    """Clusters and names of Pods without a controller."""
    problems: Sequence[str]

    @property
    def is_broken(self) -> bool:
        """Whether the application would not start, or not serve."""
        is_unserved = any(is_essential for _, _, is_essential in self.kinds)
        return bool(self.needs or self.room) or is_unserved or any(each.is_essential for each in self.left)

    def lines(self, title: str) -> list[str]:
        """Return a line for each thing that is missing."""
        return [
            *(f"{cluster} has no {need.title}, which {need.by} needs" for cluster, need in self.needs),
            *(f"{cluster} does not serve kind {kind}, which {title} needs" for cluster, kind, _ in self.kinds),
            *(f"{cluster}: {text}" for cluster, text in self.room),
            *map(str, self.left),
            *(f"pod/{name} has no controller and stays in {cluster}" for cluster, name in self.bare_pods),
            *([f"not checked: {first_of(self.problems, _PROBLEMS_MAX)}"] if self.problems else ()),
        ]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The objects of one namespace on the host, and in some members."""

    types: Mapping[GroupKind, FederatedType]
    clusters: Mapping[str, Object]
    federated: Mapping[Identity, Object]
    members: Mapping[str, Reading]

    def find_type(self, group: str, kind: str) -> FederatedType | None:
        """Return the federated type of a kind, None without one."""
        return self.types.get(GroupKind(group, kind))

    def applications(self) -> list[Application]:
        """Return all applications of the namespace: of the host's objects, and of those that only members have."""
        found: dict[Identity, Mapping[str, object]] = {
            identity: source_of(each) for identity, each in self.federated.items()
        }
        for reading in self.members.values():
            for obj in reading.all():
                if not is_managed(obj):
                    found.setdefault(identity_of_object(obj), obj)
        return applications(found.values(), self.find_type)

    def application(self, identity: Identity) -> tuple[Application, Mapping[Identity, Sequence[Identity]]]:
        """Return one application, and the workloads of each of the parts; ConfigurationError without such a one."""
        every = self.applications()
        for application in every:
            if application.identity == identity:
                return application, owners_of(every)
        raise ConfigurationError(f"{identity} is no workload of the federation: it has no pods, or is placed nowhere")


async def read_surroundings(
    host: "HTTPClient", world: ObjectSet, namespace: str, clusters: Collection[str]
) -> Surroundings:
    """Read what belongs to workloads of the namespace, on the host and in these members."""
    types = federated_types(world, [])
    every = {str(cluster["metadata"]["name"]): cluster for cluster in world.list(FEDERATED_CLUSTERS)}
    leaders = (kind for kind, type_ in types.items() if type_.resource.namespaced and is_leader_type(type_))
    kinds = list(dict.fromkeys((*tied_kinds(types.values()), *_REFERRED, POD, *leaders)))
    names = sorted(clusters)
    readings = await asyncio.gather(*(read_kinds(host, every[name], kinds, namespace) for name in names))
    federated = {
        identity_of(each): each
        for each in world.list(FEDERATED_OBJECTS)
        if each["metadata"].get("namespace") == namespace
    }
    return Surroundings(types, every, federated, dict(zip(names, readings, strict=True)))


def served_kinds(cluster: Object) -> dict[GroupKind, Resource]:
    """Return the kinds that a member serves, as it reported them."""
    found: dict[GroupKind, Resource] = {}
    for each in (cluster.get("status") or {}).get("apiResourceTypes") or ():
        group, kind = str(each.get("group") or ""), str(each["kind"])
        is_namespaced = each.get("scope") == "Namespaced"
        resource = Resource(group, str(each["version"]), kind, str(each["pluralName"]), is_namespaced)
        found.setdefault(resource.group_kind, resource)
    return found


async def read_kinds(host: "HTTPClient", cluster: Object, kinds: Iterable[GroupKind], namespace: str = "") -> Reading:
    """Return the objects of the kinds in a member; kinds that it does not serve have none."""
    name, served = str(cluster["metadata"]["name"]), served_kinds(cluster)
    member = Member(host, name, _PATIENCE_S)
    found: dict[GroupKind, Sequence[Object]] = {}
    problems: dict[str, None] = {}

    async def read(kind: GroupKind) -> None:
        if (resource := served.get(kind)) is None:
            found[kind] = ()
            return
        try:
            found[kind] = await read_items(member, resource, Scope(namespace if resource.namespaced else ""))
        except NotFound:
            found[kind] = ()
        except (ApiError, ClusterError) as error:
            problems[f"{resource.plural} in {name}: {describe_problem(name, error)}"] = None

    await asyncio.gather(*map(read, kinds))
    return Reading(found, list(problems))


async def find_missing(
    host: "HTTPClient", around: Surroundings, application: Application, counts: Mapping[str, int]
) -> Missing:
    """Return what the workload would lack in the clusters that it gains; the others were read as its present ones.

    `counts` are the replicas in each cluster that it gains.
    """
    gained = frozenset(counts)
    type_ = around.find_type(application.identity.group, application.identity.kind)
    needs, wanted = needs_of(application, type_), kinds_of(application)
    kinds = sorted({RESOURCE_QUOTA, LIMIT_RANGE, *(need.group_kind for need in needs)})
    namespace, path = application.identity.namespace, pod_path_of(application.workload, type_)
    pod = dotpaths.get(application.workload, path) if path else None
    names = sorted(gained)
    readings = await asyncio.gather(*(read_kinds(host, around.clusters[name], kinds, namespace) for name in names))
    lacked, unserved = list[tuple[str, Need]](), list[tuple[str, GroupKind, bool]]()
    room = list[tuple[str, str]]()
    for name, reading in zip(names, readings, strict=True):
        lacked += ((name, need) for need in lacking(needs, reading.objects.get))
        quotas, ranges = (reading.objects.get(kind, ()) for kind in (RESOURCE_QUOTA, LIMIT_RANGE))
        room += ((name, text) for text in lacking_room(pod or {}, counts[name] if pod else 0, quotas, ranges))
        served = served_kinds(around.clusters[name])
        unserved += ((name, kind, is_hard) for kind, is_hard in wanted.items() if served and kind not in served)
    there = {name: {identity_of_object(obj) for obj in around.members[name].all()} for name in names}
    placed = placements_if_moved(application, around.federated, gained, around.find_type)
    sources = sorted(around.members.keys() - gained)
    left = left_behind(
        application, gained, placed, there, around.find_type, source=sources[0] if sources else "CLUSTER"
    )
    pods = [
        (cluster, pod)
        for cluster, reading in around.members.items()
        if cluster not in gained
        for pod in application.bare_pods
        if any(each["metadata"]["name"] == pod for each in reading.objects.get(POD, ()))
    ]
    problems = [text for reading in (*around.members.values(), *readings) for text in reading.problems]
    return Missing(left, lacked, unserved, room, pods, problems)
