"""Devices of members: how they are counted, and which clusters pods with claims may use."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.support.devices import (
    DRIVER,
    LARGE,
    a_claim_template,
    a_collector,
    a_device,
    a_slice,
    allocate,
    as_cluster,
    claims,
    exactly,
)

from federation.admission.deviceselectors import selects
from federation.planning.clusters.deviceclaims import Claims, device_text, needs_of
from federation.planning.clusters.deviceinventory import class_resource
from federation.scheduling.engine import Decision, Engine, Outcome
from federation.scheduling.framework.devicerooms import with_devices
from federation.scheduling.framework.gangfit import Shortfall, find_shortfall
from federation.scheduling.framework.profile import DEFAULT_PROFILE
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.testing import DEPLOYMENT, NOW, a_unit
from federation.scheduling.framework.types import Cluster, PodSet, PodShape, SchedulingMode
from federation.scheduling.podrequest import shape_of
from federation.scheduling.snapshot import Snapshot

ENGINE = Engine(load_plugins(selects=selects))
OF_CLASS = class_resource(DRIVER)
SMALL = "device.attributes['gpu.example.com'].model == 't4'"


def mixed(*counts: tuple[int, int]) -> Cluster:
    """Return a cluster of which each node has so many large and small GPUs."""
    nodes = {
        f"node-{at}": [
            *(a_device(f"large-{number}") for number in range(large)),
            *(a_device(f"small-{number}", "t4", "16Gi") for number in range(small)),
        ]
        for at, (large, small) in enumerate(counts)
    }
    return as_cluster("east", a_collector(nodes))


def shape(record: Claims, *names: str) -> PodShape:
    """Return the shape of a pod of one core with a claim of each name."""
    pod = {
        "containers": [{"resources": {"requests": {"cpu": "1"}}}],
        "resourceClaims": [{"name": name, "resourceClaimTemplateName": name} for name in names],
    }
    found = shape_of({"kind": "Pod", "spec": pod}, record)
    assert found is not None
    return found


def shortfall(cluster: Cluster, *pods: tuple[int, PodShape]) -> Shortfall | None:
    """Return what a gang of these pods lacks in the cluster."""
    sets = tuple(PodSet(f"part-{at}", count, count, each) for at, (count, each) in enumerate(pods))
    unit, clusters = with_devices(a_unit(sets=sets), Snapshot(1, (cluster,)).group, selects)
    return find_shortfall(unit.pods.sets, clusters[0])


def test_devices_are_counted_by_kind_and_class() -> None:
    collector = a_collector({"one": [*map(a_device, "abc"), a_device("d", "t4", "16Gi")]})
    allocate(collector, "claim", ("one", "a"))
    status = collector.resources().to_status()
    kinds = {each["attributes"][f"{DRIVER}/model"]["string"]: each for each in status["devices"]}
    assert {model: (each["classes"], each["capacity"]) for model, each in kinds.items()} == {
        "a100": ([DRIVER], {f"{DRIVER}/memory": "80Gi"}),
        "t4": ([DRIVER], {f"{DRIVER}/memory": "16Gi"}),
    }
    free = status["nodeClasses"][0]["free"][0]["resources"]
    assert (free[OF_CLASS], free[kinds["a100"]["resource"]], free[kinds["t4"]["resource"]]) == ("3", "2", "1")
    assert (status["allocatable"][OF_CLASS], status["available"][OF_CLASS]) == ("4", "3")


@pytest.mark.parametrize(
    ("changes", "counted"),
    [
        ({}, 2),
        ({"generation": 2}, 1),
        ({"generation": 2, "count": 2}, 0),
        ({"nodeName": "", "allNodes": True}, 1),
        ({"devices": [a_device("x", taints=[{"key": "broken", "effect": "NoSchedule"}])]}, 1),
        ({"devices": [{"name": "y", "attributes": "nonsense", "capacity": {"memory": 3}}]}, 2),
        ({"devices": "nonsense"}, 1),
    ],
    ids=["both", "newer", "incomplete", "shared", "tainted", "odd values", "no list"],
)
def test_only_sure_devices_count(changes: Mapping[str, Any], counted: int) -> None:
    collector = a_collector({"one": [a_device("a")]}, count=1)
    other = a_slice("one", [a_device("b")], generation=changes.get("generation", 1), count=changes.get("count", 1))
    if "generation" not in changes:
        other["spec"]["pool"]["name"] = "second"
    other["spec"] |= {key: value for key, value in changes.items() if key not in ("generation", "count")}
    collector.devices.set_slice("other", other)
    assert int(collector.resources().to_status()["allocatable"].get(OF_CLASS, 0)) == counted


CASES: dict[str, tuple[Cluster, Sequence[tuple[int, PodShape]], bool]] = {
    "by class": (mixed((1, 1), (1, 1)), [(4, shape(claims(any=[exactly()]), "any"))], True),
    "more than the class": (mixed((1, 1), (1, 1)), [(5, shape(claims(any=[exactly()]), "any"))], False),
    "by a selector": (mixed((1, 1), (1, 1)), [(2, shape(claims(big=[exactly(1, LARGE)]), "big"))], True),
    "more than are selected": (mixed((1, 3), (1, 3)), [(3, shape(claims(big=[exactly(1, LARGE)]), "big"))], False),
    "two of one node": (mixed((1, 0), (1, 0)), [(1, shape(claims(big=[exactly(2, LARGE)]), "big"))], False),
    "small pods may take the large devices": (
        mixed((1, 1)),
        [(1, shape(claims(any=[exactly()]), "any")), (1, shape(claims(big=[exactly(1, LARGE)]), "big"))],
        False,
    ),
    "small pods that ask for small ones do not": (
        mixed((1, 1)),
        [(1, shape(claims(small=[exactly(1, SMALL)]), "small")), (1, shape(claims(big=[exactly(1, LARGE)]), "big"))],
        True,
    ),
    "two claims of one pod": (
        mixed((1, 1)),
        [(1, shape(claims(small=[exactly(1, SMALL)], big=[exactly(1, LARGE)]), "small", "big"))],
        True,
    ),
    "all of a node": (mixed((2, 0), (2, 0)), [(2, shape(claims(all=[exactly(mode="All")]), "all"))], True),
    "all of more nodes": (mixed((2, 0), (2, 0)), [(3, shape(claims(all=[exactly(mode="All")]), "all"))], False),
    "the second choice": (
        mixed((0, 4)),
        [
            (
                2,
                shape(
                    claims(
                        first=[
                            {
                                "name": "x",
                                "firstAvailable": [
                                    {"name": "a", **exactly(1, LARGE)["exactly"]},
                                    {"name": "b", **exactly(2, SMALL)["exactly"]},
                                ],
                            }
                        ]
                    ),
                    "first",
                ),
            )
        ],
        True,
    ),
    "too many of the second choice": (
        mixed((0, 4)),
        [
            (
                3,
                shape(
                    claims(
                        first=[
                            {
                                "name": "x",
                                "firstAvailable": [
                                    {"name": "a", **exactly(1, LARGE)["exactly"]},
                                    {"name": "b", **exactly(2, SMALL)["exactly"]},
                                ],
                            }
                        ]
                    ),
                    "first",
                ),
            )
        ],
        False,
    ),
    "an attribute that every device has a value of its own of": (
        mixed((40, 0)),
        [(1, shape(claims(one=[exactly(1, f"device.attributes['{DRIVER}'].uuid == 'uuid-large-1'")]), "one"))],
        False,
    ),
    "another class": (mixed((1, 0)), [(1, shape(claims(any=[exactly(device_class="fpga")]), "any"))], False),
}


@pytest.mark.parametrize("name", CASES)
def test_gangs_fit_with_their_devices(name: str) -> None:
    cluster, pods, fits = CASES[name]
    assert (shortfall(cluster, *pods) is None) is fits


def partitioned(allocated: Sequence[str] = ()) -> Cluster:
    """Return a node with two GPUs that are used whole, in halves, or in quarters."""
    devices, counters = [], []
    for gpu in ("x", "y"):
        counters.append({"name": gpu, "counters": {"memory": {"value": "80Gi"}}})
        for part, count, memory in (("whole", 1, "80Gi"), ("half", 2, "40Gi"), ("quarter", 4, "20Gi")):
            consumes = [{"counterSet": gpu, "counters": {"memory": {"value": memory}}}]
            devices += [a_device(f"{gpu}-{part}-{at}", part, memory, consumesCounters=consumes) for at in range(count)]
    collector = a_collector({"one": devices}, sharedCounters=counters)
    allocate(collector, "claim", *(("one", name) for name in allocated))
    return as_cluster("east", collector)


def of_part(part: str) -> PodShape:
    return shape(claims(part=[exactly(1, f"device.attributes['{DRIVER}'].model == '{part}'")]), "part")


@pytest.mark.parametrize(
    ("allocated", "parts", "fits"),
    [
        ((), {"whole": 2}, True),
        ((), {"half": 4}, True),
        ((), {"half": 5}, False),
        ((), {"quarter": 8}, True),
        (("x-quarter-0",), {"whole": 1}, True),
        (("x-quarter-0",), {"whole": 2}, False),
        (("x-quarter-0",), {"half": 3}, True),
        (("x-whole-0",), {"quarter": 5}, False),
        ((), {"whole": 1, "quarter": 1}, True),
        ((), {"whole": 1, "quarter": 5}, False),
        ((), {"whole": 2, "quarter": 1}, False),
    ],
)
def test_partitions_share_their_device(allocated: Sequence[str], parts: Mapping[str, int], fits: bool) -> None:
    pods = [(count, of_part(part)) for part, count in parts.items()]
    assert (shortfall(partitioned(allocated), *pods) is None) is fits


def decide(request: PodShape, *clusters: Cluster, replicas: int = 1) -> Decision:
    unit = a_unit(
        gvk=DEPLOYMENT,
        desired_replicas=replicas,
        mode=SchedulingMode.DIVIDE,
        request=dict(request.request),
        node_needs=request.needs,
    )
    return ENGINE.decide(unit, Snapshot(1, clusters), DEFAULT_PROFILE, now=NOW)


def test_what_no_cluster_has_waits_and_says_so() -> None:
    decision = decide(shape(claims(big=[exactly(2, LARGE)]), "big"), mixed((1, 3)), replicas=3)
    assert decision.outcome is Outcome.NO_FEASIBLE_CLUSTER
    text = "needs 2 devices of class gpu.example.com with memory >= 40Gi on one node; cluster east has 1"
    assert decision.reason.startswith(text)


def test_replicas_go_where_the_devices_are() -> None:
    few, many = (
        as_cluster("few", a_collector({"n": [a_device("a")]})),
        as_cluster("many", a_collector({"n": [a_device(str(at)) for at in range(8)]})),
    )
    decision = decide(shape(claims(big=[exactly(2, LARGE)]), "big"), few, many, replicas=3)
    assert decision.placements == {"many": 3}


def test_needs_have_the_words_of_their_selectors() -> None:
    [(need, count)] = needs_of(
        claims(big=[exactly(2, LARGE, SMALL)]).of(
            {"resourceClaims": [{"name": "x", "resourceClaimTemplateName": "big"}]}
        )
    )
    assert device_text(need.resource, count) == (
        "2 devices of class gpu.example.com with model == 't4' and memory >= 40Gi"
    )
    assert a_claim_template("x")["kind"] == "ResourceClaimTemplate"
