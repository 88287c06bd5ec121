"""EndpointSlices and load balancer addresses in a simulated member."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.support.simulatedmember import LABELS, Member, a_member, a_template, a_workload, an_object

from federation.apimachinery.resources import DEPLOYMENTS, ENDPOINT_SLICES, INGRESSES, PODS, SERVICES, Object
from federation.simulator.controllers.endpointslices import plan_slices
from federation.simulator.controllers.loadbalancers import AddressPool
from federation.simulator.options import NodeShape

NODE = NodeShape("node-1", cpu="64", pods=500, labels={"topology.kubernetes.io/zone": "a"})


def a_service(**spec: Any) -> Object:
    ports = [{"name": "http", "port": 80, "targetPort": 8080}]
    return an_object(
        SERVICES, "web", metadata={"labels": {"team": "x"}}, spec={"selector": LABELS, "ports": ports, **spec}
    )


def a_deployment(replicas: int) -> Object:
    return a_workload(DEPLOYMENTS, template=a_template(cpu="10m"), replicas=replicas)


async def ready_addresses(member: Member) -> list[str]:
    return sorted(
        address
        for each in await member.all(ENDPOINT_SLICES)
        for endpoint in each.get("endpoints") or ()
        if endpoint["conditions"]["ready"]
        for address in endpoint["addresses"]
    )


async def pod_addresses(member: Member) -> list[str]:
    pods = await member.all(PODS)
    return sorted(pod["status"]["podIP"] for pod in pods if "deletionTimestamp" not in pod["metadata"])


async def test_slices_follow_the_ready_pods() -> None:
    async with a_member([NODE]) as member:
        await member.create(SERVICES, a_service())
        await member.create(DEPLOYMENTS, a_deployment(2))
        await member.until_equal(lambda: _count(member), 2)
        assert await ready_addresses(member) == await pod_addresses(member)
        (slice_,) = await member.all(ENDPOINT_SLICES)
        pod = (await member.all(PODS))[0]
        endpoint = next(e for e in slice_["endpoints"] if e["targetRef"]["name"] == pod["metadata"]["name"])
        assert endpoint == {
            "addresses": [pod["status"]["podIP"]],
            "conditions": {"ready": True, "serving": True, "terminating": False},
            "nodeName": "node-1",
            "targetRef": {"kind": "Pod", "namespace": "default", **_identity(pod)},
            "zone": "a",
        }
        assert slice_["ports"] == [{"name": "http", "protocol": "TCP", "port": 8080}]
        assert slice_["metadata"]["labels"] == {
            "team": "x",
            "kubernetes.io/service-name": "web",
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        }
        await member.merge(DEPLOYMENTS, "web", {"spec": {"replicas": 0}})
        await member.until_equal(lambda: _count(member), 0)
        await member.delete(SERVICES, "web")
        await member.until_equal(lambda: member.names(ENDPOINT_SLICES), [])


async def _count(member: Member) -> int:
    return len(await ready_addresses(member))


def _identity(pod: Object) -> Object:
    return {key: pod["metadata"][key] for key in ("name", "uid")}


async def test_a_service_without_pods_has_an_empty_slice_and_one_without_selector_has_none() -> None:
    async with a_member() as member:
        await member.create(SERVICES, a_service(clusterIP="None"))
        await member.until(lambda: member.names(ENDPOINT_SLICES))
        (slice_,) = await member.all(ENDPOINT_SLICES)
        assert not slice_.get("endpoints")
        assert slice_["metadata"]["labels"]["service.kubernetes.io/headless"] == ""
        await member.merge(SERVICES, "web", {"spec": {"selector": None}})
        await member.until_equal(lambda: member.names(ENDPOINT_SLICES), [])


async def test_more_than_a_hundred_endpoints_need_two_slices() -> None:
    async with a_member([NODE]) as member:
        await member.create(SERVICES, a_service())
        await member.create(DEPLOYMENTS, a_deployment(120))
        await member.until_equal(lambda: _count(member), 120)
        sizes = sorted(len(each["endpoints"]) for each in await member.all(ENDPOINT_SLICES))
        assert sizes == [20, 100]
        await member.pass_time(2)
        before = await member.revision()
        await member.pass_time(30)
        assert await member.revision() == before


@given(
    st.lists(st.sets(st.integers(0, 250), max_size=60), max_size=4),
    st.sets(st.integers(0, 250)),
)
def test_planned_slices_hold_each_endpoint_once_and_move_none(live: list[set[int]], wanted: set[int]) -> None:
    seen: set[int] = set()
    slices: list[Object] = []
    for number, uids in enumerate(live):
        slices.append(
            {"metadata": {"name": str(number)}, "ports": [], "endpoints": [_endpoint(u) for u in uids - seen]}
        )
        seen |= uids
    planned = plan_slices([([], {str(uid): _endpoint(uid) for uid in wanted})], slices)
    contents = [[int(e["targetRef"]["uid"]) for e in new["endpoints"]] for new, _ in planned if new is not None]
    assert sorted(uid for content in contents for uid in content) == sorted(wanted)
    assert all(len(content) <= 100 for content in contents)
    for new, old in planned:
        if new is not None and old is not None:
            before = [e["targetRef"]["uid"] for e in old["endpoints"]]
            assert {str(uid) for uid in wanted} & set(before) <= {e["targetRef"]["uid"] for e in new["endpoints"]}


def _endpoint(uid: int) -> Object:
    return {"addresses": [str(uid)], "targetRef": {"uid": str(uid)}}


async def test_load_balancers_and_ingresses_get_an_address() -> None:
    async with a_member() as member:
        await member.create(SERVICES, a_service(type="LoadBalancer"))
        backend = {"service": {"name": "web", "port": {"number": 80}}}
        await member.create(INGRESSES, an_object(INGRESSES, "web", spec={"defaultBackend": backend}))

        async def addresses() -> list[Any]:
            found = [await member.status(SERVICES, "web"), await member.status(INGRESSES, "web")]
            return [each for status in found for each in status["loadBalancer"].get("ingress", ())]

        async def has_both() -> bool:
            return len(await addresses()) == 2

        await member.until(has_both)
        service, ingress = await addresses()
        assert service["ipMode"] == "VIP"
        assert service["ip"] != ingress["ip"]
        assert service["ip"].startswith("100.")
        await member.merge(SERVICES, "web", {"spec": {"type": "ClusterIP"}})

        async def is_released() -> bool:
            return await addresses() == [ingress]

        await member.until(is_released)


def test_released_addresses_are_used_again() -> None:
    pool = AddressPool(100 << 24, 8)
    first, second = pool.next(), pool.next()
    assert (first, second) == ("100.0.0.1", "100.0.0.2")
    pool.release(first)
    assert pool.next() == first
    assert pool.next("100.0.0.5") == "100.0.0.5"
    assert [pool.next() for _ in range(3)] == ["100.0.0.3", "100.0.0.4", "100.0.0.6"]
