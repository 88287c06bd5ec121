"""The printed plan: one table per object, one line per reason, totals, all within 80 columns."""

import io
from dataclasses import replace
from typing import Any

from rich.console import Console
from tests.support.manifests import a_policy, an_override
from tests.support.whatif import a_cluster, a_source, a_world, change, plan

from federation.api import names
from federation.api.resources import (
    FEDERATED_CLUSTERS,
    FEDERATED_RESOURCE_QUOTAS,
    OVERRIDE_POLICIES,
    PROPAGATION_POLICIES,
)
from federation.apimachinery.resources import DEPLOYMENTS
from federation.cli.plan.output import print_plan
from federation.planning.guard.ledger import GuardOptions
from federation.plans.diffs import to_diff, without_secrets
from federation.scheduling.hostlimits import Limits
from federation.scheduling.whatif.changes import as_down, with_label
from federation.scheduling.whatif.planresult import MemberObject, MemberPlan, Plan
from federation.scheduling.whatif.state import ObjectSet

FREE: dict[str, Any] = {"reschedulePolicy": {"replicaRescheduling": {"avoidDisruption": False}, "rescheduleWhen": {}}}


def a_usual_world(sources: int = 1) -> ObjectSet:
    policy = a_policy({"east": 1, "west": 1}, **FREE)
    return a_world(map(a_cluster, ("east", "west")), [policy], sources=[a_source(f"web-{n}") for n in range(sources)])


def shown(result: Plan, *, width: int = 80, objects_max: int = 50, **options: bool) -> str:
    text = io.StringIO()
    console = Console(file=text, width=width, highlight=False)
    chosen = {"has_diffs": False, "is_explained": False, **options}
    print_plan(console, result, objects_max=objects_max, took="looked", **chosen)
    lines = [line.rstrip() for line in text.getvalue().splitlines()]
    assert max(map(len, lines)) <= width
    return "\n".join(lines)


def test_a_plan_shows_moved_replicas_and_free_resources() -> None:
    world = a_usual_world()
    result = plan(world, change(world, PROPAGATION_POLICIES, a_policy({"east": 2, "west": 1}, **FREE)))
    assert (
        shown(result)
        == """\
deployment/web-0 in default: rescheduled
  2/2 clusters are available
  CLUSTER  BEFORE  AFTER  +/-
  east          3      4   +1
  west          3      2   -1

CLUSTER  RESOURCE  ALL  FREE NOW  FREE THEN
east     cpu       100       100       99.5
west     cpu       100       100      100.5

1 object rescheduled; 1 replica moves
looked"""
    )


def test_diffs_and_explanations_are_printed_on_request() -> None:
    world = a_usual_world()
    result = plan(world, change(world, OVERRIDE_POLICIES, an_override("west", "/spec/minReadySeconds", 5)))
    text = shown(result, has_diffs=True)
    assert "  west          3      3       content changes" in text
    assert "\nwest\n@@ " in text
    assert "\n+  minReadySeconds: 5" in text
    assert "1 object with changed content" in text
    heavier = change(world, PROPAGATION_POLICIES, a_policy({"east": 2, "west": 1}, **FREE))
    text = shown(plan(world, heavier, is_explained=True), is_explained=True)
    assert "  changed   policy" in text
    assert "weights    east 2, west 1" in text


def test_values_of_secrets_are_masked() -> None:
    old, new = ({"kind": "Secret", "data": {"user": "bWU=", "password": value}} for value in ("b2xk", "bmV3"))
    lines = to_diff(MemberPlan("east", MemberObject(old, "1", "1"), MemberObject(new, "2", "2")))
    assert lines[1:] == [
        " data:",
        "-  password: '*** (before)'",
        "+  password: '*** (after)'",
        "   user: '***'",
        " kind: Secret",
    ]


def test_no_form_of_a_plan_prints_values_of_secrets() -> None:
    hidden = "b2xk-plain-text"
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": f'{{"data": "{hidden}"}}', "a": "b"}
    secret = {
        "kind": "Secret",
        "metadata": {"annotations": annotations},
        "data": {"a": hidden},
        "stringData": {"b": hidden},
    }
    row = MemberPlan("east", None, MemberObject(secret, "1", "1"))
    assert hidden not in "".join(to_diff(row))
    assert "a: b" in "".join(to_diff(row))
    after = {"replicas": None, "hash": "1", "manifest": secret}
    document = without_secrets({"objects": [{"clusters": [{"cluster": "east", "before": None, "after": after}]}]})
    assert hidden not in str(document)
    assert document["objects"][0]["clusters"][0]["after"]["manifest"]["data"] == {"a": "***"}


