"""Claims and volumes in a simulated member."""

from typing import Any

from tests.support.simulatedmember import Member, a_member, a_template, an_object

from federation.apimachinery.resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    Object,
)


def a_claim(size: str = "1Gi", **spec: Any) -> Object:
    resources = {"requests": {"storage": size}}
    return an_object(
        PERSISTENT_VOLUME_CLAIMS, "data", spec={"accessModes": ["ReadWriteOnce"], "resources": resources, **spec}
    )


def a_volume(name: str, size: str, policy: str = "Retain") -> Object:
    return an_object(
        PERSISTENT_VOLUMES,
        name,
        spec={
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
            "persistentVolumeReclaimPolicy": policy,
            "hostPath": {"path": "/tmp"},
        },
    )


async def phase(member: Member, name: str = "data") -> str:
    return str((await member.status(PERSISTENT_VOLUME_CLAIMS, name)).get("phase"))


async def volume_phases(member: Member) -> dict[str, str]:
    found = await member.all(PERSISTENT_VOLUMES)
    return {each["metadata"]["name"]: each["status"]["phase"] for each in found}


async def test_a_claim_gets_a_volume_of_its_own_which_goes_with_it() -> None:
    async with a_member() as member:
        created = await member.create(PERSISTENT_VOLUME_CLAIMS, a_claim())
        await member.until_equal(lambda: phase(member), "Bound")
        name = f"pvc-{created['metadata']['uid']}"
        claim = await member.get(PERSISTENT_VOLUME_CLAIMS, "data")
        assert claim["spec"]["volumeName"] == name
        assert claim["status"] == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
        await member.until_equal(lambda: volume_phases(member), {name: "Bound"})
        await member.delete(PERSISTENT_VOLUME_CLAIMS, "data")
        await member.until_equal(lambda: volume_phases(member), {})


async def test_an_existing_volume_that_fits_best_is_taken_and_retained() -> None:
    async with a_member() as member:
        for name, size in (("large", "10Gi"), ("small", "1Gi"), ("medium", "5Gi")):
            await member.create(PERSISTENT_VOLUMES, a_volume(name, size))
        await member.until_equal(
            lambda: volume_phases(member), {"large": "Available", "small": "Available", "medium": "Available"}
        )
        await member.create(PERSISTENT_VOLUME_CLAIMS, a_claim("2Gi", storageClassName=""))
        await member.until_equal(lambda: phase(member), "Bound")
        assert (await member.get(PERSISTENT_VOLUME_CLAIMS, "data"))["spec"]["volumeName"] == "medium"
        await member.delete(PERSISTENT_VOLUME_CLAIMS, "data")
        await member.until_equal(
            lambda: volume_phases(member), {"large": "Available", "small": "Available", "medium": "Released"}
        )


async def test_a_claim_without_a_class_of_its_own_waits_for_a_volume() -> None:
    async with a_member() as member:
        await member.create(PERSISTENT_VOLUME_CLAIMS, a_claim(storageClassName="", volumeName="later"))
        await member.pass_time(5)
        assert await phase(member) == "Pending"
        await member.create(PERSISTENT_VOLUMES, a_volume("later", "1Gi"))
        await member.merge(PERSISTENT_VOLUME_CLAIMS, "data", {"metadata": {"labels": {"look": "again"}}})
        await member.until_equal(lambda: phase(member), "Bound")


async def test_a_class_can_wait_for_the_first_consumer() -> None:
    async with a_member() as member:
        fields = {"provisioner": "x.example.com", "volumeBindingMode": "WaitForFirstConsumer"}
        await member.create(STORAGE_CLASSES, an_object(STORAGE_CLASSES, "local", **fields))
        await member.pass_time(1)
        await member.create(PERSISTENT_VOLUME_CLAIMS, a_claim(storageClassName="local"))
        await member.pass_time(5)
        assert await phase(member) == "Pending"
        spec = a_template()["spec"]
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        await member.create(PODS, an_object(PODS, "user", spec=spec))
        await member.until_equal(lambda: phase(member), "Bound")
