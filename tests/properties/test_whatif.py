"""Invariants of plans: of nothing comes nothing, and what is planned is where the world comes to rest."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.manifests import a_policy, an_override
from tests.support.whatif import DEPLOYMENT, PLUGINS, a_cluster, a_source, a_world, change, plan, settled

from federation.api.resources import (
    DEPLOYMENTS,
    FEDERATED_CLUSTERS,
    FEDERATED_OBJECTS,
    FEDERATED_TYPE_CONFIGS,
    OVERRIDE_POLICIES,
    PROPAGATION_POLICIES,
    Object,
)
from federation.planning import federation
from federation.planning.overrides.bindings import idle_controllers
from federation.scheduling.whatif.changes import as_down, with_label, with_taint
from federation.scheduling.whatif.copies import copies_of
from federation.scheduling.whatif.walk import Walk
from federation.scheduling.whatif.world import Change, Facts, World

NAMES = ("a", "b", "c", "d")
FOLLOWS = {"policyContentChanged": True, "clusterLabelsChanged": True, "clusterJoined": True}


@st.composite
def policies(draw: st.DrawFn) -> Object:
    weights = draw(st.dictionaries(st.sampled_from(NAMES), st.integers(0, 5), min_size=1))
    spec: dict[str, Any] = {"maxClusters": draw(st.one_of(st.none(), st.integers(1, 3)))}
    avoids = draw(st.booleans())
    spec["reschedulePolicy"] = {
        "replicaRescheduling": {"avoidDisruption": avoids},
        "rescheduleWhen": draw(st.sampled_from(({}, FOLLOWS))),
    }
    return a_policy(weights, schedulingMode=draw(st.sampled_from(("Divide", "Duplicate"))), **spec)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    clusters = [a_cluster(name) for name in draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1))]
    overrides = [an_override("a", "/spec/minReadySeconds", 3)] if draw(st.booleans()) else []
    sources = [a_source(f"web-{number}", draw(st.integers(0, 9))) for number in range(draw(st.integers(1, 3)))]
    return a_world(clusters, [draw(policies())], overrides, sources)


@st.composite
def changes(draw: st.DrawFn, world: World) -> Change:
    cluster = draw(st.sampled_from(world.list(FEDERATED_CLUSTERS)))
    match draw(st.integers(0, 6)):
        case 0:
            return change(world, PROPAGATION_POLICIES, draw(policies()))
        case 1:
            return change(world, FEDERATED_CLUSTERS, with_taint(cluster, "t", "", "NoExecute"))
        case 2:
            return change(world, FEDERATED_CLUSTERS, with_label(cluster, "l", "1"))
        case 3:
            return change(world, FEDERATED_CLUSTERS, as_down(cluster))
        case 4:
            return change(world, FEDERATED_CLUSTERS, a_cluster("e"))
        case 5:
            return change(world, OVERRIDE_POLICIES, an_override("b", "/spec/minReadySeconds", draw(st.integers(0, 9))))
        case _:
            wanted = a_source("web-0", draw(st.integers(0, 12)), 2)
            return Change(DEPLOYMENTS, "default", "web-0", a_source("web-0"), wanted)


def after(world: World, made: Change) -> World:
    """Return the world in which the change was made and every controller has looked at every object."""
    changed = world.with_changes([made])
    facts = Facts(changed, world, PLUGINS)
    objects = []
    for held in world.list(FEDERATED_OBJECTS):
        under_way = Walk(held, DEPLOYMENT, is_waiting=False)
        if made.resource == DEPLOYMENTS and made.after and held["spec"]["template"]["metadata"]["name"] == made.name:
            idle = idle_controllers(facts.bindings, made.after, held)
            under_way.apply(federation.plan_update(made.after, held, DEPLOYMENT, idle=idle))
        objects.append(settled(under_way.fed_object, facts))
    kinds = (FEDERATED_CLUSTERS, FEDERATED_TYPE_CONFIGS, PROPAGATION_POLICIES, OVERRIDE_POLICIES)
    return World({**{kind: changed.list(kind) for kind in kinds}, FEDERATED_OBJECTS: objects})


@settings(max_examples=60, deadline=None)
@given(worlds())
def test_of_nothing_comes_nothing(world: World) -> None:
    assert plan(world).looked_at == 0
    assert plan(world, is_everything=True).changed == []


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_what_is_planned_is_where_the_world_comes_to_rest(data: st.DataObject) -> None:
    world = data.draw(worlds())
    made = data.draw(changes(world))
    result = plan(world, made)
    later = after(world, made)
    told = {obj.federated_name: obj for obj in result.changed}
    for held in later.list(FEDERATED_OBJECTS):
        name = held["metadata"]["name"]
        copies = {cluster: copy.digest for cluster, copy in copies_of(held, DEPLOYMENT).items()}
        if name in told:
            assert copies == {row.cluster: row.after.digest for row in told[name].rows if row.after is not None}
        else:
            before = world.get(FEDERATED_OBJECTS, "default", name)
            assert copies == {cluster: copy.digest for cluster, copy in copies_of(before, DEPLOYMENT).items()}
    assert plan(later, is_everything=True).changed == []
    # Looking only at the objects that are concerned loses none.
    assert plan(world, made, is_everything=True).changed == result.changed


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_replicas_that_move_start_and_stop_add_up(data: st.DataObject) -> None:
    world = data.draw(worlds())
    result = plan(world, data.draw(changes(world)))
    counts = result.summary()
    deltas = [row.delta for obj in result.changed for row in obj.rows]
    assert sum(delta for delta in deltas if delta > 0) == counts["replicasMoved"] + counts["replicasStarted"]
    assert -sum(delta for delta in deltas if delta < 0) == counts["replicasMoved"] + counts["replicasStopped"]
    used = sum(room.before - room.after for room in result.rooms if room.resource == "cpu")
    assert used == 500 * (counts["replicasStarted"] - counts["replicasStopped"])
