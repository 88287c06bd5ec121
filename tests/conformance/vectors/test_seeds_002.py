"""Seed 002: the planner of sharded services gives the limits, constraints, feasible nodes and verdicts of the vectors.

The cases have several forms, which `manifest` distinguishes by its keys. A case without one lists the requirements in
words; it is checked against the rules that report their violation.
"""

import itertools
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from tests.support.vectors import each_case, filled, load

from federation.features.topologyspreadplan.rules.assignment import Zones
from federation.features.topologyspreadplan.rules.check import Distribution, Node, Pod, check
from federation.features.topologyspreadplan.rules.constraints import (
    ZONE_KEYS,
    Labels,
    build_constraints,
    has_constraints,
)
from federation.features.topologyspreadplan.rules.feasibility import feasible_nodes
from federation.features.topologyspreadplan.rules.planner import (
    Outcome,
    Plan,
    plan_service,
    run,
    search_from,
    search_unpinned,
)
from federation.features.topologyspreadplan.rules.search import SearchOutcome, SearchResult, Shard, State
from federation.features.topologyspreadplan.rules.shardedservice import (
    Limits,
    Service,
    Skews,
    Zone,
    compute_limits,
    limits_of,
)

CASES = load("seeds-002-redis-topology-spread")
HOSTNAME = "kubernetes.io/hostname"


def _cases(*prefixes: str) -> list[dict[str, Any]]:
    return [case for case in CASES if case["name"].split()[0] in prefixes]


def _given(case: Mapping[str, Any], **defaults: Any) -> dict[str, Any]:
    return filled(case["input"].get("manifest") or {}, **defaults)


def _service(zones: int, nodes: int, shards: int, replicas: int) -> Service:
    return Service(tuple(Zone(f"zone-{number}", nodes) for number in range(zones)), shards, replicas)


def test_every_case_is_checked() -> None:
    known = {f"002-{number}" for number in range(1, 20)}
    assert {case["name"].split()[0] for case in CASES} <= known


@each_case(_cases("002-1"), is_whole=False)
def test_the_limits_of_the_extension_scheduler_are_the_computed_ones(case: dict[str, Any]) -> None:
    given = _given(case, **{"cluster-size": 0, "available-zones": []})
    caps = filled(case["expected"].get("caps") or {}, node=0, zone=0)
    zones = max(2, len(given["available-zones"]))
    explicit = compute_limits(
        given["cluster-size"], zones, node_max=given.get("max-pod-on-node"), zone_max=given.get("max-pod-in-zone")
    )
    assert explicit == Limits(caps["node"], caps["zone"])
    assert compute_limits(given["cluster-size"], zones) == Limits(caps["node"], caps["zone"])


@each_case(_cases("002-2"), is_whole=False)
def test_the_limits_follow_the_formulas(case: dict[str, Any]) -> None:
    limits = compute_limits(_given(case, pods=0)["pods"], 3)
    expected = filled(case["expected"], **{"node.maxSkew": 0, "zone.maxSkew": 0})
    assert limits == Limits(expected["node.maxSkew"], expected["zone.maxSkew"])
    assert limits.zone is not None
    for name, limit in (("node", limits.node), ("zone", limits.zone)):
        assert expected.get(f"{name}_constraint_usable", limit > 0) is (limit > 0)
    skews = limits.skews
    assert skews.node >= 1
    assert skews.zone is not None
    assert skews.zone >= 1


@each_case(_cases("002-3", "002-4", "002-5"), is_whole=False)
def test_the_constraints_have_the_fields_of_the_seed(case: dict[str, Any]) -> None:
    manifest = _given(case, topologyKey=HOSTNAME, whenUnsatisfiable="DoNotSchedule")
    aliases = dict.fromkeys(ZONE_KEYS, ZONE_KEYS[1])
    counts = {int(key[2:]): value for key, value in filled(case["expected"]).items() if key.startswith("N=")} or {6: 1}
    for pods, max_skew in counts.items():
        skews = compute_limits(pods, 3).skews
        built = build_constraints(Labels({"app": "ncr"}, {"shard": "0"}), ["zoneA"], skews)
        found = [
            constraint
            for constraint in built["topologySpreadConstraints"]
            if aliases.get(constraint["topologyKey"], HOSTNAME) == manifest["topologyKey"]
            and constraint["whenUnsatisfiable"] == manifest["whenUnsatisfiable"]
        ]
        assert [constraint["maxSkew"] for constraint in found] == [max_skew]
        keys = [(each["topologyKey"], each["whenUnsatisfiable"]) for each in built["topologySpreadConstraints"]]
        assert len(keys) == len(set(keys)) == 4


