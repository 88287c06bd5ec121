"""The manifests of document 003, unchanged, with three real members: the tests of tests/e2e/test_seeds_003.py.

The fourth cluster is simulated: its part is to be rejected by the policy. The tests that start a federation of their own
with the same clusters are in test_seeds_selectors.py.
"""

from tests.e2e.test_seeds_003 import (  # noqa: F401  # collected here, with the fixture `provide` of conftest.py
    Federated,
    fed,
    serve,
    test_scaling_from_30_to_15_turns_15_15_0_into_8_7_0,
    test_the_printed_policy_places_the_deployment_in_one_of_its_clusters,
    test_weights_40_30_40_divide_the_replicas,
)
from tests.support.federation import eventually


def test_the_status_of_the_printed_deployment_is_merged_and_its_rollout_ends(fed: Federated) -> None:  # noqa: F811  # the fixture
    fed.apply("propagationpolicy.yaml", "deployment.yaml")
    assert "successfully rolled out" in fed.host("rollout", "status", "deploy/nginx", "--timeout=60s")
    merged = fed.host.json("get", "deploy", "nginx")
    wanted = {"replicas": 30, "readyReplicas": 30, "availableReplicas": 30, "updatedReplicas": 30}
    assert {key: merged["status"].get(key) for key in wanted} == wanted
    assert merged["status"]["observedGeneration"] == merged["metadata"]["generation"]
    running = eventually(
        lambda: {name: len(_running_pods(fed, name)) for name in fed.members}, lambda seen: sum(seen.values()) == 30
    )
    assert sorted(running.values()) == [0, 0, 0, 30]


def _running_pods(fed: Federated, member: str) -> list[str]:  # noqa: F811  # the fixture
    selector = ("-l", "app=nginx", "--field-selector", "status.phase=Running")
    return fed.members[member]("get", "pods", *selector, "-o", "name").split()
