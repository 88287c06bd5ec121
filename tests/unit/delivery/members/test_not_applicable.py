"""Objects of which Kubernetes accepts a key twice in a list, and which server-side apply refuses, are written otherwise."""

from typing import Any

import pytest
from tests.support.manifests import a_deployment
from tests.unit.delivery.members.test_operations import Member

from federation.api import names
from federation.apimachinery.resources import DEPLOYMENTS, NAMESPACES, Object
from federation.delivery.members.operations import Outcome
from federation.delivery.rules.content import Write
from federation.delivery.rules.memberrecord import MemberKey
from federation.delivery.rules.status import ClusterStatus
from federation.planning.drift.fields import fields_to_remove
from federation.planning.rendering.memberobject import Rendered

KEY = MemberKey("m1", DEPLOYMENTS, "default", "web")
TWICE = {
    "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}],
    "ports": [{"name": "http", "containerPort": 80}, {"name": "metrics", "containerPort": 80}],
}


def a_web(image: str = "web:1", *, notes: dict[str, str] | None = None, **container: Any) -> Object:
    web = a_deployment("web", 2)
    web["metadata"] |= {"labels": {names.MANAGED_LABEL: "true"}, "annotations": notes or {}}
    web["spec"]["template"]["spec"]["containers"][0] |= {"image": image, **container}
    return web


class Webs(Member):
    """A member with a Deployment."""

    async def write(self, web: Object, live: Object | None = None) -> Outcome:
        return await self.writer.ensure(self.client, Write(KEY, Rendered(web, str(web)), live))

    async def web(self) -> Object:
        return await self.admin.get(DEPLOYMENTS, KEY.name, KEY.namespace)

    async def cached(self) -> Object:
        """Return it as the cache has it, without the owners of its fields."""
        web = await self.web()
        return {**web, "metadata": {k: v for k, v in web["metadata"].items() if k != "managedFields"}}


@pytest.mark.parametrize("field", TWICE)
async def test_it_is_created_updated_and_loses_what_its_template_loses(field: str) -> None:
    member = Webs()
    await member.admin.create(NAMESPACES, {"metadata": {"name": KEY.namespace}})
    more = {field: TWICE[field]}
    outcome = await member.write(a_web(notes={"a": "1", "b": "1"}, **more))
    assert outcome.status is ClusterStatus.OK, outcome.message
    assert outcome.is_complete
    theirs = {"metadata": {"annotations": {"theirs": "1"}}, "spec": {"minReadySeconds": 5}}
    await member.admin.patch(DEPLOYMENTS, KEY.name, theirs, namespace=KEY.namespace)
    outcome = await member.write(a_web("web:2", notes={"a": "2"}, **more), await member.cached())
    assert outcome.status is ClusterStatus.OK, outcome.message
    web = await member.web()
    [container] = web["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "web:2"
    assert len(container[field]) == 2
    assert web["metadata"]["annotations"] == {"a": "2", "theirs": "1"}
    assert web["spec"]["minReadySeconds"] == 5, "what others have set stays"


async def test_it_becomes_applicable_and_not_applicable() -> None:
    member = Webs()
    await member.admin.create(NAMESPACES, {"metadata": {"name": KEY.namespace}})
    await member.write(a_web(notes={"a": "1"}))
    for more in (TWICE, {name: items[:1] for name, items in TWICE.items()}, TWICE):
        outcome = await member.write(a_web(**more), await member.cached())
        assert outcome.status is ClusterStatus.OK, outcome.message
        assert outcome.is_complete
        web = await member.web()
        [container] = web["spec"]["template"]["spec"]["containers"]
        assert [len(container[name]) for name in TWICE] == [len(items) for items in more.values()]
        assert "a" not in (web["metadata"].get("annotations") or {})


async def test_an_object_of_the_name_is_not_overwritten() -> None:
    member = Webs()
    await member.admin.create(NAMESPACES, {"metadata": {"name": KEY.namespace}})
    foreign = a_web("theirs:1")
    foreign["metadata"]["labels"] = {}
    await member.admin.create(DEPLOYMENTS, foreign)
    for live in (None, await member.cached()):
        outcome = await member.write(a_web(**TWICE), live)
        assert outcome.status is ClusterStatus.ALREADY_EXISTS
    assert (await member.web())["spec"]["template"]["spec"]["containers"][0]["image"] == "theirs:1"


@pytest.mark.parametrize(
    ("owned", "wanted", "removed"),
    [
        ({"f:a": {}}, {}, {"a": None}),
        ({"f:a": {}}, {"a": 1}, {}),
        ({"f:a": {".": {}, "f:b": {}, "f:c": {}}}, {"a": {"c": 1}}, {"a": {"b": None}}),
        ({"f:a": {"f:b": {}}}, {}, {"a": {"b": None}}),
        ({"f:a": {'k:{"name":"x"}': {"f:b": {}}}}, {}, {"a": None}),
        ({"f:a": {'k:{"name":"x"}': {"f:b": {}}}}, {"a": []}, {}),
        ({"f:a": {"f:b": {}}}, {"a": 1}, {}),
        ({"f:a": "odd", "x": {}, ".": {}}, {"a": 1}, {}),
        ("odd", {}, {}),
    ],
)
def test_what_is_removed_is_ours_and_not_wanted(owned: Any, wanted: Any, removed: Object) -> None:
    ours = {"manager": names.FIELD_MANAGER, "operation": "Update", "fieldsV1": owned}
    entries = [ours, {**ours, "manager": "other"}, {**ours, "subresource": "status", "fieldsV1": {"f:status": {}}}]
    assert fields_to_remove({"metadata": {"managedFields": entries}}, wanted) == removed
    assert fields_to_remove({"metadata": {"managedFields": entries[1:]}}, wanted) == {}