@each_case(_cases("002-6"), is_whole=False)
def test_the_generated_constraints_contain_those_of_the_printed_pod(case: dict[str, Any]) -> None:
    source = filled(case["expected"].get("generated_from") or {}, zones=[], shards=1, replicasPerShard=2, shardIndex=0)
    spec = _given(case, spec={})["spec"]
    caps = filled(case["expected"].get("caps") or {}, node=1, zone=None)
    skews = compute_limits(source["shards"] * source["replicasPerShard"], len(source["zones"])).skews
    assert skews == Skews(caps["node"], caps["zone"])
    labels = Labels(
        {
            "cloud.netease.com.ncr/type": "endpoints",
            "cloud.netease.com/app": "ncr",
            "cloud.netease.com/cluster-name": "rediscluster-3az-6379",
        },
        {"cloud.netease.com.ncr/ncrnode": f"rediscluster-3az-6379-{source['shardIndex']}"},
        ZONE_KEYS[1],
    )
    built = build_constraints(labels, source["zones"], skews)
    assert built["affinity"] == spec.get("affinity")
    hard = [each for each in built["topologySpreadConstraints"] if each["whenUnsatisfiable"] == "DoNotSchedule"]
    assert hard == spec.get("topologySpreadConstraints")
    assert not has_constraints(spec, built), "the printed pod lacks the soft constraints"


@each_case(_cases(*(f"002-{number}" for number in range(7, 13))), is_whole=False)
def test_a_step_has_the_feasible_nodes_of_the_vectors(case: dict[str, Any]) -> None:
    given = _given(case, next="", zones={}, placed={}, nodeMaxSkew=1, antiAffinity="zone")
    zones = {node: zone for zone, nodes in given["zones"].items() for node in nodes or ()}
    is_zoned, placed = given["antiAffinity"] == "zone", given["placed"]
    skews = Skews(given["nodeMaxSkew"], given.get("zoneMaxSkew") or len(zones) if is_zoned else None)
    shard = given["next"].rpartition("-")[0]
    used = {node for pod, node in placed.items() if pod.rpartition("-")[0] == shard}
    found = feasible_nodes(Counter(placed.values()), zones, used, skews)
    expected = filled(case["expected"], feasibleNodes=[], deadlock=False)
    assert found == expected["feasibleNodes"]
    assert (not found) is expected["deadlock"]


def _searched(manifest: Mapping[str, Any]) -> tuple[Service, SearchResult, bool]:
    """Return the service, the search, and whether its domains are zones."""
    given = filled(manifest, zones=1, nodesPerZone=1, shards=1, replicasPerShard=2, nodeMaxSkew=1)
    service = _service(given["zones"], given["nodesPerZone"], given["shards"], given["replicasPerShard"])
    is_zoned = given.get("antiAffinity", "zone" if given["zones"] > 1 else "node") != "node"
    zone_skew = given.get("zoneMaxSkew")
    skews = Skews(given["nodeMaxSkew"], (zone_skew or service.pods) if is_zoned else None)
    return service, run(search_unpinned(service, skews)), is_zoned


def _orders(state: State) -> set[State]:
    """Return the states that differ from this one only in the order of zones."""
    numbers = range(len(state.domains))
    found = set()
    for order in itertools.permutations(numbers):

        def moved(mask: int, order: tuple[int, ...] = order) -> int:
            return sum(1 << place for place, number in enumerate(order) if mask >> number & 1)

        shards = (Shard(each.missing, moved(each.allowed), moved(each.used)) for each in state.shards)
        found.add(State(tuple(state.domains[number] for number in order), tuple(sorted(shards))))
    return found


