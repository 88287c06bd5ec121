"""A planned write reaches an object that only got a new status since, and no object that somebody else changed."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.support.manifests import a_deployment
from tests.unit.controllers.hosting import Host, a_host

from federation.api import names
from federation.apimachinery.errors import Conflict, NotFound
from federation.apimachinery.resources import DEPLOYMENTS, Object
from federation.client.client import PatchType
from federation.plans.edits import Edit, Verb, apply_edit, dry_run

SCALE = Edit("--replicas", Verb.MERGE, DEPLOYMENTS, "default", "web", {"spec": {"replicas": 5}})
APPLY = Edit("web.yaml", Verb.APPLY, DEPLOYMENTS, "default", "web", a_deployment("web", replicas=5))
DELETE = Edit("web.yaml", Verb.DELETE, DEPLOYMENTS, "default", "web", {})
FEEDBACK: Object = {"metadata": {"annotations": {names.SCHEDULING: "{}"}}}
Write = Callable[[Host], Awaitable[Any]]


def merge(body: Object, subresource: str = "") -> Write:
    async def write(host: Host) -> None:
        options = {"patch_type": PatchType.MERGE, "namespace": "default", "subresource": subresource}
        await host.client.patch(DEPLOYMENTS, "web", body, **options)

    return write


async def recreate(host: Host) -> None:
    await host.client.delete(DEPLOYMENTS, "web", "default")
    await host.client.create(DEPLOYMENTS, a_deployment("web", replicas=1))


async def apply_after(host: Host, edit: Edit, write: Write) -> Object | None:
    """Return the object, None if there is none, after a planned edit whose object was written in between."""
    await host.client.create(DEPLOYMENTS, a_deployment("web", replicas=1))
    planned = await dry_run(host.client, edit)
    await write(host)
    await apply_edit(host.client, edit, planned.before)
    try:
        return await host.client.get(DEPLOYMENTS, "web", "default")
    except NotFound:
        return None


@pytest.mark.parametrize("edit", [SCALE, APPLY], ids=["scale", "apply"])
@pytest.mark.parametrize(
    "write", [merge({"status": {"observedGeneration": 1}}, "status"), merge(FEEDBACK)], ids=["status", "feedback"]
)
async def test_a_new_status_does_not_stop_a_write(edit: Edit, write: Write) -> None:
    async with a_host() as host:
        found = await apply_after(host, edit, write)
        assert found is not None
        assert found["spec"]["replicas"] == 5


async def test_a_new_status_does_not_stop_a_deletion() -> None:
    async with a_host() as host:
        assert await apply_after(host, DELETE, merge({"status": {"observedGeneration": 1}}, "status")) is None


@pytest.mark.parametrize("edit", [SCALE, APPLY, DELETE], ids=["scale", "apply", "delete"])
@pytest.mark.parametrize(
    "write",
    [
        merge({"spec": {"replicas": 2}}),
        merge({"metadata": {"labels": {"team": "shop"}}}),
        merge({"metadata": {"annotations": {names.PLACEMENTS: "[]"}}}),
        recreate,
    ],
    ids=["spec", "labels", "annotations", "another object"],
)
async def test_what_somebody_else_changed_is_not_overwritten(edit: Edit, write: Write) -> None:
    async with a_host() as host:
        with pytest.raises(Conflict):
            await apply_after(host, edit, write)
