"""A real API server and ours accept what is applied over a Job or Pod that has finished: new metadata, the spec as it is."""

from typing import Any

import pytest
from tests.kubernetes.test_statuses import SPECS
from tests.support.rest import Api, Object

from federation.api import names
from federation.planning.rendering.retention import retain_for_apply

_STARTED = "2026-01-01T00:00:00Z"
_CONDITIONS = [
    {"type": type_, "status": "True", "reason": "Completed", "lastTransitionTime": _STARTED}
    for type_ in ("SuccessCriteriaMet", "Complete")
]
_JOB: Object = {"startTime": _STARTED, "completionTime": _STARTED, "succeeded": 1, "conditions": _CONDITIONS}
_CHANGES: dict[str, tuple[Object, Object]] = {
    "Job": (
        _JOB,
        {"template": {"spec": {"containers": [{"name": "main", "image": "web:2"}], "restartPolicy": "Never"}}},
    ),
    "Pod": ({"phase": "Succeeded"}, {"containers": [{"name": "main", "image": "web:1", "command": ["other"]}]}),
}


@pytest.mark.parametrize("kind", sorted(_CHANGES))
def test_a_change_of_a_finished_object_is_applied_without_its_spec(servers: tuple[Api, Api], kind: str) -> None:
    for api in servers:
        version, plural, spec = SPECS[kind]
        status, changed = _CHANGES[kind]
        name = f"finished-{kind.lower()}"
        whole: Object = {"apiVersion": version, "kind": kind, "metadata": {"name": name}}
        api.apply(plural, {**whole, "spec": spec}, names.FIELD_MANAGER)
        live: Any = api.patch(plural, name, {"status": status}, "status")
        desired = {**whole, "metadata": {"name": name, "labels": {"team": "a"}}, "spec": changed}
        wanted = retain_for_apply(desired, {"apiVersion": version, "kind": kind, **live})
        after = api.apply(plural, wanted, names.FIELD_MANAGER, force=True)
        assert after["metadata"]["labels"]["team"] == "a"
        assert after["spec"] == live["spec"]
