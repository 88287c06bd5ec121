"""Invariants of a federation. Each yields one sentence per violation.

`violations` hold at the end of every scenario, after the world has converged with all connections restored; `world.py`
calls it. `violations_meanwhile` hold at every moment; `fields_have_one_owner` and `changes_of_a_restart` hold whenever a
world has converged. Fault tests call these. `deletions.py` judges each deletion when it is sent.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, FEDERATED_OBJECTS, LEFTOVERS
from federation.apimachinery.errors import NotFound
from federation.apimachinery.resources import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, Object, Resource
from federation.client.client import Client
from federation.planning.drift.scalers import scaler_of
from federation.planning.federatedobject.naming import federated_object_name
from federation.planning.federatedobject.placements import effective_placement, placement_of
from federation.planning.followers.followerplan import is_following_disabled, stored_leaders
from federation.planning.followers.index import FollowerIndex
from federation.planning.followers.leaderplan import identity_of, plan_leader
from federation.planning.followers.orphaned import kept_for
from federation.planning.leftovers.strays import is_written_by_us
from federation.planning.rendering.retention import is_replicas_retained
from federation.planning.status.sourceconditions import is_unselected
from tests.support.heartbeats import is_due_heartbeat
from tests.support.world import World, describe_change
from tests.support.worldmember import Member

_FORGOTTEN = "DELETED /core.kubeadmiral.io/leftovers/"
_RESTART_S = 45.0
"""Virtual seconds; members are swept 30 s after a start."""


class View:
    """What the host and the members hold, each list read once: a world that has converged does not change."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._lists: dict[tuple[Client, str], list[Object]] = {}

    async def objects(self, client: Client, resource: Resource) -> list[Object]:
        """Return all objects of a resource; none of a kind that this cluster does not serve."""
        key = (client, resource.group_resource)
        if key not in self._lists:
            try:
                self._lists[key] = (await client.list(resource)).items
            except NotFound:
                self._lists[key] = []
        return self._lists[key]

    async def managed(self, member: Member, type_: FederatedType) -> list[Object]:
        """Return the objects of ours in a member."""
        return [obj for obj in await self.objects(member.admin, type_.resource) if is_written_by_us(obj)]

    async def federated(self) -> dict[tuple[str, str], Object]:
        """Return the federated objects by namespace and name."""
        user = self.world.user
        found = [*await self.objects(user, FEDERATED_OBJECTS), *await self.objects(user, CLUSTER_FEDERATED_OBJECTS)]
        return {(obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj for obj in found}


async def violations(world: World) -> list[str]:
    """Return everything that does not hold."""
    found: list[str] = []
    view = View(world)
    for check in (
        members_hold_only_what_is_placed,
        members_hold_all_that_is_placed,
        followers_are_with_their_leaders,
        replicas_add_up,
        statuses_add_up,
        nothing_lingers,
        deletions_have_a_reason,
        reconciles_do_not_fail,
    ):
        found += [f"{check.__name__}: {line}" async for line in check(view)]
    return found


async def violations_meanwhile(world: World, acknowledged: Mapping[str, Object]) -> list[str]:
    """Return what must not even happen while faults last; `acknowledged` are the specs of the users' Deployments."""
    held = {obj["metadata"]["name"]: obj for obj in (await world.user.list(DEPLOYMENTS)).items}
    found = []
    for name, spec in acknowledged.items():
        if name not in held or held[name]["metadata"].get("deletionTimestamp"):
            found.append(f"Deployment {name} was acknowledged and is lost")
        elif held[name]["spec"] != spec:
            found.append(f"an acknowledged change of Deployment {name} is lost: {held[name]['spec']} is not {spec}")
    view = View(world)
    found += [line async for line in deletions_have_a_reason(view)]
    return found + [line async for line in reconciles_do_not_fail(view)]


async def changes_of_a_restart(world: World) -> list[str]:
    """Restart the control plane of a world that has converged, and return the stores that it writes."""
    before = await world.revisions()
    await world.restart()
    await world.pass_time(_RESTART_S)
    after = await world.revisions()
    return [line for name in before if (line := _written(world, name, before[name], after[name]))]


def _written(world: World, name: str, before: int, after: int) -> str:
    """Return what was written to a store, "" for nothing but heartbeats that were due and records of what is gone.

    The records of reported objects that are gone are removed by the next sweep: that of the start, or once a day.
    """
    changes = world.events_since(name, before)
    described = [describe_change(event) for event in changes if not is_due_heartbeat(event)]
    counted = [each for each in described if not each.startswith(_FORGOTTEN)]
    if not counted and len(changes) == after - before:
        return ""
    return f"a restart writes {after - before} times to {name or 'the host'}: {counted}"


async def members_hold_only_what_is_placed(view: View) -> AsyncIterator[str]:
    """No object of ours in a member without a federated object that is placed there, unless a Leftover reports it."""
    federated, reported = await view.federated(), await _reported(view)
    for member in view.world.members.values():
        for type_ in view.world.plane.types.all():
            for obj in await view.managed(member, type_):
                metadata = obj["metadata"]
                key = (metadata.get("namespace", ""), federated_object_name(metadata["name"], type_.name))
                if metadata["uid"] in reported:
                    continue
                if key not in federated:
                    yield f"{member.name} has {type_.name} {metadata['name']}, but the host has no federated object"
                elif member.name not in effective_placement(federated[key]):
                    yield f"{member.name} has {type_.name} {metadata['name']}, which is not placed there"


async def members_hold_all_that_is_placed(view: View) -> AsyncIterator[str]:
    """Every placed object is in its clusters, and the federated object says so."""
    for (_, name), obj in (await view.federated()).items():
        template = obj["spec"]["template"]
        type_ = view.world.plane.types.for_object(template)
        assert type_ is not None
        placement = effective_placement(obj)
        statuses = {c["cluster"]: c["status"] for c in (obj.get("status") or {}).get("clusters") or ()}
        finished = {cluster for cluster, status in statuses.items() if status == "Finished"}
        if {**statuses, **dict.fromkeys(finished, "OK")} != dict.fromkeys(placement, "OK"):
            yield f"{name} is placed in {sorted(placement)} and its status is {statuses}"
        for cluster in placement & view.world.members.keys() - finished:
            held = await view.objects(view.world.members[cluster].admin, type_.resource)
            if not any(_place_of(each) == _place_of(template) for each in held):
                yield f"{name} is placed in {cluster} and is not there"


async def followers_are_with_their_leaders(view: View) -> AsyncIterator[str]:
    """Every follower is placed where its leaders take it or left it, nowhere else, and names them."""
    federated = (await view.federated()).values()
    index, types = FollowerIndex(), view.world.plane.types
    sources = {identity_of(obj): obj for obj in federated}
    for obj in federated:
        lead = plan_leader(obj, types.for_object(obj["spec"]["template"]), types.for_group_kind, sources.get)
        index.put(identity_of(obj), lead.followers)
    for obj in federated:
        identity = identity_of(obj)
        leaders = set() if is_following_disabled(obj) else set(index.leaders_of(identity))
        clusters = index.clusters_of(identity) if leaders else frozenset()
        clusters = clusters.union(*kept_for(obj).values())
        placed = placement_of(obj, names.FOLLOWER_CONTROLLER)
        if placed != sorted(clusters) or set(stored_leaders(obj)) != leaders:
            yield f"{obj['metadata']['name']} follows {stored_leaders(obj)} to {placed}, not {leaders} to {clusters}"


async def replicas_add_up(view: View) -> AsyncIterator[str]:
    """The members run as many replicas as the user wants, unless every member runs them all (no division)."""
    for deployment in await view.objects(view.world.user, DEPLOYMENTS):
        name, wanted = deployment["metadata"]["name"], deployment["spec"]["replicas"]
        federated = await view.world.federated(name)
        if is_replicas_retained(federated) or await _is_scaled_in_members(view.world, name):
            continue  # autoscalers in the members decide
        divided = [
            patch["value"]
            for controller in federated["spec"].get("overrides") or ()
            if controller["controller"] == names.GLOBAL_SCHEDULER
            for cluster in controller["clusters"]
            for patch in cluster["patches"]
        ]
        replicas = {cluster: copy["spec"]["replicas"] for cluster, copy in (await _copies(view.world, name)).items()}
        if divided and sum(replicas.values()) != wanted:
            yield f"{name} wants {wanted} replicas, the members run {replicas}"
        if not divided and set(replicas.values()) - {wanted}:
            yield f"{name} wants {wanted} replicas in every cluster, the members run {replicas}"


async def statuses_add_up(view: View) -> AsyncIterator[str]:
    """The merged status counts what the members count, and speaks of the newest spec.

    The status of what no policy selects belongs to controllers of the host.
    """
    for deployment in await view.objects(view.world.user, DEPLOYMENTS):
        name, status = deployment["metadata"]["name"], deployment.get("status") or {}
        if is_unselected(await view.world.federated(name)):
            continue
        copies = (await _copies(view.world, name)).values()
        for field in ("replicas", "readyReplicas", "availableReplicas", "updatedReplicas"):
            counted = sum((copy.get("status") or {}).get(field, 0) for copy in copies)
            if status.get(field, 0) != counted:
                yield f"{name} has {field} {status.get(field, 0)}, its copies have {counted}"
        if any(copy.get("status") for copy in copies) and (
            status.get("observedGeneration") != deployment["metadata"]["generation"]
        ):
            yield f"{name} is of generation {deployment['metadata']['generation']}, its status is not: {status}"


async def _is_scaled_in_members(world: World, name: str) -> bool:
    """Return whether an autoscaler in a member targets the Deployment."""
    lists = [await member.admin.list(HORIZONTAL_POD_AUTOSCALERS, "default") for member in world.members.values()]
    return any(scaler_of(page.items, "apps", "Deployment", name) for page in lists)


async def _copies(world: World, name: str) -> dict[str, Object]:
    """Return the Deployment's copies by cluster, without those that an earlier one of the name left behind."""
    placed = effective_placement(await world.federated(name))
    found = {member.name: await member.find(DEPLOYMENTS, name) for member in world.members.values()}
    return {
        cluster: copy
        for cluster, copy in found.items()
        if copy is not None and (cluster in placed or names.MANAGED_LABEL in (copy["metadata"].get("labels") or {}))
    }


async def nothing_lingers(view: View) -> AsyncIterator[str]:
    """Nothing waits for deletion, nothing carries a finalizer of ours for which there is no reason any more."""
    federated = await view.federated()
    for (namespace, name), obj in federated.items():
        if obj["metadata"].get("deletionTimestamp"):
            yield f"federated object {namespace}/{name} waits for its deletion: {obj['metadata'].get('finalizers')}"
        if obj["metadata"].get("annotations", {}).get(names.DEPARTED_CLUSTERS):
            yield f"federated object {namespace}/{name} still has departed clusters"
    for type_ in view.world.plane.types.all():
        for obj in await view.objects(view.world.user, type_.resource):
            metadata = obj["metadata"]
            key = (metadata.get("namespace", ""), federated_object_name(metadata["name"], type_.name))
            if metadata.get("deletionTimestamp"):
                yield f"{type_.name} {metadata['name']} waits for its deletion: {metadata.get('finalizers')}"
            elif names.FEDERATE_FINALIZER in (metadata.get("finalizers") or ()) and key not in federated:
                yield f"{type_.name} {metadata['name']} has our finalizer and no federated object"
            elif names.FEDERATE_FINALIZER not in (metadata.get("finalizers") or ()) and effective_placement(
                federated.get(key, {})
            ):
                yield f"{type_.name} {metadata['name']} is placed and has no finalizer of ours"
        for member in view.world.members.values():
            for obj in await view.managed(member, type_):
                if obj["metadata"].get("deletionTimestamp"):
                    yield f"{type_.name} {obj['metadata']['name']} waits for its deletion in {member.name}"


async def fields_have_one_owner(world: World) -> AsyncIterator[str]:
    """Nobody shares a field that we own in a member; on the host, no field of a user's spec is ours.

    An object that an administrator created in a member, and that is managed since, has two owners: not for those.
    """
    view = View(world)
    for member in world.members.values():
        for type_ in world.plane.types.all():
            for obj in await view.managed(member, type_):
                ours, theirs = set(_owned(obj, is_ours=True)), set(_owned(obj, is_ours=False))
                if shared := sorted(ours & theirs):
                    yield f"{member.name} {type_.name} {obj['metadata']['name']} has shared fields {shared}"
    for deployment in (await world.user.list(DEPLOYMENTS)).items:
        if ours := {path for path in _owned(deployment, is_ours=True) if path.startswith("f:spec")}:
            yield f"fields of Deployment {deployment['metadata']['name']} belong to the user, not to us: {sorted(ours)}"


def _owned(obj: Object, *, is_ours: bool) -> Iterator[str]:
    for entry in obj["metadata"].get("managedFields") or ():
        if (entry["manager"] == names.FIELD_MANAGER) == is_ours and not entry.get("subresource"):
            yield from _leaves(entry["fieldsV1"], "")


def _leaves(fields: Mapping[str, Any], path: str) -> Iterator[str]:
    for key, below in fields.items():
        if key == ".":
            continue
        if below.keys() - {"."}:
            yield from _leaves(below, f"{path}{key}.")
        else:
            yield f"{path}{key}"


async def deletions_have_a_reason(view: View) -> AsyncIterator[str]:
    """A member object is deleted only if its template or placement says so, and no write loses fields."""
    for problem in view.world.objections():
        yield problem


async def reconciles_do_not_fail(view: View) -> AsyncIterator[str]:
    """No reconcile ended in an unexpected exception."""
    if count := view.world.failed():
        yield f"{count:g} reconciles failed"


def _place_of(obj: Object) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


async def _reported(view: View) -> set[str]:
    """Return the uids of objects in members that Leftovers report for an administrator to decide."""
    found = await view.objects(view.world.user, LEFTOVERS)
    return {str(leftover["spec"].get("uid")) for leftover in found if leftover["spec"]["action"] == "Keep"}
