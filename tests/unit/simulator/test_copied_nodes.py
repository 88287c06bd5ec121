"""Nodes that are rebuilt from what a cluster reported report the same."""

import random
from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.clustersums import aggregate

from federation.planning.clusters.nodeclasses import to_texts
from federation.twin.nodes import amounts_of, copied_nodes, filled_nodes

_GIB = 1 << 30
_nodes = st.lists(
    st.tuples(
        st.integers(1, 64),  # cores
        st.integers(1, 256),  # GiB
        st.integers(0, 100),  # per cent in use
        st.sampled_from(("", "ssd", "gpu")),
        st.booleans(),  # with a taint
    ),
    max_size=8,
)


@given(_nodes)
@settings(max_examples=25)
def test_rebuilt_nodes_report_what_the_original_ones_did(shapes: list[tuple[int, int, int, str, bool]]) -> None:
    nodes, pods = [], []
    for number, (cores, gib, used, disk, has_taint) in enumerate(shapes):
        labels = {"disk": disk} if disk else {}
        taints = [{"key": "dedicated", "effect": "NoSchedule"}] if has_taint else []
        nodes.append(_node(f"n{number}", labels, taints, {"cpu": str(cores), "memory": f"{gib}Gi", "pods": "110"}))
        requests = {"cpu": f"{cores * 10 * used}m", "memory": str(gib * _GIB * used // 100)}
        pods.append(_pod(f"n{number}", requests))
    original = aggregate(nodes, pods).to_status()
    copied = copied_nodes("east", original)
    again = aggregate(
        [_node(each.shape.name, each.shape.labels, each.shape.taints, to_texts(each.allocatable)) for each in copied],
        [
            _pod(
                each.shape.name,
                to_texts({n: a - each.free.get(n, 0) for n, a in each.allocatable.items() if n != "pods"}),
            )
            for each in copied
        ],
    ).to_status()
    assert again["schedulableNodes"] == original["schedulableNodes"]
    assert amounts_of(again["allocatable"]) == amounts_of(original["allocatable"])
    assert [_without_pods(each) for each in again.get("nodeClasses", [])] == [
        _without_pods(each) for each in original.get("nodeClasses", [])
    ]


def test_a_cluster_that_reported_nothing_or_nonsense_has_no_nodes() -> None:
    assert copied_nodes("east", {}) == []
    odd = {"nodeClasses": [{"nodes": 2, "largest": {"cpu": "many"}, "free": [{"nodes": 9, "resources": {"cpu": "1"}}]}]}
    assert [node.allocatable for node in copied_nodes("east", odd)] == [{}, {}]


def _node(name: str, labels: object, taints: object, allocatable: dict[str, str]) -> dict[str, object]:
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": list(taints)},  # type: ignore[call-overload]
        "status": {"allocatable": allocatable},
    }


def _pod(node: str, requests: dict[str, str]) -> dict[str, object]:
    return {"spec": {"nodeName": node, "containers": [{"name": "main", "resources": {"requests": requests}}]}}


def _without_pods(node_class: dict[str, object]) -> dict[str, object]:
    """Return a class without its numbers of pods: those of the copy are set when its pods run."""

    def strip(amounts: dict[str, str]) -> dict[str, str]:
        return {name: text for name, text in amounts.items() if name != "pods"}

    free = [
        (each["nodes"], strip(each["resources"]))
        for each in node_class.get("free", ())  # type: ignore[attr-defined]
        if strip(each["resources"])
    ]
    merged: dict[str, int] = {}
    for nodes, resources in free:
        merged[str(resources)] = merged.get(str(resources), 0) + nodes
    return {**node_class, "free": merged, "largest": strip(node_class["largest"])}  # type: ignore[arg-type]


_pods_of_fleet = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from((50, 100, 250, 500, 1500)), st.sampled_from((64, 512))), max_size=40
)


@given(_pods_of_fleet, st.randoms(use_true_random=False))
@settings(max_examples=50)
def test_filled_nodes_have_the_free_room_of_the_original_wherever_the_pods_are(
    placed: list[tuple[int, int, int]], rng: random.Random
) -> None:
    """In the copy the pods arrive in another order, and fit only into what was used; those that do not are bound."""
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    nodes = [_node(f"n{number}", {}, [], amounts) for number in range(4)]
    requests = [{"cpu": f"{cpu}m", "memory": f"{memory}Mi"} for _, cpu, memory in placed]
    original = aggregate(
        nodes, [_pod(f"n{at}", request) for (at, _, _), request in zip(placed, requests, strict=True)]
    ).to_status()
    copied = copied_nodes("east", original)
    held: dict[str, dict[str, int]] = {node.shape.name: {} for node in copied}
    pending = []
    for number, request in enumerate(rng.sample(requests, len(requests))):
        wanted = amounts_of(request)
        for node in copied:
            own = held[node.shape.name]
            if all(
                own.get(name, 0) + amount <= node.allocatable[name] - node.free.get(name, 0)
                for name, amount in wanted.items()
            ):
                held[node.shape.name] = {name: own.get(name, 0) + amount for name, amount in wanted.items()}
                break
        else:
            pending.append((("default", str(number)), wanted))
    filled = filled_nodes(copied, held, pending, {})
    known = dict(pending)
    assert sorted(key for node in filled.values() for key in node.bound) == sorted(known)
    pods = []
    for name, node in filled.items():
        pods += [_pod(name, to_texts(held[name])), _pod(name, to_texts(node.others))]
        pods += [_pod(name, to_texts(known[key])) for key in node.bound]
    again = aggregate(
        [_node(name, {}, [], to_texts(node.allocatable)) for name, node in filled.items()], pods
    ).to_status()
    for field in ("allocatable", "available"):
        assert amounts_of(again[field]) == amounts_of(original[field])
    assert _frees(again) == _frees(original)


def _frees(status: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return cpu and memory that are free on each node."""
    found = []
    for each in status["nodeClasses"]:
        for entry in each["free"]:
            free = amounts_of(entry["resources"])
            found += [(free["cpu"], free["memory"])] * int(entry["nodes"])
    return sorted(found)
