"""SIGKILL of `fedctl serve` with real members, in the middle of a burst of creates, and a restart that writes nothing."""

import json
import os
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from tests.e2e.test_crash import host_replicas, in_members, manifest, name_of, scheduled
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.members.federation import REGIONS, RealFederation, apply, real_federation, versions
from tests.support.federation import PATIENCE_S, eventually

pytestmark = pytest.mark.real_time
DEPLOYMENTS = 60
BATCH = 10
KINDS = "ns,deploy,cm"


@pytest.fixture
def fed(tmp_path_factory: pytest.TempPathFactory, real: list[Cluster]) -> Iterator[RealFederation]:
    members = dict(zip(REGIONS, real, strict=True))
    with real_federation(tmp_path_factory.mktemp("crash"), members) as running:
        yield running


def a_policy() -> dict[str, Any]:
    kinds = (("apps/v1", "Deployment"), ("v1", "ConfigMap"))
    return {
        "apiVersion": "core.kubeadmiral.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "all", "namespace": "default"},
        "spec": {
            "schedulingMode": "Divide",
            "resourceSelectors": [{"apiVersion": version, "kind": kind} for version, kind in kinds],
            "placement": [{"cluster": name, "preferences": {"weight": int(name[-1])}} for name in REGIONS],
        },
    }


class Burst(threading.Thread):
    """Creates Deployments in batches and records which of them the server acknowledged; kills it at one of them."""

    def __init__(self, fed: RealFederation, kill_at: int = 0) -> None:
        super().__init__(daemon=True)
        self._fed = fed
        self._kill_at = kill_at
        self.acknowledged: list[str] = []

    def run(self) -> None:
        for start in range(0, DEPLOYMENTS, BATCH):
            manifests = [json.dumps(manifest(name_of(i), 3)) for i in range(start, start + BATCH)]
            with self._fed.kubectl.popen("apply", "--server-side", "-f", "-") as kubectl:
                assert kubectl.stdin is not None
                assert kubectl.stdout is not None
                kubectl.stdin.write("\n---\n".join(manifests))
                kubectl.stdin.close()
                # kubectl prints a line for each object when the server has acknowledged it.
                for line in kubectl.stdout:
                    self.acknowledged.append(line.split("/")[1].split()[0])
                    if len(self.acknowledged) == self._kill_at:
                        self._fed.process.send_signal(signal.SIGKILL)
            if kubectl.returncode:
                return


def ready(fed: RealFederation) -> dict[str, int]:
    items = fed.kubectl.json("get", "deploy")["items"]
    return {item["metadata"]["name"]: (item.get("status") or {}).get("readyReplicas", 0) for item in items}


def pods_in_members(fed: RealFederation) -> dict[str, int]:
    """Return the number of pods of each Deployment in all members."""
    found: dict[str, int] = {}
    for member in fed.members:
        path = "{range .items[*]}{.metadata.labels.app} {end}"
        for name in fed.member(member)("get", "pods", "-n", "default", "-o", f"jsonpath={path}").split():
            found[name] = found.get(name, 0) + 1
    return found


def test_nothing_is_lost_or_doubled_by_a_kill_and_a_restart_writes_nothing(fed: RealFederation) -> None:
    seed = int(os.environ.get("FEDERATION_TEST_SEED") or random.randrange(1 << 30))
    apply(fed.kubectl, a_policy())
    burst = Burst(fed, kill_at=random.Random(seed).randrange(5, DEPLOYMENTS - BATCH - 5))
    burst.start()
    burst.join(PATIENCE_S)
    fed.process.wait(PATIENCE_S)
    assert len(burst.acknowledged) < DEPLOYMENTS, f"killed in the middle (seed {seed})"

    with closing(fed.restarted()) as second:
        assert set(burst.acknowledged) <= set(host_replicas(second)), f"acknowledged and gone (seed {seed})"
        Burst(second).run()
        all_names = {name_of(index) for index in range(DEPLOYMENTS)}
        assert set(host_replicas(second)) == all_names
        eventually(
            lambda: ready(second), lambda seen: seen == dict.fromkeys(all_names, 3), timeout_s=120, what="merged status"
        )
        plan = scheduled(second)
        assert {name: sum(placed.values()) for name, placed in plan.items()} == dict.fromkeys(all_names, 3)
        assert in_members(second) == plan, f"seed {seed}"
        eventually(
            lambda: pods_in_members(second),
            lambda seen: seen == dict.fromkeys(all_names, 3),
            what=f"no pod too many (seed {seed})",
        )
        eventually(
            lambda: collected(second) == member_statuses(second),
            bool,
            timeout_s=60,
            what=f"the last status of every member on the host (seed {seed})",
        )
        before = versions(second, KINDS)
        host_before = host_versions(second)
        assert second.stop() == 0

    with closing(fed.restarted()) as third:
        # The queues of the restarted controllers are in order: when a new object has arrived everywhere and its status has
        # come back, all older ones were looked at.
        apply(
            third.kubectl, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "probe"}, "data": {"a": "b"}}
        )
        eventually(
            lambda: [
                third.member(name)("get", "cm", "probe", "--ignore-not-found", "-o", "name") for name in third.members
            ],
            all,
            what="a new object in every member",
        )
        after = versions(third, KINDS)
        for name in third.members:
            assert after[name].pop("ConfigMap default/probe")
        assert after == before, f"a restart wrote to a member (seed {seed})"
        changed = {key: version for key, version in host_versions(third).items() if host_before.get(key) != version}
        # The policy counts its objects in its status.
        expected = {"ConfigMap probe", "FederatedObject probe-configmaps", "PropagationPolicy all"}
        assert set(changed) <= expected, changed


def collected(fed: RealFederation) -> dict[str, dict[str, Any]]:
    """Return the statuses of the Deployments that the host has collected, by member and name."""
    found: dict[str, dict[str, Any]] = {name: {} for name in fed.members}
    for item in fed.kubectl.json("get", "collectedstatuses")["items"]:
        for each in item["clusters"]:
            found[each["cluster"]][item["metadata"]["name"].split("-deployments")[0]] = each["collectedFields"][
                "status"
            ]
    return found


def member_statuses(fed: RealFederation) -> dict[str, dict[str, Any]]:
    """Return the statuses of the Deployments in the members, by member and name."""
    return {
        member: {
            item["metadata"]["name"]: item["status"]
            for item in fed.member(member).json("get", "deploy", "-n", "default")["items"]
        }
        for member in fed.members
    }


def host_versions(fed: RealFederation) -> dict[str, str]:
    """Return the resourceVersion of each object in the namespace on the host, those of the control plane included."""
    items = fed.kubectl.json("get", "deploy,cm,fo,collectedstatuses,propagatedversions,pp")["items"]
    return {f"{item['kind']} {item['metadata']['name']}": item["metadata"]["resourceVersion"] for item in items}
