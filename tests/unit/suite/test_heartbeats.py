"""What fault histories accept as a heartbeat after a restart, and which lists a lying member confuses."""

import orjson
import pytest
from tests.support.faults import Faults
from tests.support.heartbeats import is_due_heartbeat

from federation.apimachinery.resources import PODS, Object
from federation.apiserver.store.interface import Event, EventType
from federation.client.client import Request
from federation.runtime.podstream import ON_NODES, WITHOUT_NODE

KEY = "/core.kubeadmiral.io/federatedclusters/east"


def _cluster(probed: str, *, ready: str = "True", revision: str = "1", version: str = "v1") -> Object:
    conditions = [
        {"type": "Joined", "status": "True", "lastProbeTime": "2026-01-01T00:00:00Z"},
        {"type": "Ready", "status": ready, "lastProbeTime": probed},
    ]
    return {"metadata": {"resourceVersion": revision}, "status": {"conditions": conditions, "version": version}}


def _update(before: Object, after: Object, key: str = KEY) -> Event:
    return Event(2, key, EventType.UPDATED, orjson.dumps(after), orjson.dumps(before))


BEFORE = _cluster("2026-01-01T00:01:00Z")


@pytest.mark.parametrize(
    ("event", "is_accepted"),
    [
        pytest.param(_update(BEFORE, _cluster("2026-01-01T00:06:00Z", revision="2")), True, id="due"),
        pytest.param(_update(BEFORE, _cluster("2026-01-01T00:05:59Z", revision="2")), False, id="too early"),
        pytest.param(_update(BEFORE, _cluster("2026-01-01T00:06:00Z", version="v2")), False, id="with something else"),
        pytest.param(_update(BEFORE, _cluster("2026-01-01T00:06:00Z", ready="False")), False, id="another status"),
        pytest.param(_update(BEFORE, _cluster("2026-01-01T00:01:00Z", revision="2")), False, id="nothing refreshed"),
        pytest.param(
            _update(BEFORE, _cluster("2026-01-01T00:06:00Z"), "/apps/deployments/default/x"), False, id="kind"
        ),
        pytest.param(Event(2, KEY, EventType.CREATED, orjson.dumps(BEFORE), None), False, id="created"),
        pytest.param(Event(2, KEY, EventType.DELETED, orjson.dumps(BEFORE), orjson.dumps(BEFORE)), False, id="deleted"),
    ],
)
def test_only_probe_times_that_were_due_are_a_heartbeat(event: Event, is_accepted: bool) -> None:
    assert is_due_heartbeat(event) is is_accepted


def test_a_true_list_of_some_pods_does_not_correct_a_wrong_list_of_others() -> None:
    running, waiting = (Request("list", PODS, field_selector=selector) for selector in (ON_NODES, WITHOUT_NODE))
    faults, answer = Faults(seed=1), {"items": [{"metadata": {"name": "web"}}]}
    faults.lie = "empty"
    assert faults.tell(running, answer)["items"] == []
    faults.end()
    assert faults.tell(waiting, answer) == answer
    assert faults.must_list(running)
    assert not faults.must_list(waiting)
