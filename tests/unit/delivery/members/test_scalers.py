"""Autoscalers in members: how they are found."""

import pytest
from tests.support.member_world import Line

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import FederationError
from federation.apimachinery.resources import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, NAMESPACES, Object
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.client.client import Client, Request
from federation.client.local import LocalClient
from federation.delivery.members.scalers import find_scaler
from federation.delivery.rules.memberrecord import MemberKey

KEY = MemberKey("m1", DEPLOYMENTS, "default", "web")


@pytest.mark.parametrize(
    ("namespace", "kind", "name", "expected"),
    [
        ("default", "Deployment", "web", "hpa"),
        ("other", "Deployment", "web", ""),
        ("default", "StatefulSet", "web", ""),
        ("default", "Deployment", "web2", ""),
    ],
)
async def test_the_autoscaler_of_an_object_targets_it_in_its_namespace(
    namespace: str, kind: str, name: str, expected: str
) -> None:
    clock = ManualClock()
    registry = Registry(MemoryStore(clock=clock), clock=clock)
    admin, line = LocalClient(registry), Line(registry, clock)
    for each in ("default", "other"):
        await admin.create(NAMESPACES, {"metadata": {"name": each}})
    target = {"apiVersion": "apps/v1", "kind": kind, "name": name}
    head = {"apiVersion": HORIZONTAL_POD_AUTOSCALERS.api_version, "kind": HORIZONTAL_POD_AUTOSCALERS.kind}
    spec = {"maxReplicas": 3, "scaleTargetRef": target}
    hpa = {**head, "metadata": {"name": "hpa", "namespace": namespace}, "spec": spec}
    await admin.create(HORIZONTAL_POD_AUTOSCALERS, hpa)
    assert await find_scaler(Client(line), KEY) == expected
    line.mode = "down"
    with pytest.raises(FederationError):
        await find_scaler(Client(line), KEY)


class ShortPages(Line):
    """A line to a member whose pages have one object."""

    async def request(self, request: Request) -> Object:
        return await super().request(request._replace(limit=1) if request.verb == "list" else request)


async def test_an_autoscaler_is_found_behind_others() -> None:
    clock = ManualClock()
    registry = Registry(MemoryStore(clock=clock), clock=clock)
    admin = LocalClient(registry)
    await admin.create(NAMESPACES, {"metadata": {"name": "default"}})
    head = {"apiVersion": HORIZONTAL_POD_AUTOSCALERS.api_version, "kind": HORIZONTAL_POD_AUTOSCALERS.kind}
    for name in ("a", "web", "z"):
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
        spec = {"maxReplicas": 3, "scaleTargetRef": target}
        metadata = {"name": f"hpa-{name}", "namespace": "default"}
        await admin.create(HORIZONTAL_POD_AUTOSCALERS, {**head, "metadata": metadata, "spec": spec})
    line = ShortPages(registry, clock)
    assert await find_scaler(Client(line), KEY) == "hpa-web"
    assert await find_scaler(Client(line), KEY._replace(name="other")) == ""
