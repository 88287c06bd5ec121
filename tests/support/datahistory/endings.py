"""What must hold when all faults have ended and what waited was approved: everything runs, is gone, or says why not."""

from collections.abc import Iterable, Iterator

from federation.api import names
from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, FEDERATED_OBJECTS, PROPAGATION_POLICIES
from federation.apimachinery import conditions
from federation.apimachinery.resources import CRDS, Object
from federation.planning.federatedobject.placements import effective_placement
from tests.support.datahistory.apps import APPS, DEFINITION, key_of, missing, place_of
from tests.support.datahistory.judge import Judge, cluster_of, federated_of, on_host, page, stored
from tests.support.world import World

_TO_DECIDE = frozenset({"AlreadyExists", "ManagedLabelFalse", "Kept", "EndUnknown", "Finished", "OK"})
"""States of a copy that wait for a user's word, or for nothing."""
_DEFINITION = f"{DEFINITION}-customresourcedefinitions.apiextensions.k8s.io"


def endings(world: World, judge: Judge) -> list[str]:
    """Return what does not hold."""
    found = [*_lingering(world), *world.objections()]
    if count := world.failed():
        found.append(f"{count:g} reconciles failed")
    for app, words in judge.words.items():
        if words.body:
            found += _unfinished(world, judge, app)
        elif on_host(world, place_of(APPS[app])) is not None:
            found.append(f"{app} was deleted and is still on the host")
    return [f"end: {line}" for line in found]


def _lingering(world: World) -> Iterator[str]:
    """Return what waits for its deletion."""
    prefixes = [f"/core.kubeadmiral.io/{kind.plural}/" for kind in (FEDERATED_OBJECTS, CLUSTER_FEDERATED_OBJECTS)]
    for prefix in (*prefixes, "/core.kubeadmiral.io/federatedclusters/"):
        for key, obj in page(world.store, prefix):
            if obj["metadata"].get("deletionTimestamp"):
                yield f"{key} waits for its deletion: {obj['metadata'].get('finalizers')}"


def _unfinished(world: World, judge: Judge, app: str) -> Iterator[str]:
    """Return what of an application neither is as wished nor says why."""
    federated = federated_of(world, app)
    if federated is None:
        yield f"{app} has no federated object"
        return
    status = federated.get("status") or {}
    scheduled = conditions.find(status.get("conditions"), names.SCHEDULED) or {}
    placed = effective_placement(federated)
    if scheduled.get("status") == "False":
        if not (scheduled.get("reason") and scheduled.get("message")):
            yield f"{app} is not scheduled, and nothing says why: {scheduled}"
        return
    if not placed and not scheduled.get("message"):
        yield f"{app} is scheduled to no cluster, and nothing says why: {scheduled}"
    states = {each["cluster"]: each for each in status.get("clusters") or ()}
    for cluster in placed:
        state = states.get(cluster, {}).get("status")
        is_there = cluster_of(world, cluster) is not None
        is_blocked = state == "WaitingForReplicas" and _undecided(states.values())
        is_blocked |= state == "KindNotServed" and _keeps_definition(world, cluster)
        if is_there and state not in _TO_DECIDE and not is_blocked:
            yield f"{app} is placed in {cluster}, and its copy there stays {state}"
    yield from _lost_in_members(world, judge, app, {name for name, each in states.items() if each["status"] == "OK"})
    yield from _wrong_sums(world, app, federated, {name for name, each in states.items() if each["status"] == "OK"})


def _keeps_definition(world: World, cluster: str) -> bool:
    """Return whether a user must act first: the cluster has a definition of its own, or does not take that of the host.

    After a restore, the host can have a definition without a version that the cluster stores.
    """
    federated = on_host(world, f"/core.kubeadmiral.io/{CLUSTER_FEDERATED_OBJECTS.plural}/{_DEFINITION}")
    states = ((federated or {}).get("status") or {}).get("clusters") or ()
    if any(each["cluster"] == cluster and each["status"] == "UpdateFailed" for each in states):
        return True
    held = stored(world.members[cluster].store, f"/{CRDS.group}/{CRDS.plural}/{DEFINITION}")
    return held is not None and names.MANAGED_LABEL not in (held["metadata"].get("labels") or {})


def _undecided(states: Iterable[Object]) -> bool:
    """Return whether a copy waits for the user to take over what is there, so that others wait for its replicas."""
    return any(each["status"] in ("AlreadyExists", "ManagedLabelFalse") for each in states)


def _lost_in_members(world: World, judge: Judge, app: str, delivered: set[str]) -> Iterator[str]:
    """Return fields of the user that a delivered copy of a kind without replicas lacks."""
    if app not in ("conf", "pass", "widget"):
        return
    wanted = {part: judge.words[app].body[part] for part in ("data", "spec") if part in judge.words[app].body}
    for name in delivered & world.members.keys():
        live = stored(world.members[name].store, place_of(APPS[app]))
        for path in missing(wanted, live):
            yield f"{app}{path} was written by the user and is not in {name}"


def _wrong_sums(world: World, app: str, federated: Object, delivered: set[str]) -> Iterator[str]:
    """Return a sum of divided replicas that is not what the user wants."""
    policy = on_host(world, key_of(PROPAGATION_POLICIES, app))
    if policy is None or policy["spec"]["schedulingMode"] != "Divide" or not APPS[app].has_replicas:
        return
    placed = effective_placement(federated)
    if placed - delivered:
        return
    source = on_host(world, place_of(APPS[app])) or {}
    live = {name: stored(member.store, place_of(APPS[app])) for name, member in world.members.items() if name in placed}
    counts = {name: each["spec"]["replicas"] for name, each in live.items() if each is not None}
    wanted = source.get("spec", {}).get("replicas", 0)
    message = str((conditions.find(federated["status"].get("conditions"), names.SCHEDULED) or {}).get("message"))
    if sum(counts.values()) > wanted or (sum(counts.values()) < wanted and "no place" not in message):
        yield f"{app} wants {wanted} replicas and has {counts}: {message}"
