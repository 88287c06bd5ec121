"""Which writes of a workload wait for its followers or services, for how long, and what ends the wait."""

from typing import Any

import pytest
from tests.support.member_world import a_deployment
from tests.unit.delivery.host.hosting import Host, a_host

from federation.api import names
from federation.api.resources import FEDERATED_TYPE_CONFIGS
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS, SECRETS, Object
from federation.delivery.host.followerwait import FollowerReadiness
from federation.delivery.members.propagation import BRIEF_S
from federation.delivery.rules.facts import Hold
from federation.delivery.rules.names import EVENT_FOLLOWER_MISSING
from federation.runtime.controller import Key

WAIT_S = 60.0
EVERYWHERE = ("m1", "m2")
TEXT = "waits for ConfigMap app"


def a_config_map(name: str = "app", **fields: Any) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, **fields}


def with_config(*names_: str) -> Object:
    """Return a Deployment whose pods need the ConfigMaps."""
    obj = a_deployment("web")
    obj["spec"]["template"]["spec"]["volumes"] = [{"name": each, "configMap": {"name": each}} for each in names_]
    return obj


class Waits:
    """The readiness of followers on a host, asked about one Deployment."""

    def __init__(self, host: Host, key: Key, federated: Object) -> None:
        self.host, self.key, self.federated = host, key, federated
        self.readiness = FollowerReadiness(
            host.wired, host.member_objects, host.kept, wait_s=WAIT_S, enqueue=host.enqueued.append
        )

    def ask(self, *, desired: Object | None = None, live: Object | None = None, cluster: str = "m1") -> Any:
        wanted = desired or self.federated["spec"]["template"]
        return self.readiness.wait(self.key, self.federated, cluster, wanted, live)


async def waits_of(host: Host, *config_maps: str, annotations: dict[str, str] | None = None) -> Waits:
    return Waits(
        host, *await host.federate(with_config(*config_maps or ("app",)), *EVERYWHERE, annotations=annotations or {})
    )


async def test_a_write_waits_briefly_then_longer_and_then_goes_without_its_follower() -> None:
    async with a_host() as host:
        waits = await waits_of(host)
        await host.federate(a_config_map(), *EVERYWHERE)
        assert waits.ask() == Hold(TEXT, BRIEF_S, is_brief=True)
        await host.clock.advance(BRIEF_S / 2)
        assert waits.ask() == Hold(TEXT, BRIEF_S / 2, is_brief=True)
        await host.clock.advance(BRIEF_S / 2)
        assert waits.ask() == Hold(TEXT, WAIT_S - BRIEF_S, is_brief=False), "brief ends at its limit"
        await host.clock.advance(WAIT_S - BRIEF_S - 1)
        assert waits.ask() == Hold(TEXT, 1.0, is_brief=False)
        assert host.reported == []
        await host.clock.advance(1)
        assert waits.ask() is None
        text = 'cluster "m1": propagated without ConfigMap app, missing there after 60 s'
        assert host.reported == [(EVENT_FOLLOWER_MISSING, text)]


async def test_a_write_waits_for_no_follower_that_is_there_or_never_comes() -> None:
    async with a_host() as host:
        waits = await waits_of(host)
        assert waits.ask() is None, "nothing of that name is federated"
        await host.federate(a_config_map(), "m2")
        assert waits.ask() is None, "it is placed elsewhere only, and followers are not scheduled"
        assert waits.ask(cluster="m2") == Hold(TEXT, BRIEF_S, is_brief=True)
        key = host.deliver("m2", CONFIGMAPS, a_config_map())
        assert waits.ask(cluster="m2") is None
        host.records.record_deleting(key, is_under_way=True)
        assert waits.ask(cluster="m2") is not None, "it is about to go"


async def test_without_a_cache_of_the_member_the_published_status_counts() -> None:
    async with a_host() as host:
        waits = await waits_of(host)
        follower, _ = await host.federate(a_config_map(), *EVERYWHERE)
        for status, is_waiting in (("WaitingForRemoval", True), ("OK", False)):
            clusters = [{"cluster": "m1", "status": status}]
            await host.patch(follower, {"status": {"clusters": clusters}}, subresource="status")
            assert (waits.ask() is not None) is is_waiting, status
            assert waits.ask(cluster="m2") is not None


