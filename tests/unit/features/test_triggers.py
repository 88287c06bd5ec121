"""Events that good histories do not have: what they enqueue, and what they do not."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.support.spreads import RULES
from tests.unit.controllers.hosting import a_host

from federation.admission.rolloutgates import compile_gate
from federation.api import names
from federation.api.resources import SERVICE_IMPORTS, TOPOLOGY_SPREAD_PLANS, WORKLOAD_SPREADS
from federation.apimachinery.connection import Connection
from federation.apimachinery.resources import ENDPOINT_SLICES, STATEFUL_SETS, Object
from federation.apimachinery.webhookclient import WebhookResponse
from federation.features.services.exportcontroller import ServiceExportController, ServiceExportOptions
from federation.features.services.importcontroller import ServiceImportController
from federation.features.services.names import SERVICE_IMPORT_CONTROLLER, SOURCE_CLUSTER
from federation.features.services.rules.exports import SERVICE_NAME_LABEL
from federation.features.topologyspreadplan.controller import TopologySpreadController
from federation.features.waves.controller import _TRIGGERS, RolloutController
from federation.features.waves.metricsgate import MetricsGate
from federation.features.waves.waitingforbudgets import WaitingForBudgets
from federation.features.workloadspread.controller import WorkloadSpreadController
from federation.features.workloadspread.reconcile import _first_ordinals
from federation.features.workloadspread.rules.patchcheck import PatchCheck
from federation.runtime.controller import DONE, Key


def an_object(name: str = "web", **fields: Any) -> Object:
    return {"metadata": {"name": name, "namespace": "default"}, **fields}


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [
        (None, an_object(status={"replicas": 1}), 1),
        (an_object(status={"replicas": 1}), an_object(status={"replicas": 2}), 1),
        (an_object(status={"replicas": 1}), None, 1),
        (an_object(status={"replicas": 1}), an_object(status={"replicas": 1}), 0),
        (an_object(), None, 0),
    ],
    ids=["new", "changed", "gone", "the same status", "without a status"],
)
async def test_only_a_new_status_in_a_member_enqueues(old: Object | None, new: Object | None, count: int) -> None:
    async with a_host() as host:
        await host.federate("WorkloadSpread")
        spreads = WorkloadSpreadController(host.wired, PatchCheck(RULES))
        plans = TopologySpreadController(host.wired)
        kind = {"apiVersion": TOPOLOGY_SPREAD_PLANS.api_version, "kind": TOPOLOGY_SPREAD_PLANS.kind}
        spec = {
            "selector": {"matchLabels": {"app": "web"}},
            "shardLabel": "shard",
            "shards": 3,
            "zones": [{"name": "a", "nodes": 3}],
        }
        await host.user.create(TOPOLOGY_SPREAD_PLANS, {**kind, **an_object("plan", spec=spec)})
        cached = host.informers.for_resource(TOPOLOGY_SPREAD_PLANS)
        await host.until(lambda: cached.list() and host.types.for_resource(WORKLOAD_SPREADS))
        spreads._on_member("east", WORKLOAD_SPREADS, old, new)
        plans._on_member_object("east", STATEFUL_SETS, old, new)
        assert spreads.controller.queue.delayed == count
        assert plans.controller.queue.delayed == count


async def test_a_copy_of_endpoints_enqueues_its_service_also_without_an_export() -> None:
    async with a_host() as host:
        exports = ServiceExportController(host.wired, ServiceExportOptions(coalescing_s=600.0))
        host.start(exports.run)
        for labels in ({}, {SERVICE_NAME_LABEL: "web", SOURCE_CLUSTER: "east"}):
            kind = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4"}
            metadata = {"name": f"copy-{len(labels)}", "namespace": "default", "labels": labels}
            await host.user.create(ENDPOINT_SLICES, {**kind, "metadata": metadata, "endpoints": []})
        await host.until(lambda: exports.controller.queue.delayed)
        assert exports.controller.queue.delayed == 1


@pytest.mark.parametrize(
    ("kind", "controller", "count"),
    [
        ("ServiceImport", "", 1),
        ("Service", SERVICE_IMPORT_CONTROLLER, 1),
        ("Service", names.GLOBAL_SCHEDULER, 0),
        ("ConfigMap", SERVICE_IMPORT_CONTROLLER, 0),
    ],
)
async def test_what_an_import_has_placed_enqueues_it_also_once_the_import_is_gone(
    kind: str, controller: str, count: int
) -> None:
    async with a_host() as host:
        imports = ServiceImportController(host.wired)
        placements = [{"controller": controller, "placement": [{"cluster": "east"}]}] if controller else []
        version = "v1" if kind != "ServiceImport" else SERVICE_IMPORTS.api_version
        template = {"apiVersion": version, "kind": kind, "metadata": {"name": "web", "namespace": "default"}}
        imports._on_federated(None, an_object("web", spec={"template": template, "placements": placements}))
        assert len(imports.controller.queue) == count


def _disrupted(waiting: WaitingForBudgets) -> set[Key]:
    return {key for key, found in waiting._disrupted.items() if found}


async def test_a_deleted_rollout_returns_what_it_used_of_budgets_to_those_that_wait() -> None:
    async with a_host() as host:
        enqueued: list[Key] = []
        waiting = WaitingForBudgets(host.informers, enqueued.append)
        status = {"clusters": [{"name": "east", "disruptedSince": "2026-01-01T00:00:00Z"}]}
        rollout = an_object("first", status=status)
        waiting.on_rollout(None, rollout)
        waiting.record(Key("default", "second"), {}, is_waiting=True)
        assert _disrupted(waiting) == {Key("default", "first")}
        assert enqueued == []
        waiting.on_rollout(rollout, None)
        assert _disrupted(waiting) == set()
        assert enqueued == [Key("default", "second")]


@pytest.mark.parametrize(
    ("annotations", "start", "expected"),
    [
        (None, None, {}),
        ({}, None, {}),
        ({names.ORDINAL_STARTS: '{"east": 0, "west": 3}'}, None, {"east": 0, "west": 3}),
        ({names.ORDINAL_STARTS: '{"east": 0, "west": 3}'}, 5, {"east": 5, "west": 8}),
    ],
)
def test_the_first_ordinals_of_a_divided_stateful_set(
    annotations: dict[str, str] | None, start: int | None, expected: dict[str, int]
) -> None:
    template = {"spec": {} if start is None else {"ordinals": {"start": start}}}
    workload = {"metadata": {"annotations": annotations}, "spec": {"template": template}}
    assert _first_ordinals(workload) == expected


class Unreachable:
    """A network without servers."""

    async def get(self, connection: Connection, headers: Mapping[str, str], *, timeout_s: float) -> WebhookResponse:
        return WebhookResponse(0, error="connection refused")


async def test_the_removal_of_a_federated_object_returns_what_its_rollout_used_of_budgets() -> None:
    async with a_host() as host:
        key = Key("default", "web-deployments.apps")
        rollouts = RolloutController(
            host.wired, compile_gate, Unreachable(), MetricsGate(Unreachable(), {}, host.clock)
        )
        rollouts._waiting.record(key, {"east": host.clock.now()}, is_waiting=True)
        assert await rollouts._reconciler.reconcile(key) is DONE
        assert _disrupted(rollouts._waiting) == set()
        assert rollouts._waiting._waiting == set()


@pytest.mark.parametrize("annotation", [names.ROLLOUT, names.OVERRIDE_ROLLOUT, names.APPROVED_REVISIONS])
def test_rules_and_approvals_of_a_rollout_are_triggers(annotation: str) -> None:
    old = {"metadata": {"generation": 1, "annotations": {annotation: "{}", "other": "a"}}}
    changed = {"metadata": {"generation": 1, "annotations": {annotation: "[]", "other": "a"}}}
    other = {"metadata": {"generation": 1, "annotations": {annotation: "{}", "other": "b"}}}
    assert _TRIGGERS.concern(old, changed)
    assert not _TRIGGERS.concern(old, other)
