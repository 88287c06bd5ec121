"""The metrics of the fleet follow clusters and objects through a delivery."""

import pytest
from structlog.testing import capture_logs
from tests.support.manifests import a_deployment, a_policy
from tests.support.metrics import sample_of
from tests.support.world import a_world

from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS


def value(name: str, **labels: str) -> float:
    return sample_of(name, labels) or 0.0


def delivered(stage: str) -> float:
    return value("federation_delivery_seconds_count", stage=stage)


def of_stage(stage: str, part: str = "count") -> float:
    return value(f"federation_delivery_stage_seconds_{part}", stage=stage)


@pytest.mark.slow("the first world of its kind in a worker is made from nothing")
async def test_a_delivery_is_counted_stage_by_stage() -> None:
    stages = ("placed", "applied", "ready")
    each_stage = ("federated", "placed", "overridden", "applied", "ready")
    with capture_logs() as logs:
        async with a_world(members=("east", "west")) as world:
            assert value("federation_cluster_ready", cluster="east") == 1
            before = {stage: delivered(stage) for stage in stages}
            alone = {stage: of_stage(stage) for stage in each_stage}
            took_s = {stage: of_stage(stage, "sum") for stage in each_stage}
            since_creation_s = value("federation_delivery_seconds_sum", stage="ready")
            await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "west": 1}))
            await world.create(DEPLOYMENTS, a_deployment("web", replicas=4))
            await world.until_available("web", 4)
            await world.settle()
            assert {stage: delivered(stage) - before[stage] for stage in stages} == dict.fromkeys(stages, 1)
            assert {stage: of_stage(stage) - alone[stage] for stage in each_stage} == dict.fromkeys(each_stage, 1)
            later = [of_stage(stage, "sum") - took_s[stage] for stage in each_stage[1:]]
            total_s = value("federation_delivery_seconds_sum", stage="ready") - since_creation_s
            assert sum(later) == pytest.approx(total_s)
            assert total_s > 0
            assert value("federation_replicas_unplaced") == 0

            applied = value("federation_objects", state="applied")
            world.members["west"].line.mode = "down"
            await world.until_ready("west", status="Unknown")
            assert value("federation_cluster_ready", cluster="west") == 0
            world.members["west"].line.mend()
            await world.until_ready("west")
            await world.settle()
            assert value("federation_objects", state="applied") == applied
    changed = [
        (each["cluster"], each["condition"], each["status"]) for each in logs if each["event"] == "cluster changed"
    ]
    assert [each for each in changed if each[0] == "west"][-2:] == [
        ("west", "Ready", "Unknown"),
        ("west", "Ready", "True"),
    ]
