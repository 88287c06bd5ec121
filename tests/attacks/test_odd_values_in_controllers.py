"""Odd values that users and members store stop no controller: it reports them and goes on with all other objects.

One world with real controllers on a virtual clock gets a sample of odd values in every kind that controllers read, in
annotations, and in what members report. No reconcile fails unexpectedly, and a Deployment is still delivered.
"""

import contextlib
import os
import random
from typing import Any

import pytest
import structlog
from tests.support.hostile.oddvalues import variants
from tests.support.manifests import a_deployment, a_policy, an_override
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, OVERRIDE_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery.errors import ApiError, NotFound
from federation.apimachinery.resources import DEPLOYMENTS, NAMESPACES, Object, Resource
from federation.client.client import PatchType
from federation.client.local import LocalClient

VARIANTS_MAX = int(os.environ.get("ODD_VALUES", "20"))
NIGHTLY_VARIANTS = 60
_NOT_JSON = ("x" * 3000, '"', "é\u2028", "9" * 400 + "e", "")
_OTHER_JSON = ("null", "[]", "{}", "[null]", "[1]", "[{}]", '{"a": 1}', "true", "-1", "1e999", "9" * 400)
ANNOTATIONS = sorted(
    {
        value
        for name, value in vars(names).items()
        if isinstance(value, str)
        and name.isupper()
        and "/" in value
        and not value.endswith("/")
        and "FINALIZER" not in name
    }
)


class Attack:
    """Writes odd values and notes what the controllers logged meanwhile."""

    def __init__(self, world: World, variants_max: int) -> None:
        self.world = world
        self.variants_max = variants_max
        self.rng = random.Random(1)
        self.problems: list[str] = []
        self.stored = 0

    def texts(self, most: int) -> list[str]:
        """Return odd texts: of two, one is no JSON, and the other is JSON that is unlikely to fit."""
        kinds = [self.rng.choice(_NOT_JSON), self.rng.choice(_OTHER_JSON)]
        self.rng.shuffle(kinds)
        further = max(0, self.variants_max // 12 - 1)
        return kinds[:most] + self.rng.sample(_NOT_JSON + _OTHER_JSON, further)

    async def write(
        self,
        client: LocalClient,
        resource: Resource,
        base: Object,
        root: str,
        subresource: str = "",
        namespace: str = "default",
    ) -> None:
        """Store a sample of the variants of a field, one at a time, in one object."""
        registry = self.world.registry if client is self.world.user else self._member_of(client).registry
        schema = registry.kinds.lookup(resource.group, resource.version, resource.plural).schema
        found = list(variants(schema, base, root))
        for about, obj in self.rng.sample(found, min(len(found), self.variants_max)):
            await self.patch(
                client, resource, base["metadata"]["name"], {root: obj.get(root)}, about, subresource, namespace
            )

    async def patch(
        self,
        client: LocalClient,
        resource: Resource,
        name: str,
        patch: Object,
        about: str,
        subresource: str = "",
        namespace: str = "default",
    ) -> None:
        """Merge a patch and let the controllers work on it."""
        before = self.world.failed()
        with structlog.testing.capture_logs() as logs, contextlib.suppress(ApiError):
            await client.patch(
                resource,
                name,
                patch,
                patch_type=PatchType.MERGE,
                namespace=namespace if resource.namespaced else "",
                subresource=subresource,
            )
            self.stored += 1
            await self.world.pass_time(0.4)
        logged = [entry for entry in logs if entry["log_level"] in ("error", "critical") or "exc_info" in entry]
        if logged or self.world.failed() > before:
            self.problems.append(f"{resource.kind} {about}: {logged[:1]}")

    def _member_of(self, client: LocalClient) -> Any:
        return next(member for member in self.world.members.values() if member.admin is client)


async def begin(world: World) -> None:
    await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "west": 1}))
    await world.create(OVERRIDE_POLICIES, an_override("east", "/spec/template/spec/containers/0/image", "nginx:2"))
    await world.create(DEPLOYMENTS, a_deployment("odd", replicas=4))
    await world.until_replicas("odd", {"east": 2, "west": 2})


