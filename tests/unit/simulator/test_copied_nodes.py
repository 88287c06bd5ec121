"""Nodes that are rebuilt from what a cluster reported report the same."""

from hypothesis import given, settings
from hypothesis import strategies as st

from federation.planning.clusters.clusterresources import aggregate
from federation.planning.clusters.nodeclasses import to_texts
from federation.twin.nodes import amounts_of, copied_nodes

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
