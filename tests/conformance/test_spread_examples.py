"""The WorkloadSpreads of the documents 000 and 001 are accepted as they are written, and do what the documents say."""

from collections import Counter
from typing import Any

import pytest
import yaml
from tests.support.memberspreads import create_spread, pools, subset_sizes
from tests.support.simulatedmember import a_member, a_workload, an_object
from tests.support.vectors import ROOT

from federation.api.resources import WORKLOAD_SPREADS
from federation.apimachinery.resources import DEPLOYMENTS, NAMESPACES, PODS
from federation.simulator.options import NodeShape

FILES = sorted(path for seed in ("000", "001") for path in (ROOT / "examples" / "seeds" / seed).glob("*.yaml"))
MANIFESTS = [
    pytest.param(manifest, id=manifest["metadata"]["name"])
    for path in FILES
    for manifest in yaml.load_all(path.read_text(), yaml.CSafeLoader)
    if manifest["kind"] == "WorkloadSpread"
]


@pytest.mark.parametrize("manifest", MANIFESTS)
async def test_the_manifest_is_accepted_and_stored_as_written(manifest: dict[str, Any]) -> None:
    async with a_member(spread_services=1) as member:
        namespace = manifest["metadata"].setdefault("namespace", "default")
        if namespace != "default":
            await member.create(NAMESPACES, an_object(NAMESPACES, namespace))
        await create_spread(member, manifest)
        stored = await member.client.get(WORKLOAD_SPREADS, manifest["metadata"]["name"], namespace)
        assert stored["spec"] == manifest["spec"]


async def test_the_three_zones_of_document_000_have_their_proportion() -> None:
    zones = [
        NodeShape(zone, labels={"topology.kubernetes.io/zone": zone, "pool": zone})
        for zone in ("zone-a", "zone-b", "zone-c")
    ]
    async with a_member(zones, spread_services=1) as member:
        await create_spread(member, _manifest("three-zones"))
        await member.create(DEPLOYMENTS, a_workload(DEPLOYMENTS, "three-zones", replicas=20))
        await member.until_equal(lambda: pools(member), Counter({"zone-a": 4, "zone-b": 4, "zone-c": 12}))


async def test_the_local_replicas_of_document_001_are_not_restarted() -> None:
    async with a_member([NodeShape("local", labels={"pool": "local"})], spread_services=1) as member:
        await member.create(DEPLOYMENTS, a_workload(DEPLOYMENTS, "data-processor", replicas=8))
        await member.until_equal(lambda: pools(member), Counter(local=8))
        before = await member.names(PODS)
        await create_spread(member, _manifest("data-processor-spread"))
        await member.merge(DEPLOYMENTS, "data-processor", {"spec": {"replicas": 11}})
        await member.until_equal(lambda: subset_sizes(member), Counter({"local": 8, "aliyun-acs": 3}))
        pods = await member.all(PODS)
        inject = {pod["metadata"]["name"]: pod["metadata"]["labels"].get("serverless.fluid.io/inject") for pod in pods}
        assert {name for name, value in inject.items() if value == "false"} == set(before)
        assert Counter(inject.values()) == Counter({"false": 8, "true": 3})


def _manifest(name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(param.values[0] for param in MANIFESTS if param.id == name)  # type: ignore[assignment]  # parameters are objects
    return {**found, "metadata": {**found["metadata"], "namespace": "default"}}
