"""The simulated pod scheduler's choice of a node."""

from typing import Any

from federation.simulator.ledger import Ledger, compute_pod_request


def a_node(name: str, cpu: str = "4", pods: str = "10", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {"zone": name[-1]}},
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": pods}},
    }


def a_spec(cpu: str = "1", **more: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], **more}


def a_ledger(*nodes: dict[str, Any]) -> Ledger:
    ledger = Ledger()
    for node in nodes:
        ledger.set_node(node)
    return ledger


def choose(ledger: Ledger, spec: dict[str, Any]) -> tuple[str, str]:
    return ledger.choose_node(spec, compute_pod_request(spec))


def test_the_emptiest_node_is_chosen() -> None:
    ledger = a_ledger(a_node("a"), a_node("b"))
    ledger.assign("uid", "a", {"cpu": 2000})
    assert choose(ledger, a_spec()) == ("b", "")


def test_a_pod_that_fits_nowhere_gets_the_schedulers_words() -> None:
    ledger = a_ledger(
        a_node("a", cpu="1"), a_node("b", cpu="1", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    )
    assert choose(ledger, a_spec("2")) == (
        "",
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint {k: v}.",
    )


def test_a_toleration_opens_a_tainted_node() -> None:
    ledger = a_ledger(a_node("a", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}]))
    assert choose(ledger, a_spec(tolerations=[{"key": "k", "operator": "Exists"}]))[0] == "a"


def test_selector_and_affinity_are_respected() -> None:
    ledger = a_ledger(a_node("a"), a_node("b"))
    assert choose(ledger, a_spec(nodeSelector={"zone": "b"}))[0] == "b"
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    assert choose(ledger, a_spec(affinity=affinity))[0] == "b"


def test_released_resources_are_free_again_and_counted_once() -> None:
    ledger = a_ledger(a_node("a", cpu="1"))
    ledger.assign("uid", "a", {"cpu": 1000})
    ledger.assign("uid", "a", {"cpu": 1000})
    assert choose(ledger, a_spec())[0] == ""
    assert ledger.release("uid")
    assert not ledger.release("uid")
    assert choose(ledger, a_spec())[0] == "a"


def test_a_full_node_takes_no_more_pods() -> None:
    ledger = a_ledger(a_node("a", pods="1"))
    ledger.assign("uid", "a", {})
    assert "Too many pods" in choose(ledger, a_spec("0"))[1]


def test_a_request_counts_init_containers_and_overhead() -> None:
    spec = {
        "containers": [{"resources": {"requests": {"cpu": "100m"}}}, {"resources": {"requests": {"cpu": "200m"}}}],
        "initContainers": [{"resources": {"requests": {"cpu": "1"}}}],
        "overhead": {"cpu": "50m"},
    }
    assert compute_pod_request(spec) == {"cpu": 1050}
