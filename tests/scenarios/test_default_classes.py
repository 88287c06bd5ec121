"""What the host's admission fills in stays on the host: each cluster has classes, limits and accounts of its own."""

from typing import Any

from tests.support.manifests import a_policy
from tests.support.world import World, a_world

from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import (
    INGRESSES,
    LIMIT_RANGES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SERVICE_ACCOUNTS,
    STORAGE_CLASSES,
    Object,
    Resource,
)
from federation.client.client import Client, PatchType
from federation.client.local import LocalClient

INGRESS_CLASSES = Resource("networking.k8s.io", "v1", "IngressClass", "ingressclasses", namespaced=False)


async def _set_defaults(admin: Client, name: str) -> None:
    storage = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}, "name": name}
    await admin.create(STORAGE_CLASSES, {"metadata": storage, "provisioner": "example.com/disk"})
    ingress = {"annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}, "name": name}
    await admin.create(INGRESS_CLASSES, {"metadata": ingress, "spec": {"controller": "example.com/ingress"}})


def _claim(name: str, **spec: Any) -> Object:
    requests = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": requests, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def _ingress(name: str, **spec: Any) -> Object:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    spec = {"defaultBackend": backend, **spec}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": name}, "spec": spec}


async def _write(world: World, resource: Resource, obj: Object) -> None:
    await world.user.patch(
        resource,
        obj["metadata"]["name"],
        obj,
        patch_type=PatchType.APPLY,
        namespace="default",
        field_manager="kubectl",
    )


async def test_an_object_without_a_class_gets_that_of_each_cluster() -> None:
    async with a_world(members=("east", "north")) as world:
        await _set_defaults(world.user, "of-host")
        for name, member in world.members.items():
            await _set_defaults(member.admin, f"of-{name}")
        selectors = [
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim"},
            {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress"},
        ]
        policy = a_policy({"east": 1, "north": 1}, resourceSelectors=selectors, schedulingMode="Duplicate")
        await world.create(PROPAGATION_POLICIES, policy)
        await _write(world, PERSISTENT_VOLUME_CLAIMS, _claim("plain"))
        await _write(world, PERSISTENT_VOLUME_CLAIMS, _claim("chosen", storageClassName="of-host"))
        await _write(world, INGRESSES, _ingress("plain"))
        await _write(world, INGRESSES, _ingress("chosen", ingressClassName="of-host"))

        async def classes() -> Any:
            found = {}
            for name, member in world.members.items():
                for resource, field in (
                    (PERSISTENT_VOLUME_CLAIMS, "storageClassName"),
                    (INGRESSES, "ingressClassName"),
                ):
                    for each in ("plain", "chosen"):
                        live = await member.find(resource, each)
                        found[name, field, each] = live and live["spec"].get(field)
            return found

        expected = {
            (name, field, each): "of-host" if each == "chosen" else f"of-{name}"
            for name in world.members
            for field in ("storageClassName", "ingressClassName")
            for each in ("plain", "chosen")
        }
        await world.until_equal(classes, expected)
        # A change of the template leaves the member's class alone.
        await world.merge(PERSISTENT_VOLUME_CLAIMS, "plain", {"metadata": {"labels": {"team": "a"}}})
        await world.merge(INGRESSES, "plain", {"metadata": {"labels": {"team": "a"}}})
        await world.settle()
        assert await classes() == expected
        live = await world.members["east"].find(INGRESSES, "plain")
        assert live is not None
        assert live["metadata"]["labels"]["team"] == "a"
        source = await world.find(PERSISTENT_VOLUME_CLAIMS, "plain")
        assert source is not None
        assert source["spec"]["storageClassName"] == "of-host"


async def _set_limits(admin: Client) -> None:
    limits = [{"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "500m"}}]
    metadata = {"name": "limits", "namespace": "default"}
    limit_range = {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": limits}}
    await admin.create(LIMIT_RANGES, limit_range)
    secrets = {"imagePullSecrets": [{"name": "of-host"}]}
    await admin.patch(SERVICE_ACCOUNTS, "default", secrets, namespace="default")


def _pod(name: str, **resources: Any) -> Object:
    container = {"name": "main", "image": "nginx", **({"resources": resources} if resources else {})}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


async def test_limits_and_pull_secrets_of_the_host_stay_there() -> None:
    async with a_world(members=("east", "north")) as world:
        await _set_limits(world.user)
        kinds = [{"apiVersion": "v1", "kind": "Pod"}]
        policy = a_policy({"east": 1, "north": 1}, resourceSelectors=kinds, schedulingMode="Duplicate")
        await world.create(PROPAGATION_POLICIES, policy)
        asked = {"limits": {"memory": "64Mi"}, "requests": {"memory": "32Mi"}}
        # The host admits what a user writes, as it admits nothing that its own controllers write.
        alice = LocalClient(world.registry, requester=lambda: {"username": "alice"})
        for name, resources in (("plain", {}), ("limited", asked)):
            await alice.patch(
                PODS,
                f"applied-{name}",
                _pod(f"applied-{name}", **resources),
                patch_type=PatchType.APPLY,
                namespace="default",
                field_manager="kubectl",
            )
            await alice.create(PODS, _pod(f"posted-{name}", **resources))
        source = await alice.get(PODS, "applied-plain", "default")
        assert source["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "500m"}
        assert source["spec"]["imagePullSecrets"] == [{"name": "of-host"}]

        async def seen() -> Any:
            found = {}
            for name, member in world.members.items():
                for pod in ("applied-plain", "applied-limited", "posted-plain", "posted-limited"):
                    live = await member.find(PODS, pod)
                    if live is not None:
                        spec, annotations = live["spec"], live["metadata"].get("annotations") or {}
                        own = (spec.get("imagePullSecrets"), annotations.get("kubernetes.io/limit-ranger"))
                        found[name, pod] = (spec["containers"][0].get("resources") or {}, *own)
            return found

        expected = {
            (name, f"{verb}-{pod}"): (asked if pod == "limited" else {}, None, None)
            for name in world.members
            for verb in ("applied", "posted")
            for pod in ("plain", "limited")
        }
        await world.until_equal(seen, expected)
        await world.merge(PODS, "applied-plain", {"metadata": {"labels": {"team": "a"}}})
        await world.settle()
        assert await seen() == expected
