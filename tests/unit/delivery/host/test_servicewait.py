"""Which webhook configurations and APIServices wait for the pods of their services, where and for how long."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.support.member_world import a_deployment
from tests.unit.delivery.host.hosting import Host, a_host

from federation.api.resources import FEDERATED_TYPE_CONFIGS
from federation.apimachinery.resources import DEPLOYMENTS, Object
from federation.delivery.host.servicewait import ServiceReadiness
from federation.delivery.rules.names import EVENT_SERVICE_NOT_READY
from federation.runtime.controller import Key

KEY = Key("", "guard-validatingwebhookconfigurations")
FEDERATED: Object = {"metadata": {"name": KEY.name}}
WAITS = "waits for ready pods of Service default/{}"


def a_hook(*services: str) -> Object:
    hooks = [
        {"name": f"{name}.example.com", "clientConfig": {"service": {"namespace": "default", "name": name}}}
        for name in services
    ]
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "guard"},
        "webhooks": hooks,
    }


def a_service(name: str = "guard") -> Object:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": {"app": name}}}


class Waits:
    def __init__(self, host: Host) -> None:
        self.host = host
        self.readiness = ServiceReadiness(host.wired, host.member_objects, host.kept)

    def ask(self, *services: str, cluster: str = "m1") -> tuple[str, float] | None:
        return self.readiness.wait(KEY, FEDERATED, cluster, a_hook(*services or ("guard",)))

    def has_pods(self, name: str = "guard", **status: Any) -> None:
        ready = {"replicas": 3, "readyReplicas": 1, "observedGeneration": 1, **status}
        self.host.deliver("m1", DEPLOYMENTS, {**a_deployment(name), "status": ready})


@asynccontextmanager
async def waits() -> AsyncIterator[Waits]:
    async with a_host() as host:
        yield Waits(host)


async def test_a_service_that_nobody_delivers_is_waited_for_five_seconds_and_nobody_is_warned() -> None:
    async with waits() as each:
        assert each.ask() == (WAITS.format("guard"), 2.0)
        await each.host.clock.advance(4.5)
        assert each.ask() == (WAITS.format("guard"), 0.5)
        await each.host.clock.advance(0.5)
        assert each.ask() is None
        assert each.host.reported == []
        assert each.readiness._since_s == {}, "nothing is remembered"


async def test_a_service_that_stays_elsewhere_is_not_waited_for() -> None:
    async with waits() as each:
        await each.host.federate(a_service(), "m2")
        assert each.ask() is None
        assert each.ask(cluster="m2") is not None


async def test_pods_that_are_delivered_may_take_five_minutes() -> None:
    async with waits() as each:
        await each.host.federate(a_service(), "m1")
        await each.host.federate(a_deployment("guard"), "m1")
        assert each.ask() == (WAITS.format("guard"), 2.0)
        each.has_pods(readyReplicas=0)
        await each.host.clock.advance(299)
        assert each.ask() == (WAITS.format("guard"), 1.0)
        assert each.host.reported == []
        await each.host.clock.advance(1)
        assert each.ask() is None
        text = 'cluster "m1": propagated although no pod of Service default/guard is ready after 300 s'
        assert each.host.reported == [(EVENT_SERVICE_NOT_READY, text)]


async def test_a_ready_pod_of_any_workload_behind_the_service_is_enough() -> None:
    async with waits() as each:
        await each.host.federate(a_service(), "m1")
        await each.host.federate(a_deployment("guard"), "m1")
        second = a_deployment("second")
        second["spec"]["template"]["metadata"]["labels"] = {"app": "guard"}
        await each.host.federate(second, "m1")
        assert each.ask() is not None
        each.has_pods("second")
        assert each.ask() is None


async def test_workloads_of_other_services_and_clusters_do_not_count() -> None:
    async with waits() as each:
        await each.host.federate(a_service(), "m1")
        await each.host.federate(a_deployment("other"), "m1")
        await each.host.federate(a_deployment("guard"), "m2")
        each.has_pods("other")
        assert each.ask() is not None
        await each.host.clock.advance(5)
        assert each.ask() is None, "no workload behind it comes here"
        assert each.host.reported == []


async def test_all_services_are_waited_for_with_one_start_time_for_each_cluster() -> None:
    async with waits() as each:
        for name in ("guard", "late"):
            await each.host.federate(a_service(name), "m1", "m2")
            await each.host.federate(a_deployment(name), "m1", "m2")
        assert each.ask("guard", "late") == (WAITS.format("guard"), 2.0)
        each.has_pods()
        await each.host.clock.advance(299)
        assert each.ask("guard", "late") == (WAITS.format("late"), 1.0)
        assert each.ask("guard", "late", cluster="m2") == (WAITS.format("guard"), 2.0), "m2 begins now"
        assert each.ask("guard", "late") == (WAITS.format("late"), 1.0), "m1 goes on"
        each.host.kept.forget_object(KEY)
        assert each.ask("guard", "late") == (WAITS.format("late"), 2.0)


async def test_a_workload_whose_kind_is_not_federated_any_more_does_not_count() -> None:
    async with waits() as each:
        await each.host.federate(a_service(), "m1")
        await each.host.federate(a_deployment("guard"), "m1")
        each.ask()
        await each.host.clock.advance(5)
        assert each.ask() is not None
        await each.host.client.delete(FEDERATED_TYPE_CONFIGS, "deployments.apps")
        await each.host.until(lambda: each.host.objects.types.for_group_kind("apps", "Deployment") is None)
        assert each.ask() is None