async def test_a_follower_that_will_be_placed_counts_if_followers_are_scheduled() -> None:
    async with a_host() as host:
        waits = await waits_of(host, annotations={names.ENABLE_FOLLOWER_SCHEDULING: "true"})
        await host.federate(a_config_map())
        assert waits.ask() == Hold(TEXT, BRIEF_S, is_brief=True)


async def test_a_follower_whose_kind_is_not_federated_delays_nothing() -> None:
    async with a_host() as host:
        waits = await waits_of(host)
        await host.federate(a_config_map(), *EVERYWHERE)
        assert waits.ask() is not None
        await host.client.delete(FEDERATED_TYPE_CONFIGS, "configmaps")
        await host.until(lambda: host.objects.types.for_group_kind("", "ConfigMap") is None)
        assert waits.ask() is None


async def test_an_object_that_exists_waits_for_new_dependencies_only() -> None:
    async with a_host() as host:
        waits = await waits_of(host, "app", "more")
        for name in ("app", "more"):
            await host.federate(a_config_map(name), *EVERYWHERE)
        assert waits.ask(live=with_config("app", "more")) is None
        assert waits.ask(live=with_config("app")) == Hold("waits for ConfigMap more", BRIEF_S, is_brief=True)
        assert waits.ask().message == "waits for ConfigMap app, ConfigMap more"


async def test_the_secrets_of_a_service_account_count_like_followers() -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "runner", "namespace": "default"}}
    account["imagePullSecrets"] = [{"name": "pull"}]
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pull", "namespace": "default"}}
    async with a_host() as host:
        leader = a_deployment("web")
        leader["spec"]["template"]["spec"]["serviceAccountName"] = "runner"
        waits = Waits(host, *await host.federate(leader, "m1"))
        for each in (account, secret):
            await host.federate(each, "m1")
        assert waits.ask().message == "waits for ServiceAccount runner, Secret pull"
        host.deliver("m1", SECRETS, secret)
        assert waits.ask().message == "waits for ServiceAccount runner"


async def test_each_cluster_and_each_follower_has_its_own_time() -> None:
    async with a_host() as host:
        waits = await waits_of(host, "app", "more")
        await host.federate(a_config_map("app"), *EVERYWHERE)
        waits.ask()
        await host.clock.advance(10)
        assert waits.ask(cluster="m2").left_s == BRIEF_S
        assert waits.ask().left_s == WAIT_S - 10, "another cluster does not begin it again"
        await host.federate(a_config_map("more"), *EVERYWHERE)
        assert waits.ask().left_s == BRIEF_S, "the follower that came last counts"
        host.deliver("m1", CONFIGMAPS, a_config_map("more"))
        assert waits.ask().left_s == WAIT_S - 10
        host.deliver("m1", CONFIGMAPS, a_config_map("app"))
        assert waits.ask() is None
        assert waits.ask(cluster="m2") is not None
        host.kept.forget_object(waits.key)
        await host.clock.advance(10)
        assert waits.ask(cluster="m2").left_s == BRIEF_S, "a workload of the same name starts its wait again"


@pytest.mark.parametrize("is_missing_elsewhere", [False, True])
async def test_the_time_ends_when_the_follower_is_there_and_begins_again_when_it_is_lost(
    is_missing_elsewhere: bool,
) -> None:
    async with a_host() as host:
        waits = await waits_of(host)
        await host.federate(a_config_map(), *EVERYWHERE)
        clusters = EVERYWHERE if is_missing_elsewhere else ("m1",)
        for cluster in clusters:
            waits.ask(cluster=cluster)
        key = host.deliver("m1", CONFIGMAPS, a_config_map())
        await host.clock.advance(10)
        assert waits.ask() is None
        host.records.record_deletion(key, "u1")
        assert waits.ask().left_s == BRIEF_S
        if is_missing_elsewhere:
            assert waits.ask(cluster="m2").left_s == WAIT_S - 10


