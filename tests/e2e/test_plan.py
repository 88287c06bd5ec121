"""`fedctl plan` and `apply-plan` with the real kubectl: afterwards the members match the plan.

The federation is alone: a plan names all objects that it moves, and one of them taints a cluster.
"""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from federation.api import names
from federation.simulator.controllers.names import SIMULATOR_READY
from tests.support.federation import Federation, eventually, fedctl, federation
from tests.support.manifests import a_deployment, a_policy, an_override

pytestmark = [pytest.mark.e2e, pytest.mark.slow("a federation of its own")]
MOVABLE: dict[str, Any] = {
    "reschedulePolicy": {"replicaRescheduling": {"avoidDisruption": False}, "rescheduleWhen": {}},
}


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    with federation(tmp_path_factory.mktemp("plan") / "fed") as running:
        yield running


def run(fed: Federation, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = fedctl(*arguments, check=False, KUBECONFIG=str(fed.kubectl.kubeconfig))
    assert done.returncode == code, done.stdout + done.stderr
    return done


def planned(fed: Federation, *arguments: str) -> dict[str, tuple[int, str]]:
    """Return replicas and hash of the manifest by member, as planned for the only object."""
    (obj,) = json.loads(run(fed, "plan", *arguments, "-o", "json", code=1).stdout)["objects"]
    return {c["cluster"]: (c["after"]["replicas"], c["after"]["hash"]) for c in obj["clusters"] if c["after"]}


def members(fed: Federation) -> dict[str, tuple[int, str]]:
    """Return replicas and hash of the manifest by member, of those that have the Deployment."""
    found = {}
    for name in fed.members:
        for copy in fed.api(member=name).list("deployments")["items"]:
            (digest,) = (v for k, v in copy["metadata"]["annotations"].items() if k.endswith("/template-hash"))
            found[name] = (copy["spec"]["replicas"], digest)
    return found


def test_members_match_each_plan_in_a_sequence_of_changes(fed: Federation, tmp_path: Path) -> None:
    even, heavy, web = (tmp_path / name for name in ("even.json", "heavy.json", "web.json"))
    weights = {"member-1": 1, "member-2": 1, "member-3": 1}
    even.write_text(json.dumps(a_policy(weights, **MOVABLE)))
    heavy.write_text(json.dumps(a_policy({"member-1": 4, "member-2": 1}, **MOVABLE)))
    web.write_text(json.dumps(a_deployment("web", replicas=9)))

    # Before anything is there: the plan of two manifests is what kubectl apply then makes of them.
    said = planned(fed, "-f", str(even), "-f", str(web))
    fed.kubectl("apply", "-f", str(even), "-f", str(web))
    eventually(lambda: members(fed), lambda seen: seen == said, what=f"the members as planned: {said}")
    assert "nothing changes" in run(fed, "plan", "-f", str(even), "-f", str(web)).stdout

    # A kept plan is applied once; then it does not hold any more.
    kept = str(tmp_path / "plan.json")
    said = planned(fed, "-f", str(heavy), "--out", kept)
    assert "propagationpolicy/divide in default applied" in run(fed, "apply-plan", kept).stdout
    eventually(lambda: members(fed), lambda seen: seen == said, what=f"the members as planned: {said}")
    lines = run(fed, "apply-plan", kept, code=1).stdout.splitlines()
    assert lines[0] == "PropagationPolicy divide in default has changed"
    assert lines[-1] == "nothing was applied; make the plan again"

    # Options instead of manifests, and kubectl's own three-way apply after it.
    run(fed, "plan", "--replicas", "deploy/web=20", "--taint", "member-1=a=b:NoExecute", "--out", kept, code=1)
    run(fed, "apply-plan", kept)
    eventually(lambda: members(fed), lambda seen: {k: n for k, (n, _) in seen.items()} == {"member-2": 20})
    said = planned(fed, "-f", str(web))
    fed.kubectl("apply", "-f", str(web))
    eventually(lambda: members(fed), lambda seen: seen == said, what=f"the members as planned: {said}")


def test_a_plan_may_contain_a_namespace_and_its_objects(fed: Federation, tmp_path: Path) -> None:
    manifests = [a_deployment("web", replicas=6), a_policy({"member-2": 2, "member-3": 1})]
    for manifest in manifests:
        manifest["metadata"]["namespace"] = "shop"
    manifests.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    all_of_it, kept = tmp_path / "shop.json", str(tmp_path / "plan.json")
    all_of_it.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))
    said = run(fed, "plan", "-f", str(all_of_it), "--out", kept, code=1).stdout
    assert "deployment/web in shop: created" in said
    assert "as planned: deployment/web in shop; namespace/shop" in run(fed, "apply-plan", kept).stdout
    there = fed.api("shop", member="member-2")
    eventually(
        lambda: [copy["spec"]["replicas"] for copy in there.list("deployments")["items"]],
        lambda replicas: replicas == [4],
    )
    manifests[-1]["metadata"]["name"] = "other"
    manifests[0]["metadata"]["namespace"] = "none"
    all_of_it.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))
    assert 'namespaces "none" not found' in run(fed, "plan", "-f", str(all_of_it), code=2).stderr


