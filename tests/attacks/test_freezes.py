"""Attack: a tenant lifts a freeze, or writes one that cannot be read."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.tenants import MERGE, OURS, tenants

from federation.apimachinery.resources import Object
from federation.planning.freezes.names import FREEZE_EXCEPTIONS

FREEZES = f"{OURS}/changefreezes"
ALWAYS = {"start": "2020-01-01T00:00:00Z", "end": "2099-01-01T00:00:00Z"}


def a_freeze(**spec: Any) -> Object:
    api_version = OURS.removeprefix("/apis/")
    body = {"reason": "sale", "windows": [ALWAYS], **spec}
    return {"apiVersion": api_version, "kind": "ChangeFreeze", "metadata": {"name": "sale"}, "spec": body}


async def test_a_tenant_can_neither_write_a_freeze_nor_an_exception(tmp_path: Path) -> None:
    async with tenants(tmp_path) as host:
        root, editor = await host.root(), await host.client("editor")
        assert (await editor.post(FREEZES, json=a_freeze())).status_code == 403
        assert (await root.post(FREEZES, json=a_freeze())).status_code == 201
        exception = {"metadata": {"annotations": {FREEZE_EXCEPTIONS: "default/*"}}}
        assert (await editor.patch(f"{FREEZES}/sale", json=exception, headers=MERGE)).status_code == 403
        assert (await editor.delete(f"{FREEZES}/sale")).status_code == 403


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"windows": [{"schedule": "0 18 * * 5", "duration": "2h", "timeZone": "Mars/Olympus"}]}, "spec.windows[0]"),
        ({"windows": [ALWAYS, {"schedule": "every friday", "duration": "2h"}]}, "spec.windows[1]"),
        ({"windows": [{"schedule": "0 18 * * 5"}]}, "give either schedule and duration, or start and end"),
        ({"windows": [{"schedule": "0 18 * * 5", "duration": "0s"}]}, "spec.windows[0].duration"),
        ({"windows": [{"schedule": "0 18 * * 5", "duration": "-2h"}]}, "spec.windows[0].duration"),
        ({"windows": []}, "spec.windows"),
        ({"windows": [ALWAYS] * 33}, "spec.windows"),
        ({"holds": ["Everything"]}, "spec.holds[0]"),
        ({"reason": ""}, "spec.reason"),
    ],
)
async def test_a_freeze_that_cannot_be_read_is_refused(tmp_path: Path, spec: dict[str, Any], field: str) -> None:
    async with tenants(tmp_path) as host:
        answer = await (await host.root()).post(FREEZES, json=a_freeze(**spec))
    assert answer.status_code == 422, answer.text
    assert field in answer.text
