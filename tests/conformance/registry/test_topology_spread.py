"""Validation of policies' topology constraints by the API: field paths and remedies."""

from typing import Any

import pytest

from federation.api.crds import crd_manifests
from federation.api.resources import CLUSTER_PROPAGATION_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import Invalid
from federation.apimachinery.resources import Resource
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.client.local import LocalClient

GOOD = {"topologyKey": "topology.kubernetes.io/zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
IN_SPEC = "spec.topologySpread"


async def create(resource: Resource, *constraints: dict[str, Any]) -> Any:
    registry = Registry(MemoryStore(), clock=SystemClock())
    await registry.start()
    await registry.install_crds([crd for crd in crd_manifests() if crd["spec"]["names"]["kind"] == resource.kind])
    policy = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "spread", **({"namespace": "default"} if resource.namespaced else {})},
        "spec": {"schedulingMode": "Divide", "topologySpread": list(constraints)},
    }
    return await LocalClient(registry, user_agent="test").create(resource, policy)


@pytest.mark.parametrize("resource", [PROPAGATION_POLICIES, CLUSTER_PROPAGATION_POLICIES], ids=lambda r: r.kind)
async def test_constraints_keep_their_order(resource: Resource) -> None:
    constraints = [GOOD, GOOD | {"topologyKey": "a", "minDomains": 2}]
    assert (await create(resource, *constraints))["spec"]["topologySpread"] == constraints


@pytest.mark.parametrize(
    ("constraint", "path", "remedy"),
    [
        ({"maxSkew": 0}, "[0].maxSkew", "should be greater than or equal to 1"),
        ({"minDomains": 0}, "[0].minDomains", "should be greater than or equal to 1"),
        (
            {"whenUnsatisfiable": "Never"},
            "[0].whenUnsatisfiable",
            'supported values: "DoNotSchedule", "ScheduleAnyway"',
        ),
        (
            {"minDomains": 2, "whenUnsatisfiable": "ScheduleAnyway"},
            "[0].minDomains",
            "can only be given with whenUnsatisfiable: DoNotSchedule; remove it or change that",
        ),
        ({"topologyKey": "a zone"}, "[0].topologyKey", "should match"),
        ({"topologyKey": "x"}, "", "names a topologyKey twice; keep one constraint per topologyKey"),
    ],
)
async def test_nonsense_is_refused_with_the_remedy(constraint: dict[str, Any], path: str, remedy: str) -> None:
    with pytest.raises(Invalid) as refused:
        await create(PROPAGATION_POLICIES, GOOD | constraint, GOOD | {"topologyKey": "x"})
    assert f"{IN_SPEC}{path}: " in str(refused.value)
    assert remedy in str(refused.value)