@each_case(_cases("002-13", "002-14", "002-19"), is_whole=False)
def test_the_search_finds_the_deadlocks_and_the_worst_case(case: dict[str, Any]) -> None:
    service, found, is_zoned = _searched(case["input"].get("manifest") or {})
    expected = filled(case["expected"])
    limits = limits_of(service)
    in_zone = found.maxima.domain if is_zoned else service.pods
    facts = {
        "deadlock_possible": found.verdict is SearchOutcome.DEADLOCK,
        "completable": found.is_completable,
        "deadlock_states_up_to_node_order_inside_zone": len(set().union(*map(_orders, found.deadlocks))),
        "max_pods_on_node": found.maxima.node,
        "max_pods_in_zone": in_zone,
        "worst_case_max_pods_on_node": found.maxima.node,
        "worst_case_max_pods_in_zone": in_zone,
        "node_share_limit_can_be_broken": found.maxima.node > limits.node,
        "zone_share_limit_can_be_broken": None
        if len(service.zones) < 3 or limits.zone is None
        else found.maxima.domain > limits.zone,
    }
    assert found.verdict is not SearchOutcome.TOO_LARGE
    for key, value in expected.items():
        if key == "limit":
            count = int(value.split()[0])
            assert count == found.maxima.node > limits.node
        else:
            assert (facts[key] or None) == (value or None), key


@each_case(_cases("002-15"), is_whole=False)
def test_new_shards_are_searched_from_the_running_ones(case: dict[str, Any]) -> None:
    given = _given(case, addShards=0, newNodeMaxSkew=1, newZoneMaxSkew=1)
    domains = ((1, 1),) * 3
    start = State(domains, (Shard(2, 0b111, 0),) * given["addShards"])
    found = run(search_from(start, Skews(given["newNodeMaxSkew"], given["newZoneMaxSkew"])))
    expected = filled(case["expected"], deadlock_possible=False)
    assert (found.verdict is SearchOutcome.DEADLOCK) is expected["deadlock_possible"]
    assert found.maxima.node == expected.get("worst_case_max_pods_on_node", found.maxima.node)
    assert found.maxima.domain == expected.get("worst_case_max_pods_in_zone", found.maxima.domain)
    assert compute_limits(given.get("pods") or 10, 3).skews == Skews(given["newNodeMaxSkew"], given["newZoneMaxSkew"])


@each_case(_cases("002-16"), is_whole=False)
def test_the_checker_reports_what_a_scale_in_breaks(case: dict[str, Any]) -> None:
    given = _given(case, placement=[], zones={}, removeShards=[], shards=0)
    zones = given["zones"]
    service = Service(tuple(Zone(name, len(nodes or ())) for name, nodes in zones.items()), given["shards"])
    left = [nodes for shard, nodes in enumerate(given["placement"]) if shard not in given["removeShards"]]
    service = Service(service.zones, len(left))
    plan = run(plan_service(service))
    nodes = tuple(Node("", node, zone) for zone, names in zones.items() for node in names or ())
    pods = tuple(
        Pod("", f"redis-{shard}-{ordinal}", shard, node)
        for shard, names in enumerate(left)
        for ordinal, node in enumerate(names)
    )
    expected = filled(case["expected"], nodeCounts={}, zoneCounts={}, violations=[])
    assert Counter(pod.node for pod in pods) == expected["nodeCounts"]
    by_node = {node.name: node.zone for node in nodes}
    assert Counter(by_node.get(pod.node, "") for pod in pods) == expected["zoneCounts"]
    found = check(plan, Distribution(nodes, pods))
    rules = {"node": "V2", "zone": "V3"}
    wanted = {
        (rules[kind], each[kind], each.get("count"))
        for each in expected["violations"] or ()
        for kind in rules
        if each.get(kind)
    }
    assert {(each.rule, each.domain, each.count) for each in found} == wanted


