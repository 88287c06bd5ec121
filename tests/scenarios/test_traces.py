"""One trace follows an object to its members, as a collector of traces receives it."""

from tests.support.manifests import a_deployment, a_policy
from tests.support.otlp import Collector, collector
from tests.support.world import World, a_world

from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS
from federation.tracing.traces import Traces


def follow(world: World, received: Collector, *, leads: bool = True) -> Traces:
    traces = Traces(received.url, world.clock, "1.0")
    traces.follow(world.plane.objects, world.plane.informers, lambda: leads)
    return traces


async def test_a_trace_has_every_stage_and_every_cluster() -> None:
    with collector() as received:
        async with a_world(members=("east", "west")) as world:
            traces, follower = follow(world, received), follow(world, received, leads=False)
            await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "west": 1}))
            created = await world.create(DEPLOYMENTS, a_deployment("web", replicas=4))
            await world.until_available("web", 4)
            await world.settle()
            await world.scale("web", 6)
            await world.until_available("web", 6)
            await world.settle()
            await traces.close()
            await follower.close()
    uid = created["metadata"]["uid"]
    roots = [span for span in received.named("deliver") if span.attributes["federation.uid"] == uid]
    assert [span.attributes["federation.generation"] for span in roots] == [1, 2]
    assert {span.attributes["federation.outcome"] for span in roots} == {"ready"}
    assert roots[0].trace != roots[1].trace
    for root in roots:
        assert not root.parent
        children = {span.name: span for span in received.spans if span.trace == root.trace and span is not root}
        assert sorted(children) == ["apply east", "apply west", "place", "ready"]
        assert {span.parent for span in children.values()} == {root.id}
        times = [root.start_ns, children["place"].end_ns, children["apply west"].end_ns, children["ready"].end_ns]
        assert times == sorted(times)
        assert root.end_ns == times[-1]
