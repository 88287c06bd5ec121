"""A CronFederatedHPA whose times cannot be computed is refused, with the field and the remedy."""

from typing import Any

import orjson
import pytest

from federation.api.crds import crd_manifests
from federation.api.resources import CRON_AUTOSCALERS
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import Invalid
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.apiserver.verbs.requestoptions import WriteOptions
from federation.features.cronfederatedhpa.admission import CronAutoscalerAdmission


def a_cron(**rule: Any) -> dict[str, Any]:
    return {
        "apiVersion": CRON_AUTOSCALERS.api_version,
        "kind": CRON_AUTOSCALERS.kind,
        "metadata": {"name": "times", "namespace": "default"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "rules": [{"name": "day", "schedule": "0 8 * * *", "targetReplicas": 1, **rule}],
        },
    }


async def create(cron: dict[str, Any]) -> dict[str, Any]:
    clock = ManualClock()
    registry = Registry(MemoryStore(clock=clock), clock=clock)
    await registry.install_crds(crd_manifests())
    registry.add_admission_plugin(CronAutoscalerAdmission(lambda *_: None))
    info = registry.kinds.lookup(CRON_AUTOSCALERS.group, CRON_AUTOSCALERS.version, CRON_AUTOSCALERS.plural)
    created: dict[str, Any] = orjson.loads(
        await registry.create(info, "default", cron, WriteOptions(user=lambda: {"username": "alice"}))
    )
    return created


async def test_a_correct_one_is_accepted() -> None:
    created = await create(a_cron(timeZone="Asia/Shanghai"))
    assert created["spec"]["rules"][0]["successfulHistoryLimit"] == 3


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"schedule": "0 8 * *"}, r'spec\.rules\[0\]\.schedule: Invalid value: "0 8 \* \*": expected the five fields'),
        ({"timeZone": "Berlin"}, r'spec\.rules\[0\]\.timeZone: Invalid value: "Berlin": unknown time zone; use a name'),
    ],
)
async def test_a_wrong_one_is_refused(rule: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid, match=message):
        await create(a_cron(**rule))
