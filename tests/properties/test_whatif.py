"""Invariants of plans: no change has no effect, and a plan is the state to which the controllers converge."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.support.generated import examples
from tests.support.manifests import a_policy, an_override
from tests.support.whatif import DEPLOYMENT, PLUGINS, SPREADS, a_cluster, a_source, a_world, change, plan, settled

from federation.api.resources import (
    FEDERATED_CLUSTERS,
    FEDERATED_OBJECTS,
    FEDERATED_TYPE_CONFIGS,
    OVERRIDE_POLICIES,
    PROPAGATION_POLICIES,
)
from federation.apimachinery.resources import DEPLOYMENTS, Object
from federation.planning.federatedobject import builder
from federation.planning.overrides.policymatching import idle_controllers
from federation.scheduling.framework.testing import NOW
from federation.scheduling.whatif.changes import as_down, with_label, with_taint
from federation.scheduling.whatif.pipelinerun import PipelineRun
from federation.scheduling.whatif.rendered import member_objects_of
from federation.scheduling.whatif.state import CompiledState, ObjectChange, ObjectSet

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
def worlds(draw: st.DrawFn) -> ObjectSet:
    clusters = [a_cluster(name) for name in draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1))]
    overrides = [an_override("a", "/spec/minReadySeconds", 3)] if draw(st.booleans()) else []
    sources = [a_source(f"web-{number}", draw(st.integers(0, 9))) for number in range(draw(st.integers(1, 3)))]
    return a_world(clusters, [draw(policies())], overrides, sources)


@st.composite
def changes(draw: st.DrawFn, world: ObjectSet) -> ObjectChange:
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
            return ObjectChange(DEPLOYMENTS, "default", "web-0", a_source("web-0"), wanted)


def after(world: ObjectSet, made: ObjectChange) -> ObjectSet:
    """Return the objects after the change, once every controller has reconciled every object."""
    changed = world.with_changes([made])
    state = CompiledState(changed, world, PLUGINS, SPREADS, NOW)
    objects = []
    for held in world.list(FEDERATED_OBJECTS):
        under_way = PipelineRun(held, DEPLOYMENT, is_unschedulable=False)
        if made.resource == DEPLOYMENTS and made.after and held["spec"]["template"]["metadata"]["name"] == made.name:
            idle = idle_controllers(state.bindings, made.after, held)
            under_way.apply(builder.plan_update(made.after, held, DEPLOYMENT, idle=idle))
        objects.append(settled(under_way.federated, state))
    kinds = (FEDERATED_CLUSTERS, FEDERATED_TYPE_CONFIGS, PROPAGATION_POLICIES, OVERRIDE_POLICIES)
    return ObjectSet({**{kind: changed.list(kind) for kind in kinds}, FEDERATED_OBJECTS: objects})


@examples(60)
@given(worlds())
def test_of_nothing_comes_nothing(world: ObjectSet) -> None:
    assert plan(world).examined == 0
    assert plan(world, is_everything=True).changed == []


@examples(120)
@given(st.data())
def test_the_plan_is_the_state_to_which_the_controllers_converge(data: st.DataObject) -> None:
    world = data.draw(worlds())
    made = data.draw(changes(world))
    result = plan(world, made)
    later = after(world, made)
    changed = {obj.federated_name: obj for obj in result.changed}
    for held in later.list(FEDERATED_OBJECTS):
        name = held["metadata"]["name"]
        copies = {cluster: copy.digest for cluster, copy in member_objects_of(held, DEPLOYMENT).items()}
        if name in changed:
            assert copies == {row.cluster: row.after.digest for row in changed[name].rows if row.after is not None}
        else:
            before = world.get(FEDERATED_OBJECTS, "default", name)
            assert copies == {cluster: copy.digest for cluster, copy in member_objects_of(before, DEPLOYMENT).items()}
    assert plan(later, is_everything=True).changed == []
    # Computing only the affected objects misses none.
    assert plan(world, made, is_everything=True).changed == result.changed


@examples(60)
@given(st.data())
def test_replicas_that_move_start_and_stop_add_up(data: st.DataObject) -> None:
    world = data.draw(worlds())
    result = plan(world, data.draw(changes(world)))
    counts = result.summary()
    deltas = [row.delta for obj in result.changed for row in obj.rows]
    assert sum(delta for delta in deltas if delta > 0) == counts["replicasMoved"] + counts["replicasStarted"]
    assert -sum(delta for delta in deltas if delta < 0) == counts["replicasMoved"] + counts["replicasStopped"]
    used = sum(each.before - each.after for each in result.cluster_resources if each.resource == "cpu")
    assert used == 500 * (counts["replicasStarted"] - counts["replicasStopped"])