async def test_what_one_cluster_has_ends_no_wait_of_another() -> None:
    async with a_host() as host:
        waits = await waits_of(host)
        await host.federate(a_config_map(), *EVERYWHERE)
        host.deliver("m2", CONFIGMAPS, a_config_map())
        waits.ask()
        await host.clock.advance(10)
        assert waits.ask(cluster="m2") is None
        assert waits.ask().left_s == WAIT_S - 10


async def test_a_follower_that_appears_wakes_who_waits_once() -> None:
    async with a_host() as host:
        waits = await waits_of(host)
        _, follower = await host.federate(a_config_map(), *EVERYWHERE)
        _, other = await host.federate(a_config_map("other"), *EVERYWHERE)
        appeared = host.deliver("m2", CONFIGMAPS, a_config_map())
        for notify in (
            lambda: waits.readiness.on_federated_changed(follower),
            lambda: waits.readiness.on_member_object_added(appeared),
        ):
            notify()
            assert host.enqueued == [], "nobody waits"
            waits.ask()
            waits.readiness.on_federated_changed(other)
            assert host.enqueued == []
            notify()
            notify()
            assert host.enqueued == [waits.key]
            host.enqueued.clear()


async def test_only_a_creation_waits_for_the_pods_of_a_service() -> None:
    hook = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "guard"},
        "webhooks": [{"name": "a.example.com", "clientConfig": {"service": {"namespace": "default", "name": "guard"}}}],
    }
    async with a_host() as host:
        waits = await waits_of(host)
        wait = waits.ask(desired=hook)
        assert wait == Hold("waits for ready pods of Service default/guard", 2.0, is_brief=False)
        assert waits.ask(desired=hook, live=hook) is None
        await host.clock.advance(4.5)
        assert waits.ask(desired=hook).left_s == 0.5
        host.kept.forget_object(waits.key)
        assert waits.ask(desired=hook).left_s == 2.0


async def test_a_deleted_workload_waits_until_its_followers_have_recorded_that_they_stay() -> None:
    async with a_host() as host:
        more = {"finalizers": ["example.com/hold"]}
        follow = {names.ENABLE_FOLLOWER_SCHEDULING: "true", names.ORPHAN: "all"}
        key, federated = await host.federate(with_config("app"), "m1", annotations=follow, **more)
        waits = Waits(host, key, federated)
        follower, _ = await host.federate(a_config_map(), "m1")
        assert waits.readiness.wait_before_release(key, federated) is None, "it is not deleted"
        deleted = {**federated, "metadata": {**federated["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
        assert waits.readiness.wait_before_release(key, deleted) == WAIT_S
        await host.clock.advance(20)
        assert waits.readiness.wait_before_release(key, deleted) == WAIT_S - 20
        waits.readiness.on_federated_changed(
            {"metadata": {"namespace": "default"}, "spec": {"template": a_config_map()}}
        )
        assert host.enqueued == [key]
        kept = f'[{{"group": "{DEPLOYMENTS.group}", "kind": "Deployment", "name": "web", "clusters": ["m1"]}}]'
        await host.patch(follower, {"metadata": {"annotations": {names.KEPT_FOR: kept}}})
        assert waits.readiness.wait_before_release(key, deleted) is None
        await host.patch(follower, {"metadata": {"annotations": {names.KEPT_FOR: None}}})
        await host.clock.advance(WAIT_S - 20.5)
        assert waits.readiness.wait_before_release(key, deleted) == 0.5
        await host.clock.advance(0.5)
        assert waits.readiness.wait_before_release(key, deleted) is None, "it waits no longer than that"
        host.kept.forget_object(key, is_deleting=True)
        assert waits.readiness.wait_before_release(key, deleted) is None, "it has waited"
        host.kept.forget_object(key)
        assert waits.readiness.wait_before_release(key, deleted) == WAIT_S
