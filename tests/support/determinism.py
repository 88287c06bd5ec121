"""Decisions of all kinds about one generated federation, as explanation, line break, patch.

`python -m tests.support.determinism SEED` prints a digest per case: another process with other hash seeds, to which
clusters, policies and profiles came in another order, has to print the same.
"""

import random
import sys
from hashlib import blake2b
from typing import Any

import orjson

from federation.api import names
from federation.api.federatedtype import default_type_configs, from_config
from federation.features.catalogue import decision_chain
from federation.scheduling.answers import Due
from federation.scheduling.assessment import assess
from federation.scheduling.assumedreplicas import AssumeCache
from federation.scheduling.attempt import assume, start_attempt
from federation.scheduling.attemptpatches import placement_patch
from federation.scheduling.decisioninputs import inputs_of
from federation.scheduling.engine import Engine
from federation.scheduling.explain import to_json
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.testing import NOW
from federation.scheduling.occasions import Occasion
from federation.scheduling.policyspec import compile_policy
from federation.scheduling.world import World

_TYPE = next(t for t in map(from_config, default_type_configs()) if t.name == "deployments.apps")
_APPS = [{"group": "apps", "version": "v1", "kind": kind} for kind in ("Deployment", "StatefulSet", "DaemonSet")]
_POLICIES: dict[str, dict[str, Any]] = {
    "copy": {"schedulingMode": "Duplicate", "clusterSelector": {"tier": "gold"}},
    "few": {"schedulingMode": "Duplicate", "maxClusters": 3, "tolerations": [{"key": "gpu", "operator": "Exists"}]},
    "weights": {
        "schedulingMode": "Divide",
        "placement": [{"cluster": f"c{n:02}", "preferences": {"weight": n % 4}} for n in range(12)],
    },
    "dynamic": {"schedulingMode": "Divide"},
    "exact": {
        "schedulingMode": "Divide",
        "reschedulePolicy": {"replicaRescheduling": {"avoidDisruption": False}},
        "clusterAffinity": [{"matchExpressions": [{"key": "region", "operator": "In", "values": ["r0", "r1"]}]}],
    },
    "bins": {
        "schedulingMode": "Divide",
        "replicasStrategy": "Binpack",
        "placement": [{"cluster": f"c{n:02}", "preferences": {"priority": n % 3}} for n in range(12)],
    },
    "nowhere": {"schedulingMode": "Divide", "clusterSelector": {"tier": "moon"}},
    "profiled": {"schedulingMode": "Divide", "schedulingProfile": "packed"},
}
_PROFILE = {
    "metadata": {"name": "packed"},
    "spec": {"plugins": {"score": {"enabled": [{"name": "ClusterResourcesMostAllocated"}]}}},
}


class Federation(World):
    """The inputs of decisions, added in an order that depends on `seed`."""

    def __init__(self, seed: int) -> None:
        order = random.Random(seed)  # an order, not a secret
        self.chain = decision_chain()
        super().__init__(self.chain.reads)
        self.engine = Engine(load_plugins())
        self.assume_cache = AssumeCache()
        members = [_a_cluster(number) for number in range(12)]
        order.shuffle(members)
        for member in members:
            self.clusters.update({**member, "status": {**member["status"], "conditions": []}})
        for member in reversed(members):
            self.clusters.update(member)
        self.profiles.put(_PROFILE)
        for name in order.sample(sorted(_POLICIES), len(_POLICIES)):
            metadata = {"name": name, "namespace": "default"}
            self.policies.put(compile_policy({"metadata": metadata, "spec": _POLICIES[name]}))

    def decide(self, federated: dict[str, Any]) -> tuple[bytes, dict[str, Any]]:
        """Return the explanation and the patch of one decision; later decisions see its replicas as assumed."""
        attempt = start_attempt(federated, _TYPE, self.policies)
        assert attempt is not None
        snapshot = self.clusters.snapshot()
        assumed = self.assume_cache.snapshot(0.0)
        due = assess(attempt, self, self.chain, snapshot, Occasion(NOW, assumed=assumed))
        assert isinstance(due, Due)
        decision = self.engine.decide(due.unit, snapshot, due.profile, now=NOW)
        inputs = inputs_of(federated, snapshot, policy_hash=due.policy.content_hash, assumed=due.unit.assumed)
        patch: dict[str, Any] | None = {}
        if decision.is_success:
            patch, _ = placement_patch(attempt, due, decision.placements, decision.reason)
            assume(self.assume_cache, attempt.federated["metadata"]["name"], decision, 0.0)
        return to_json(decision, {"inputs": inputs, "triggers": due.triggers}), patch or {}


def decisions(seed: int) -> dict[str, bytes]:
    """Return explanation and patch of each policy, with and without a current placement, small and large."""
    federation, found = Federation(seed), {}
    for policy in sorted(_POLICIES):
        for replicas in (1, 7, 300):
            for current in ({}, {"c01": 2, "c05": 9, "gone": 1}):
                explanation, patch = federation.decide(_a_federated(policy, replicas, current))
                case = f"{policy}/{replicas}/{len(current)}"
                found[case] = explanation + b"\n" + orjson.dumps(patch)
    return found


def digests(seed: int) -> dict[str, str]:
    """Return a digest per case."""
    return {case: blake2b(value, digest_size=8).hexdigest() for case, value in decisions(seed).items()}


def _a_cluster(number: int) -> dict[str, Any]:
    cpu, memory = 8 * (1 + number % 5), 32 * (1 + number % 3)
    free = {"cpu": f"{cpu - number % 7}", "memory": f"{memory - number % 4}Gi", "pods": "110"}
    return {
        "metadata": {
            "name": f"c{number:02}",
            "labels": {"tier": "gold" if number % 2 else "iron", "region": f"r{number % 3}"},
        },
        "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}] if number % 4 == 3 else []},
        "status": {
            "conditions": [
                {"type": "Joined", "status": "True"},
                {"type": "Ready", "status": "False" if number == 8 else "True"},
            ],
            "apiResourceTypes": _APPS,
            "resources": {
                "allocatable": {"cpu": str(cpu), "memory": f"{memory}Gi", "pods": "110"},
                "available": free,
                "nodeClasses": [{"largest": free, "free": [{"nodes": 2, "resources": free}]}] if number % 2 else [],
            },
        },
    }


def _a_federated(policy: str, replicas: int, current: dict[str, int]) -> dict[str, Any]:
    container = {"name": "web", "image": "nginx", "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}}}
    name = f"{policy}-{replicas}-{len(current)}"
    held = [{"cluster": cluster} for cluster in current]
    patches = [
        {"cluster": cluster, "patches": [{"op": "replace", "path": "/spec/replicas", "value": count}]}
        for cluster, count in current.items()
    ]
    return {
        "metadata": {
            "name": f"{name}-deployments.apps",
            "namespace": "default",
            "resourceVersion": "1",
            "labels": {names.PROPAGATION_POLICY_LABEL: policy},
            "annotations": {names.PENDING_CONTROLLERS: f'[["{names.GLOBAL_SCHEDULER}"]]'},
        },
        "spec": {
            "template": {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": name, "labels": {"app": name}},
                "spec": {"replicas": replicas, "template": {"spec": {"containers": [container]}}},
            },
            "placements": [{"controller": names.GLOBAL_SCHEDULER, "placement": held}] if held else [],
            "overrides": [{"controller": names.GLOBAL_SCHEDULER, "clusters": patches}] if patches else [],
        },
    }


if __name__ == "__main__":
    print(orjson.dumps(digests(int(sys.argv[1])), option=orjson.OPT_INDENT_2).decode())