@each_case(_cases("002-17"), is_whole=False)
def test_the_validated_operations_complete(case: dict[str, Any]) -> None:
    """Create, scale out and in, delete a pod and schedule it again: always with a feasible node."""
    given = _given(case, az="three AZ", shardPath=[3], operations=[])
    words = {"single": 1, "two": 2, "three": 3}
    count = words[given["az"].split()[0]]
    nodes = {f"node-{number}": f"zone-{number * count // 6}" for number in range(6)}
    placed: dict[tuple[int, int], str] = {}
    for shards in given["shardPath"]:
        placed = {pod: node for pod, node in placed.items() if pod[0] < shards}
        plan = run(plan_service(_service(count, 6 // count, shards, 2)))
        assert plan.outcome is Outcome.FREE
        for pod in [
            (shard, ordinal) for ordinal in (0, 1) for shard in range(shards) if (shard, ordinal) not in placed
        ]:
            placed[pod] = _schedule(plan, nodes, placed, pod)
        assert len(placed) == 2 * shards
        if "rebuild" in given["operations"]:
            for pod in list(placed):
                del placed[pod]
                placed[pod] = _schedule(plan, nodes, placed, pod)
        has_surge = any(_feasible(plan, nodes, placed, (shard, 2)) for shard in range(shards))
        assert has_surge or "vertical upgrade" not in given["operations"]
        assert has_surge is all(finding.reason != "NoSurge" for finding in plan.findings)


def _feasible(plan: Plan, nodes: dict[str, str], placed: dict[tuple[int, int], str], pod: tuple[int, int]) -> list[str]:
    used = {node for other, node in placed.items() if other[0] == pod[0]}
    zones: Zones = tuple(zone.name for zone in plan.service.zones)
    if pod[1] < plan.service.replicas:
        zones = plan.zones[pod[0]]
    return feasible_nodes(Counter(placed.values()), nodes, used, plan.skews, allowed=zones)


def _schedule(plan: Plan, nodes: dict[str, str], placed: dict[tuple[int, int], str], pod: tuple[int, int]) -> str:
    """Return the feasible node with the fewest pods, as the soft constraints prefer."""
    counts = Counter(placed.values())
    totals: Counter[str] = Counter(nodes[node] for node in placed.values())
    return min(_feasible(plan, nodes, placed, pod), key=lambda node: (totals[nodes[node]], counts[node]))


REQUIREMENTS = {
    r"never on one node|never in one zone": "V1",
    r"on one node < 1/3": "V2",
    r"in one zone < 1/2": "V3",
    r"split evenly over the two zones": "V4",
    r"no extreme difference": "V6",
}
"""What the seed requires, and the rule that reports its violation."""


@each_case(_cases("002-18"), is_whole=False)
def test_a_violation_of_each_requirement_is_reported(case: dict[str, Any]) -> None:
    zones = {"single AZ": 1, "two AZ": 2, "three or more AZ": 3}
    for name, requirements in case["expected"].items():
        count = zones[name]
        plan = run(plan_service(_service(count, 6, 6, 2)))
        nodes = tuple(Node("", f"n-{zone}-{number}", f"zone-{zone}") for zone in range(count) for number in range(6))
        crowded = tuple(Pod("", f"redis-{shard}-{ordinal}", shard, "n-0-0") for shard in range(6) for ordinal in (0, 1))
        found = {violation.rule for violation in check(plan, Distribution(nodes, crowded))}
        for requirement in requirements or ():
            rules = [rule for pattern, rule in REQUIREMENTS.items() if re.search(pattern, requirement)]
            assert set(rules) <= found, requirement
            is_soft = "spread over nodes as far as possible" in requirement
            assert rules or is_soft, requirement
            if is_soft:
                built = build_constraints(Labels({"a": "b"}, {"c": "d"}), ["zone-0"], plan.skews)
                soft = [e for e in built["topologySpreadConstraints"] if e["whenUnsatisfiable"] == "ScheduleAnyway"]
                assert [e["maxSkew"] for e in soft] == [1, 1]