def test_a_rebalance_moves_what_avoid_disruption_keeps(fed: Federation, tmp_path: Path) -> None:
    """The first placement is in one cluster; the new policy divides by weight and moves nothing."""
    manifests = [a_deployment("web", replicas=4), a_policy({"member-2": 1})]
    path = tmp_path / "even.json"
    fed.kubectl("create", "namespace", "even")
    for manifest in manifests:
        manifest["metadata"]["namespace"] = "even"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))
    fed.kubectl("apply", "-f", str(path))
    fed.kubectl("rollout", "status", "deployment/web", "-n", "even", "--timeout=60s")
    manifests[1]["spec"]["placement"].append({"cluster": "member-3", "preferences": {"weight": 1}})
    path.write_text(json.dumps(manifests[1]))
    fed.kubectl("apply", "-f", str(path))

    shown = run(fed, "rebalance", "deployment/web", "-n", "even", "--dry-run").stdout
    assert "1 object rescheduled; 2 replicas move" in shown
    assert (
        fed.kubectl.json("get", "deployment", "web", "-n", "even")["metadata"]["annotations"].get(names.REBALANCE)
        is None
    )
    done = run(fed, "rebalance", "deployment/web", "-n", "even").stdout
    assert done.endswith("running: deployment/web in even: 2 in member-2, 2 in member-3\n")
    for member in ("member-2", "member-3"):
        eventually(
            lambda at=member: fed.api("even", member=at).get("deployments", "web")["spec"]["replicas"],  # type: ignore[misc]  # bound here
            lambda replicas: replicas == 2,
        )
    refused = run(fed, "rebalance", "namespace/even", code=1).stderr
    assert refused == "fedctl: namespace/even: replicas of namespaces are not divided; give a workload\n"


def test_a_migration_shows_its_moves_and_refuses_what_does_not_fit(fed: Federation, tmp_path: Path) -> None:
    manifests = [a_deployment("web", replicas=2), a_policy({"member-1": 1, "member-2": 1})]
    path = tmp_path / "moved.json"
    fed.kubectl("create", "namespace", "moved")
    for manifest in manifests:
        manifest["metadata"]["namespace"] = "moved"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))
    fed.kubectl("apply", "-f", str(path))
    fed.kubectl("rollout", "status", "deployment/web", "-n", "moved", "--timeout=60s")

    shown = run(fed, "migrate", "deployment/web", "-n", "moved", "--to", "member-3", "--dry-run").stdout
    assert "1 object rescheduled; 2 replicas move" in shown
    done = run(fed, "migrate", "deployment/web", "-n", "moved", "--to", "member-3").stdout
    assert done.endswith("as planned: deployment/web in moved\nrunning: deployment/web in moved: 2 in member-3\n")
    eventually(
        lambda: fed.api("moved", member="member-3").get("deployments", "web")["spec"]["replicas"],
        lambda replicas: replicas == 2,
    )
    refused = run(fed, "migrate", "deployment/web", "-n", "moved", "--from", "member-3", code=1)
    assert "nothing was changed" in refused.stderr
    assert run(fed, "migrate", "deployment/web", "-n", "moved", "--end").stdout
    live = fed.kubectl.json("get", "deployment", "web", "-n", "moved")
    assert names.PLACEMENTS not in live["metadata"]["annotations"]


def test_a_script_that_moves_twenty_workloads_stops_at_the_first_that_does_not_run(
    fed: Federation, tmp_path: Path
) -> None:
    """The third one is never ready in member-3: an override sees to that."""
    workloads = [f"w-{number}" for number in range(20)]
    override = an_override("member-3", "/spec/template/metadata/annotations", {SIMULATOR_READY: "false"})
    override["spec"]["resourceSelectors"][0]["name"] = "w-2"
    manifests = [a_policy({"member-1": 1}, maxClusters=1), override]
    manifests += [a_deployment(name, replicas=1) for name in workloads]
    fed.kubectl("create", "namespace", "script")
    for manifest in manifests:
        manifest["metadata"]["namespace"] = "script"
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))
    fed.kubectl("apply", "-f", str(path))
    fed.kubectl("patch", "pp", "divide", "-n", "script", "--type=merge", "-p", '{"spec":{"placement":null}}')
    for name in workloads:
        fed.kubectl("rollout", "status", f"deployment/{name}", "-n", "script", "--timeout=60s")

    move = f"{shlex.quote(str(Path(sys.executable).with_name('fedctl')))} migrate deployment/{{}} -n script --to member-3 --timeout 10"
    script = " && ".join(f"{move.format(name)} && echo moved {name}" for name in workloads)
    environment = {**os.environ, "KUBECONFIG": str(fed.kubectl.kubeconfig)}
    done = subprocess.run(
        ["bash", "-c", script], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 1, done.stdout + done.stderr
    said = [line for line in done.stdout.splitlines() if line.startswith("moved ")]
    assert said == ["moved w-0", "moved w-1"]
    assert "deployment/w-2 in script: 0 of 1 replica run in member-3: " in done.stdout
    assert done.stdout.rstrip().endswith("decided, and not running after 10 s")
    assert len(fed.api("script", member="member-3").list("deployments")["items"]) == 3, "no further one was moved"


def test_hypothetical_plans_and_invalid_manifests_are_rejected(fed: Federation, tmp_path: Path) -> None:
    kept = str(tmp_path / "plan.json")
    shown = run(fed, "plan", "--cluster-down", "member-3", "--out", kept)
    assert shown.stdout.splitlines()[-1].endswith("; it cannot be applied: --cluster-down member-3 is hypothetical")
    refused = run(fed, "apply-plan", kept, code=1)
    assert refused.stderr == "fedctl: this plan cannot be applied: --cluster-down member-3 is hypothetical\n"
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps(a_policy({"member-1": 1}, schedulingMode="Sometimes")))
    refused = run(fed, "plan", "-f", str(wrong), code=2)
    assert refused.stderr.startswith(f"fedctl: {wrong}: propagationpolicy/divide in default: ")
    assert 'spec.schedulingMode: Unsupported value: "Sometimes"' in refused.stderr
    assert run(fed, "plan", code=2).stderr.startswith("fedctl: nothing to plan;")
