"""Taints of members: `fedctl cordon`, `uncordon` and `taint`, and those that the control plane adds to a hanging member."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.support.federation import Federation, eventually, fedctl, free_clusters, start_serve
from tests.support.joining import DEPLOYMENT, POLICY, Member, hanging

pytestmark = [pytest.mark.e2e, pytest.mark.slow("a member hangs"), pytest.mark.xdist_group("taints")]
UNREACHABLE = "federation.kubeadmiral.io/unreachable"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("taints")


@pytest.fixture(scope="module")
def fed(directory: Path) -> Iterator[Federation]:
    """A federation with two members, each in its own process, and a policy that divides Deployments."""
    with ExitStack() as stack:
        running = stack.enter_context(closing(start_serve(directory / "host")))
        kubeconfigs = stack.enter_context(free_clusters(directory / "clusters", 2))
        for name, kubeconfig in zip(("frankfurt", "oslo"), kubeconfigs, strict=True):
            Member(running, name, kubeconfig).join(kubeconfig)
        running.kubectl.apply({**POLICY, "spec": {**POLICY["spec"], "schedulingMode": "Divide"}})
        yield running


@pytest.fixture
def web(fed: Federation) -> None:
    """A new Deployment with five replicas in each member. What an earlier test left is removed."""
    fed.kubectl("delete", "--ignore-not-found", "deploy/web", "clusterdisruptionbudget/all")
    run(fed, "uncordon", "oslo")
    fed.kubectl.apply({**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "replicas": 10}})
    eventually(lambda: placement(fed), lambda seen: seen == {"frankfurt": 5, "oslo": 5})


def run(fed: Federation, *arguments: str) -> str:
    done = fedctl(*arguments, check=False, KUBECONFIG=str(fed.kubectl.kubeconfig))
    return (done.stdout + done.stderr).strip()


def placement(fed: Federation) -> dict[str, int]:
    """Return the replicas per cluster that the scheduler wants, {} before the first decision."""
    found = fed.api().find("federatedobjects", "web-deployments.apps")
    spec = found["spec"] if found else {}
    placed = {entry["cluster"]: 0 for part in spec.get("placements", ()) for entry in part["placement"]}
    for part in spec.get("overrides", ()):
        for cluster in part["clusters"]:
            for patch in cluster["patches"]:
                placed[cluster["cluster"]] = patch["value"]
    return placed


def row(fed: Federation, name: str) -> str:
    return next(line for line in run(fed, "clusters").splitlines() if line.startswith(name))


@pytest.mark.usefixtures("web")
def test_a_cordoned_cluster_keeps_its_replicas_and_gets_no_more(fed: Federation) -> None:
    assert run(fed, "cordon", "oslo") == 'cluster "oslo" cordoned'
    assert run(fed, "cordon", "oslo") == 'cluster "oslo" already cordoned'
    assert " unschedulable:NoSchedule " in row(fed, "oslo")
    fed.kubectl("scale", "deploy/web", "--replicas=14")
    eventually(lambda: placement(fed), lambda seen: seen == {"frankfurt": 9, "oslo": 5})
    assert run(fed, "uncordon", "oslo") == 'cluster "oslo" uncordoned'
    assert run(fed, "uncordon", "oslo") == 'cluster "oslo" already uncordoned'
    fed.kubectl("scale", "deploy/web", "--replicas=18")
    # The first decision may not know yet that the cluster is open again; replicas that run by then stay.
    eventually(lambda: placement(fed), lambda seen: sum(seen.values()) == 18 and seen["oslo"] > 5)


@pytest.mark.usefixtures("web")
def test_a_drained_cluster_is_emptied_unless_a_budget_forbids_it(fed: Federation) -> None:
    fed.kubectl("rollout", "status", "deploy/web", "--timeout=90s")
    window = {"start": "2026-01-01T00:00:00Z", "end": "2099-01-01T00:00:00Z"}
    freeze = {
        "apiVersion": "core.kubeadmiral.io/v1alpha1",
        "kind": "ChangeFreeze",
        "metadata": {"name": "peak"},
        "spec": {"reason": "peak season", "windows": [window]},
    }
    fed.kubectl.apply(freeze)
    frozen = (
        "Deployment default/web: 5 replicas would stay: ChangeFreeze peak holds until 2099-01-01T00:00:00Z: peak season"
    )
    assert frozen in run(fed, "drain", "oslo", "--dry-run")
    fed.kubectl("delete", "changefreeze", "peak")
    budget = {
        "apiVersion": "core.kubeadmiral.io/v1alpha1",
        "kind": "ClusterDisruptionBudget",
        "metadata": {"name": "all"},
        "spec": {"maxUnavailable": 0},
    }
    fed.kubectl.apply(budget)
    preview = run(fed, "drain", "oslo", "--dry-run")
    assert "Deployment default/web: 5 replicas would stay: ClusterDisruptionBudget all allows 0 unavailable" in preview
    run(fed, "drain", "oslo", "--timeout", "0")
    halts = "failover of oslo halts: ClusterDisruptionBudget all"
    eventually(lambda: run(fed, "clusters"), lambda seen: halts in seen, what="the reason why nothing moves")
    blocked = run(fed, "drain", "oslo", "--timeout", "3")
    assert "waiting: ClusterDisruptionBudget all allows 0" in blocked
    assert 'cluster "oslo" is not empty' in blocked
    assert placement(fed) == {"frankfurt": 5, "oslo": 5}

    fed.kubectl("delete", "clusterdisruptionbudget", "all")
    assert 'cluster "oslo" is drained' in run(fed, "drain", "oslo", "--timeout", "80")
    assert placement(fed) == {"frankfurt": 10}


def test_a_drain_ends_with_the_reason_where_no_other_cluster_can_take_an_object(fed: Federation) -> None:
    pinned = {**POLICY, "metadata": {"name": "in-oslo", "namespace": "pinned"}}
    pinned["spec"] = {**POLICY["spec"], "schedulingMode": "Duplicate", "placement": [{"cluster": "oslo"}]}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": "pinned"}}
    secret["metadata"] |= {"labels": {"kubeadmiral.io/propagation-policy-name": "in-oslo"}}
    run(fed, "uncordon", "oslo")
    fed.kubectl("create", "namespace", "pinned")
    fed.kubectl.apply(pinned, secret)
    found = fed.api("pinned")
    eventually(
        lambda: found.find("federatedobjects", "key-secrets"), lambda seen: seen and seen["spec"].get("placements")
    )
    drained = run(fed, "drain", "oslo", "--timeout", "60")
    assert "Secret pinned/key: stays: 0/2 clusters are available" in drained
    assert 'cluster "oslo" is not empty' in drained
    assert "did not leave within" not in drained
    assert run(fed, "uncordon", "oslo") == 'cluster "oslo" uncordoned'


def test_taints_have_the_syntax_of_kubectl(fed: Federation) -> None:
    assert run(fed, "taint", "oslo", "dedicated=gpu:NoSchedule", "dry:PreferNoSchedule") == 'cluster "oslo" tainted'
    assert run(fed, "taint", "oslo", "dedicated=gpu:NoSchedule") == 'cluster "oslo" unchanged'
    assert "dedicated=gpu:NoSchedule,dry:PreferNoSchedule" in row(fed, "oslo")
    assert "use --overwrite" in run(fed, "taint", "oslo", "dedicated=cpu:NoSchedule")
    assert run(fed, "taint", "oslo", "--overwrite", "dedicated=cpu:NoSchedule") == 'cluster "oslo" tainted'
    assert run(fed, "taint", "oslo", "dedicated:NoSchedule-", "dry-") == 'cluster "oslo" tainted'
    assert "has no taint dry" in run(fed, "taint", "oslo", "dry-")
    assert "the control plane sets" in run(fed, "taint", "oslo", f"{UNREACHABLE}:NoExecute-")
    assert "the effect must be one of" in run(fed, "taint", "oslo", "a=b")
    assert "not found" in run(fed, "taint", "bergen", "a:NoSchedule")


@pytest.mark.usefixtures("web")
def test_a_hanging_member_is_tainted_and_why_says_until_when_that_is_tolerated(
    fed: Federation, directory: Path
) -> None:
    before = placement(fed)
    with hanging(directory / "clusters", "member-2"):
        eventually(lambda: row(fed, "oslo"), lambda seen: "unreachable:NoExecute" in seen)
        assert "NotReady (ClusterNotReachable)" in row(fed, "oslo")
        eventually(lambda: run(fed, "why", "deploy/web"), lambda seen: "tolerated until" in seen)
        assert placement(fed) == before
    eventually(lambda: row(fed, "oslo"), lambda seen: "unreachable" not in seen)
    assert " Ready " in row(fed, "oslo")
    eventually(lambda: run(fed, "why", "deploy/web"), lambda seen: "tolerated until" not in seen)
    eventually(
        lambda: {event["reason"] for event in fed.api("").list("events")["items"]},
        lambda seen: {"ClusterNotReady", "ClusterTainted", "ClusterReady", "ClusterUntainted"} <= seen,
        what="events of both changes",
    )
