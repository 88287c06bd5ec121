"""The history of pod templates on the host: numbers, limits, and what kubectl reads."""

from typing import Any

import pytest

from federation.apimachinery import wellknown
from federation.apimachinery.resources import (
    CONTROLLER_REVISIONS,
    DAEMON_SETS,
    DEPLOYMENTS,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Object,
    Resource,
)
from federation.planning.federatedobject.names import TEMPLATE_HISTORY_LABEL
from federation.planning.federatedobject.templatehistory import HistoryPlan, history_resource, plan_history, template_of


def a_template(image: str) -> Object:
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": image}]}}


def a_workload(kind: str = "Deployment", **spec: Any) -> Object:
    annotations = {"kubernetes.io/change-cause": "v2", wellknown.LAST_APPLIED_CONFIGURATION: "{}"}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web", "namespace": "shop", "uid": "u1", "annotations": annotations},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
    }


class Host:
    """Applies plans, as the API server would."""

    def __init__(self, resource: Resource = DEPLOYMENTS, **spec: Any) -> None:
        self.resource = resource
        self.source = a_workload(resource.kind, **spec)
        self.stored: dict[str, Object] = {}
        self.image = "v1"

    def change(self, image: str) -> HistoryPlan:
        plan = plan_history(
            self.resource, self.source, a_template(self.image), a_template(image), list(self.stored.values())
        )
        self.image = image
        for entry in plan.creates:
            assert entry["metadata"]["name"] not in self.stored
            self.stored[entry["metadata"]["name"]] = entry
        for name, patch in plan.patches.items():
            entry = self.stored[name]
            if "revision" in patch:
                entry["revision"] = patch["revision"]
            else:
                entry["metadata"]["annotations"] |= patch["metadata"]["annotations"]
        for name in plan.deletes:
            del self.stored[name]
        return plan

    def images(self) -> dict[int, str]:
        found = {}
        for entry in self.stored.values():
            if self.resource == DEPLOYMENTS:
                number, template = entry["metadata"]["annotations"][wellknown.DEPLOYMENT_REVISION], entry["spec"]
            else:
                number, template = entry["revision"], entry["data"]["spec"]
            found[int(number)] = template["template"]["spec"]["containers"][0]["image"]
        return found


@pytest.mark.parametrize("resource", [DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS], ids=lambda each: each.kind)
def test_the_first_change_records_both_templates_and_later_ones_the_new_one(resource: Resource) -> None:
    host = Host(resource)
    host.change("v2")
    assert host.images() == {1: "v1", 2: "v2"}
    host.change("v3")
    assert host.images() == {1: "v1", 2: "v2", 3: "v3"}


@pytest.mark.parametrize("resource", [DEPLOYMENTS, STATEFUL_SETS], ids=lambda each: each.kind)
def test_a_template_that_returns_gets_a_new_number(resource: Resource) -> None:
    host = Host(resource)
    host.change("v2")
    plan = host.change("v1")
    assert (list(plan.creates), len(plan.patches)) == ([], 1)
    assert host.images() == {2: "v2", 3: "v1"}


def test_a_plan_that_was_carried_out_before_a_crash_changes_nothing() -> None:
    host = Host()
    host.change("v2")
    host.image = "v1"
    plan = host.change("v2")
    assert (plan.resource, *map(list, (plan.creates, plan.patches, plan.deletes))) == (REPLICA_SETS, [], [], [])


@pytest.mark.parametrize(
    ("limit", "kept"),
    [(None, 11), (2, 3), (0, 1)],
    ids=["the default keeps ten old templates", "two old templates", "none but the present one"],
)
def test_the_oldest_templates_are_deleted_beyond_the_limit(limit: int | None, kept: int) -> None:
    host = Host(revisionHistoryLimit=limit)
    for number in range(2, 16):
        host.change(f"v{number}")
    numbers = sorted(host.images())
    assert (numbers, host.images()[numbers[-1]]) == (list(range(numbers[-1] - kept + 1, numbers[-1] + 1)), "v15")


def test_templates_of_other_owners_are_not_counted() -> None:
    host = Host()
    host.change("v2")
    for entry in host.stored.values():
        entry["metadata"]["ownerReferences"][0]["uid"] = "other"
    stored = list(host.stored.values())
    plan = plan_history(DEPLOYMENTS, host.source, a_template("v2"), a_template("v3"), stored)
    assert [e["metadata"]["annotations"][wellknown.DEPLOYMENT_REVISION] for e in plan.creates] == ["1", "2"]
    assert not plan.deletes


def test_a_history_that_another_controller_keeps_is_left_alone() -> None:
    host = Host()
    host.change("v2")
    for entry in host.stored.values():
        del entry["metadata"]["labels"][TEMPLATE_HISTORY_LABEL]
    plan = host.change("v3")
    assert (plan.creates, plan.patches, plan.deletes) == ((), {}, ())


def test_a_replica_set_has_no_replicas_and_what_kubectl_restores() -> None:
    host = Host()
    entry = host.change("v2").creates[0]
    hashed = entry["metadata"]["labels"]["pod-template-hash"]
    assert entry["metadata"]["name"] == f"web-{hashed}"
    assert entry["metadata"]["annotations"] == {"kubernetes.io/change-cause": "v2", wellknown.DEPLOYMENT_REVISION: "1"}
    assert entry["spec"] == {
        "replicas": 0,
        "selector": {"matchLabels": {"app": "web", "pod-template-hash": hashed}},
        "template": {
            "metadata": {"labels": {"app": "web", "pod-template-hash": hashed}},
            "spec": {"containers": [{"name": "web", "image": "v1"}]},
        },
    }
    (owner,) = entry["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Deployment", "u1", True)


def test_a_controller_revision_replaces_the_whole_template() -> None:
    entry = Host(STATEFUL_SETS).change("v2").creates[1]
    assert entry["kind"] == CONTROLLER_REVISIONS.kind
    assert entry["data"]["spec"]["template"] == {**a_template("v2"), "$patch": "replace"}


@pytest.mark.parametrize("resource", [DEPLOYMENTS, STATEFUL_SETS], ids=lambda each: each.kind)
def test_a_recorded_template_is_read_as_the_workload_had_it(resource: Resource) -> None:
    assert template_of(Host(resource).change("v2").creates[1]) == a_template("v2")


def test_policy_labels_of_pods_do_not_federate_the_history() -> None:
    labels = {"app": "web", "kubeadmiral.io/propagation-policy-name": "p"}
    template = {**a_template("v2"), "metadata": {"labels": labels}}
    plan = plan_history(DEPLOYMENTS, a_workload(), a_template("v1"), template, [])
    assert "kubeadmiral.io/propagation-policy-name" not in plan.creates[1]["metadata"]["labels"]


def test_kinds_without_rollouts_have_no_history() -> None:
    assert history_resource(PODS) is None