def test_unchanged_objects_take_one_line_per_reason() -> None:
    world = a_usual_world(8)
    labelled = with_label(a_cluster("east"), "tier", "gold")
    text = shown(plan(world, change(world, FEDERATED_CLUSTERS, labelled)))
    assert text.count("unchanged: ") == 1
    assert " and 3 more\n  not rescheduled: labels of clusters changed; the policy does not follow that" in text
    assert "nothing changes in any member" in text


def test_the_clusters_that_were_compared_for_a_deadline_are_listed() -> None:
    world = a_usual_world(2)
    result = plan(world, change(world, FEDERATED_CLUSTERS, with_label(a_cluster("east"), "tier", "gold")))
    first, *others = result.objects
    waits = replace(first, alternatives=[{"cluster": "west", "cost": 1.5}])
    text = shown(replace(result, objects=[waits, *others]))
    assert "deadline: west: start not known, costs 1.5, too late" in text
    assert text.count("unchanged: ") == 2


def test_a_long_plan_is_shortened_with_a_note() -> None:
    world = a_usual_world(3)
    heavier = change(world, PROPAGATION_POLICIES, a_policy({"east": 2, "west": 1}, **FREE))
    text = shown(plan(world, heavier), objects_max=1)
    assert "… and 2 more; --limit 0 prints all" in text
    assert text.count("rescheduled") == 2


def test_an_unreachable_cluster_is_listed_with_its_remaining_objects() -> None:
    world = a_usual_world()
    text = shown(plan(world, change(world, FEDERATED_CLUSTERS, as_down(a_cluster("east")))))
    assert "east down: 1 object with 3 replicas stays assigned to it, because a" in text


def test_an_explained_plan_ends_with_what_the_changed_objects_cost() -> None:
    rates = {f"{names.PRICE_PREFIX}cpu": "0.04"}
    policy = a_policy({"east": 1, "west": 1}, **FREE)
    world = a_world([a_cluster("east", **rates), a_cluster("west")], [policy], sources=[a_source("web")])
    heavier = change(world, PROPAGATION_POLICIES, a_policy({"east": 2, "west": 1}, **FREE))
    text = shown(plan(world, heavier, is_explained=True), is_explained=True)
    # Three, then four replicas in east, with half a core and, because they request no memory, 200Mi each.
    assert "\n  price     0.08 per hour, 0.06 before; not known for west\n" in text
    assert "\nprice per hour: 0.06 before, 0.08 after\n" in text
    assert "price per hour" not in shown(plan(world, heavier))


def test_a_higher_quota_places_what_waited_for_it() -> None:
    def a_quota(cpu: str) -> Any:
        metadata = {"name": "team", "namespace": "default"}
        return {"kind": "FederatedResourceQuota", "metadata": metadata, "spec": {"overall": {"cpu": cpu}}}

    world = a_usual_world(sources=2)
    limited = world.with_changes([change(world, FEDERATED_RESOURCE_QUOTAS, a_quota("6"))])
    more = a_source("web-1", replicas=10, generation=2)
    text = shown(plan(limited, change(limited, DEPLOYMENTS, more)))
    refused = "no place within FederatedResourceQuota team: 6 cpu, of which other workloads use 3"
    assert refused in " ".join(text.split())
    higher = change(limited, FEDERATED_RESOURCE_QUOTAS, a_quota("7"))
    assert "2 replicas start" in shown(plan(limited, change(limited, DEPLOYMENTS, more), higher))


def test_a_plan_names_what_the_guard_will_hold() -> None:
    sources = [a_source(f"web-{number}", 1) for number in range(11)]
    usual = a_policy({"east": 1}, schedulingMode="Duplicate", **FREE)
    world = a_world(map(a_cluster, ("east", "west")), [usual], sources=sources)
    moved = change(world, PROPAGATION_POLICIES, a_policy({"west": 1}, schedulingMode="Duplicate", **FREE))
    lines = shown(plan(world, moved, limits=Limits(GuardOptions())), objects_max=0).splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("held: "))
    assert lines[at].startswith("held: the guard holds 11 moves of PropagationPolicy default/")
    assert "`fedctl approve` lets them go on" in " ".join(line.strip() for line in lines[at : at + 4])
    assert "held: " not in shown(plan(world, moved, limits=Limits(GuardOptions(share=1.0))), objects_max=0)
