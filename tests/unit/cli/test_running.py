"""How many replicas run after a move."""

from typing import Any

import pytest

from federation.apimachinery.resources import DEPLOYMENTS
from federation.cli.applications.running import Workload, _running

WEB = Workload(DEPLOYMENTS, "shop", "web")


def a_row(cluster: str, ready: int | None, wanted: int | None, **more: Any) -> dict[str, Any]:
    return {"cluster": cluster, "ready": ready, "wanted": wanted, **more}


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([a_row("east", 2, 2), a_row("west", 3, 2)], "running: deployment/web in shop: 2 in east, 2 in west"),
        ([a_row("west", 5, 2, scaler="web")], "running: deployment/web in shop: 5 in west"),
        ([a_row("west", 3, None)], "running: deployment/web in shop: 3 in west"),
        ([a_row("west", None, None)], "decided: deployment/web in shop; pods of this kind are not counted"),
    ],
    ids=["a replica that is about to stop", "an autoscaler in the cluster", "no wanted number", "no pods are counted"],
)
def test_replicas_that_stay_are_counted(rows: list[dict[str, Any]], says: str) -> None:
    assert _running(WEB, rows) == says
