"""Which objects may leave a lost or drained cluster."""

from collections.abc import Sequence
from typing import Any

import pytest

from federation.planning.failover.tolerance import (
    GRACE_S_WITH_STATE,
    FailoverMode,
    FailoverRules,
    fixed_volumes_of,
    state_of_workload,
    tolerance_of,
)

DEFAULTS = FailoverRules()
CLAIMS = {"shared": ["ReadWriteMany"], "disk": ["ReadWriteOnce"], "pod": ["ReadWriteOncePod", "ReadOnlyMany"]}


def _modes(name: str) -> Sequence[str] | None:
    return CLAIMS.get(name)


def _workload(kind: str, spec: dict[str, Any] | None = None, claim: str = "") -> dict[str, Any]:
    version = {"Job": "batch/v1", "CronJob": "batch/v1", "Pod": "v1"}.get(kind, "apps/v1")
    pod = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]} if claim else {}
    body = pod if kind == "Pod" else {"template": {"spec": pod}}
    if kind == "CronJob":
        body = {"jobTemplate": {"spec": {**body, **(spec or {})}}}
    return {"apiVersion": version, "kind": kind, "spec": {**body, **(spec or {})}}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (_workload("Deployment"), ""),
        (_workload("StatefulSet"), "the pods of a StatefulSet must not run twice"),
        (_workload("Job"), ""),
        (_workload("Job", {"completions": 3}), "the completions of a Job must not run twice"),
        (_workload("CronJob", {"completions": 1}), "the completions of a Job must not run twice"),
        (_workload("Deployment", claim="shared"), ""),
        (_workload("Deployment", claim="disk"), "PersistentVolumeClaim disk is ReadWriteOnce"),
        (_workload("Pod", claim="pod"), "PersistentVolumeClaim pod is ReadWriteOncePod"),
        (
            _workload("Deployment", claim="gone"),
            "PersistentVolumeClaim gone is not on the host, so its access modes are unknown",
        ),
        ({"kind": "Deployment", "spec": None}, ""),
        ({"kind": "Deployment", "spec": {"template": {"spec": {"volumes": {"not": "a list"}}}}}, ""),
    ],
)
def test_some_workloads_do_not_tolerate_two_copies(template: dict[str, Any], expected: str) -> None:
    assert state_of_workload(template, _modes) == expected


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_a_policy_overrides_the_default_of_a_workload(kind: str) -> None:
    never = tolerance_of(_workload(kind), FailoverRules(FailoverMode.NEVER), _modes)
    auto = tolerance_of(_workload(kind), FailoverRules(FailoverMode.AUTO, 30.0), _modes)
    assert not never.may_leave
    assert auto.may_leave
    assert auto.grace_s == 30.0


def test_the_defaults_follow_the_state_of_the_workload() -> None:
    assert tolerance_of(_workload("Deployment"), DEFAULTS, _modes).may_leave
    assert tolerance_of(_workload("Deployment"), DEFAULTS, _modes).grace_s == 0.0
    assert not tolerance_of(_workload("StatefulSet"), DEFAULTS, _modes).may_leave
    with_state = tolerance_of(_workload("StatefulSet"), FailoverRules(FailoverMode.AUTO), _modes)
    assert with_state.grace_s == GRACE_S_WITH_STATE


@pytest.mark.parametrize(
    ("job", "rules", "may_leave"),
    [
        (_workload("Job", {"completions": 3}), DEFAULTS, True),
        (_workload("Job", {"completions": 3}), FailoverRules(FailoverMode.NEVER), False),
        (_workload("Job", {"completions": 3}, claim="disk"), DEFAULTS, False),
        (_workload("StatefulSet"), DEFAULTS, False),
    ],
    ids=["completions", "its policy forbids it", "a volume", "another kind"],
)
def test_what_its_queue_starts_again_may_leave(job: dict[str, Any], rules: FailoverRules, *, may_leave: bool) -> None:
    found = tolerance_of(job, rules, _modes, is_requeued=True)
    assert (found.may_leave, found.grace_s) == (may_leave, GRACE_S_WITH_STATE)


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("v1", "Namespace"),
        ("v1", "PersistentVolumeClaim"),
        ("v1", "PersistentVolume"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ],
)
def test_volumes_namespaces_and_definitions_never_leave(version: str, kind: str) -> None:
    template = {"apiVersion": version, "kind": kind}
    found = tolerance_of(template, FailoverRules(FailoverMode.AUTO), _modes)
    assert not found.may_leave
    assert found.is_kept


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (_workload("Deployment"), ""),
        (_workload("StatefulSet"), ""),
        (_workload("StatefulSet", {"volumeClaimTemplates": [{}]}), "the claims of its volumeClaimTemplates"),
        (_workload("Deployment", claim="disk"), "PersistentVolumeClaim disk"),
        (_workload("Pod", claim="pod"), "PersistentVolumeClaim pod"),
        (_workload("CronJob", claim="disk"), "PersistentVolumeClaim disk"),
        (_workload("Deployment", claim="shared"), ""),
        (_workload("Deployment", claim="gone"), ""),
        ({"kind": "Pod", "spec": {"volumes": [{"emptyDir": {}}]}}, ""),
    ],
)
def test_volumes_that_one_node_mounts_at_a_time_do_not_move(template: dict[str, Any], expected: str) -> None:
    assert fixed_volumes_of(template, _modes) == expected


@pytest.mark.parametrize("mode", list(FailoverMode))
def test_kinds_that_hold_data_or_others_stay_whatever_a_policy_says(mode: FailoverMode) -> None:
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    found = tolerance_of(claim, FailoverRules(mode, 30.0), _modes)
    assert (found.may_leave, found.grace_s, found.is_kept) == (False, 0.0, True)
    assert found.state == "a PersistentVolumeClaim stays in its clusters"
    other = tolerance_of({**claim, "apiVersion": "example.com/v1"}, FailoverRules(mode), _modes)
    assert (other.is_kept, other.state) == (False, "")
