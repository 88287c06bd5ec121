"""Default classes are a cluster's own: those that the host's admission fills in stay on the host."""

from typing import Any

from tests.support.manifests import a_policy
from tests.support.world import World, a_world

from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import INGRESSES, PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES, Object, Resource
from federation.client.client import Client, PatchType

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
