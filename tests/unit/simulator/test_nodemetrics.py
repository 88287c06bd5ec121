"""The simulated use of nodes: that of their pods, and a little for the system."""

from datetime import UTC, datetime
from typing import Any

from federation.simulator.nodemetrics import measure_nodes


def a_node(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"zone": "a"}}}


def test_a_node_uses_what_its_pods_use() -> None:
    pods = [
        {"metadata": {"name": name, "namespace": "shop"}, "spec": {"nodeName": node}}
        for name, node in (("web-1", "n1"), ("web-2", "n1"), ("idle", "n2"), ("waiting", ""))
    ]
    usage = {"cpu": "250m", "memory": "64Mi"}
    metrics = [
        {"metadata": {"name": name, "namespace": "shop"}, "containers": [{"name": "main", "usage": usage}]}
        for name in ("web-1", "web-2", "waiting", "gone")
    ]
    first, second = measure_nodes([a_node("n1"), a_node("n2")], pods, metrics, datetime(2026, 1, 1, tzinfo=UTC))
    assert first["usage"] == {"cpu": "550m", "memory": f"{(256 + 128) * 1024}Ki"}
    assert second["usage"] == {"cpu": "50m", "memory": f"{256 * 1024}Ki"}
    assert (first["metadata"], first["timestamp"]) == ({"name": "n1", "labels": {"zone": "a"}}, "2026-01-01T00:00:00Z")
