"""Division over domains beside what the properties say: traces, replicas on trial, kept ones, capacities that show late."""

from dataclasses import replace

from tests.support.domains import to_tree

from federation.planning.placement.binpack import plan_binpack
from federation.planning.placement.capacity import FreeCapacity, plan_by_capacity
from federation.planning.placement.failback import Offers, plan_with_trials
from federation.planning.placement.nearest import plan_nearest
from federation.planning.placement.replicas import Demand, Plan, Preference, Steps
from federation.planning.placement.topology import Topology, plan_topology_spread
from federation.planning.placement.topologydomains import SpreadConstraint, summarise_skew

LABELS = {"a1": {"zone": "a"}, "a2": {"zone": "a"}, "b1": {"zone": "b"}}
ZONES = Topology(to_tree(LABELS, (SpreadConstraint("zone"),)))
DEMAND = Demand(9, tuple(LABELS), dict.fromkeys(LABELS, Preference(1)), key="default/web")


def test_the_trace_names_the_domains_and_then_what_happened_inside_of_each() -> None:
    steps: Steps = []
    plan = plan_topology_spread(ZONES, plan_nearest, replace(DEMAND, total=8), steps)
    assert plan.replicas == {"a1": 2, "a2": 2, "b1": 4}
    assert steps[0] == {"step": "topology", "domains": {"a": 4, "b": 4}}
    assert {step.get("domain") for step in steps[1:]} == {"a", "b"}


def test_different_workloads_put_the_odd_replica_into_different_domains() -> None:
    odd = {
        plan_topology_spread(ZONES, plan_nearest, replace(DEMAND, key=f"default/web-{number}")).replicas["b1"]
        for number in range(20)
    }
    assert odd == {4, 5}


def test_replicas_that_a_leaf_cannot_place_go_elsewhere() -> None:
    heavy = replace(DEMAND, preferences={"a1": Preference(1), "a2": Preference(0), "b1": Preference(0)})
    assert plan_topology_spread(ZONES, plan_nearest, heavy).totals() == {
        "a1": 9,
        "a2": 0,
        "b1": 0,
    }  # b may hold nothing
    few = replace(heavy, preferences=dict(heavy.preferences) | {"b1": Preference(0, 2)})
    plan = plan_topology_spread(ZONES, plan_nearest, few)
    assert plan.totals() == {"a1": 3, "a2": 0, "b1": 2}
    assert plan.because == "maxSkew 1 of topology key zone"


def test_a_bin_packed_domain_waits_for_its_members() -> None:
    demand = replace(DEMAND, total=4, current={"a1": 2, "gone": 2}, scheduled={"a1": 1})
    assert plan_topology_spread(ZONES, plan_binpack, demand).totals() == {"a1": 2, "b1": 2}


def test_replicas_return_on_trial_where_the_domains_want_them() -> None:
    demand = replace(DEMAND, total=6, current={"a1": 3, "a2": 3}, estimated={"b1": 0})

    def planner(asked: Demand, steps: Steps | None = None) -> Plan:
        return plan_topology_spread(ZONES, plan_nearest, asked, steps)

    assert plan_with_trials(planner, demand, Offers({"b1": 5}, 2)).totals() == {"a1": 3, "a2": 3, "b1": 2}
    assert plan_with_trials(planner, demand, Offers({"b1": 9}, 9)).totals() == {"a1": 3, "a2": 3, "b1": 3}


def test_replicas_that_cannot_run_are_kept_besides_when_the_policy_wants_it() -> None:
    current = {"a1": 3, "a2": 2, "b1": 4}
    stuck = replace(DEMAND, current=current, estimated={"b1": 3}, keep_unschedulable=True)
    wide = Topology(to_tree(LABELS, (SpreadConstraint("zone", 3),)))
    plan = plan_topology_spread(wide, plan_nearest, stuck)
    assert sum(plan.replicas.values()) == 9
    assert (plan.replicas["b1"], plan.totals()["b1"]) == (3, 4)
    assert plan_topology_spread(wide, plan_nearest, replace(stuck, keep_unschedulable=False)).totals()["b1"] == 3
    assert plan_topology_spread(ZONES, plan_nearest, stuck).totals()["b1"] == 4  # where it waits, because of the skew


def test_few_replicas_wait_so_that_many_run() -> None:
    room = {"a1": 50, "a2": 50, "b1": 2}
    rooms = FreeCapacity(room, room, dict.fromkeys(room, 60))

    def by_room(demand: Demand, steps: Steps | None = None) -> Plan:
        return plan_by_capacity(rooms, demand, steps)

    wide = Topology(to_tree(LABELS, (SpreadConstraint("zone", 10),)), capacity=rooms)
    assert plan_topology_spread(wide, by_room, replace(DEMAND, total=20)).replicas["b1"] == 5
    soft = Topology(to_tree(LABELS, (SpreadConstraint("zone", 10, is_hard=False),)), capacity=rooms)
    assert plan_topology_spread(soft, by_room, replace(DEMAND, total=20)).replicas["b1"] == 2
    labels = {name: {**found, "host": name} for name, found in LABELS.items()}
    both = (SpreadConstraint("zone", 10), SpreadConstraint("host", 50, is_hard=False))
    mixed = Topology(to_tree(labels, both), capacity=rooms)
    assert plan_topology_spread(mixed, by_room, replace(DEMAND, total=20)).replicas["b1"] == 5, "one hard one is enough"


def test_a_summary_counts_unlabelled_clusters_separately() -> None:
    constraints = (SpreadConstraint("region", is_hard=False), SpreadConstraint("zone", 2, 3))
    labels = {
        "a": {"region": "eu", "zone": "1"},
        "b": {"region": "eu"},
        "c": {"zone": "1"},
        "d": {"region": "eu", "zone": "2"},
    }
    counts = {"a": 3, "b": 2, "c": 4, "d": 9}
    told = summarise_skew(to_tree(labels, constraints), constraints, counts, frozenset("d"), frozenset())
    assert told == [
        {
            "topologyKey": "region",
            "maxSkew": 1,
            "whenUnsatisfiable": "ScheduleAnyway",
            "domains": {"eu": 14},
            "skew": 0,
            "withoutLabel": 4,
        },
        {
            "topologyKey": "zone",
            "maxSkew": 2,
            "whenUnsatisfiable": "DoNotSchedule",
            "minDomains": 3,
            "domains": {"eu/1": 3, "eu/2": 9, "(no label)/1": 4},
            "skew": 0,
            "withoutLabel": 2,
            "notCounted": ["eu/2"],
        },
    ]