async def still_works(world: World) -> None:
    # Some annotations rightly release or ignore the copies in members.
    for member in world.members.values():
        with contextlib.suppress(NotFound):
            await member.admin.delete(DEPLOYMENTS, "odd", "default")
    await world.user.delete(DEPLOYMENTS, "odd", "default")
    await world.until_gone(DEPLOYMENTS, "odd")
    for resource, name in ((OVERRIDE_POLICIES, "special"), (PROPAGATION_POLICIES, "divide")):
        await world.user.delete(resource, name, "default")
    await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "west": 1}, name="other"))
    await world.create(DEPLOYMENTS, a_deployment("fine", replicas=2))
    await world.until_replicas("fine", {"east": 1, "west": 1})


@pytest.mark.slow("controllers work on each of hundreds of odd values")
@pytest.mark.parametrize("variants_max", [VARIANTS_MAX, pytest.param(NIGHTLY_VARIANTS, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("part", ["policies", "annotations", "reports", "clusters"])
async def test_controllers_work_on_beside_odd_values(part: str, variants_max: int) -> None:
    async with a_world(members=("east", "west")) as world:
        await begin(world)
        attack = Attack(world, variants_max)
        await PARTS[part](attack)
        assert attack.stored > 10
        assert not attack.problems, f"{len(attack.problems)} problems:\n" + "\n".join(attack.problems[:30])
        await still_works(world)


async def policies(attack: Attack) -> None:
    world = attack.world
    for resource, name in ((PROPAGATION_POLICIES, "divide"), (OVERRIDE_POLICIES, "special")):
        base = await world.user.get(resource, name, "default")
        for root in ("spec", "status"):
            await attack.write(world.user, resource, base, root)
            await attack.patch(world.user, resource, name, {"spec": base["spec"]}, "restored")


async def annotations(attack: Attack) -> None:
    """Each of our keys as annotation, and then also as label. The first patch of a key removes the key before."""
    world = attack.world
    for resource, name in ((DEPLOYMENTS, "odd"), (NAMESPACES, "default"), (FEDERATED_CLUSTERS, "west")):
        before: dict[str, None] = {}
        for key in ANNOTATIONS:
            for text in attack.texts(most=2 if resource == DEPLOYMENTS else 1):
                patch: Object = {"metadata": {"annotations": {**before, key: text}, "labels": before}}
                await attack.patch(world.user, resource, name, patch, f"annotation {key}={text[:20]}")
                patch = {"metadata": {"labels": {key: text}}}
                await attack.patch(world.user, resource, name, patch, f"label {key}={text[:20]}")
            before = {key: None}
        patch = {"metadata": {"annotations": before, "labels": before}}
        await attack.patch(world.user, resource, name, patch, "without annotations and labels")


async def reports(attack: Attack) -> None:
    """What a user writes into the status of a federated Deployment, and what a member reports."""
    world = attack.world
    east = world.members["east"].admin
    deployment = await world.user.get(DEPLOYMENTS, "odd", "default")
    await attack.write(world.user, DEPLOYMENTS, deployment, "status", "status")
    copy = await east.get(DEPLOYMENTS, "odd", "default")
    await attack.write(east, DEPLOYMENTS, copy, "status", "status")
    for plural, scope in (("nodes", ""), ("pods", "default")):
        info = world.members["east"].registry.kinds.lookup("", "v1", plural)
        for obj in (await east.list(info.resource, scope)).items[:1]:
            await attack.write(east, info.resource, obj, "status", "status")


async def clusters(attack: Attack) -> None:
    world = attack.world
    cluster = await world.user.get(FEDERATED_CLUSTERS, "west")
    await attack.write(world.user, FEDERATED_CLUSTERS, cluster, "status", "status")
    for taints in (
        [],
        None,
        [{"key": "", "effect": ""}],
        [{"key": "a", "effect": "Odd"}],
        [{"key": "a", "value": "b", "effect": "NoExecute"}],
    ):
        await attack.patch(world.user, FEDERATED_CLUSTERS, "west", {"spec": {"taints": taints}}, f"taints {taints}")
    await attack.patch(world.user, FEDERATED_CLUSTERS, "west", {"spec": {"taints": None}}, "restored")
    await attack.patch(world.user, FEDERATED_CLUSTERS, "west", {"status": cluster["status"]}, "restored", "status")
    await world.until_ready("west")


PARTS = {"policies": policies, "annotations": annotations, "reports": reports, "clusters": clusters}
