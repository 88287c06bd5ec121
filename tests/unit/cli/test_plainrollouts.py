"""`fedctl rollout status` without waves: what is wrong with the pods of a cluster whose update is not complete."""

from typing import Any

from federation.api import names
from federation.cli.plainrollouts import explain_rows


def test_a_problem_names_a_broken_pod_of_its_own_cluster() -> None:
    waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
    pod = {
        "metadata": {"name": "web-1", "annotations": {names.MEMBER_CLUSTER: "east"}},
        "status": {"containerStatuses": [{"name": "web", "state": {"waiting": waiting}}]},
    }
    problem = "1 old replicas are being removed"
    rows: list[dict[str, Any]] = [
        {"cluster": "east", "rollout": {"problem": problem}},
        {"cluster": "north", "rollout": {"problem": problem}},
        {"cluster": "west", "rollout": {"problem": ""}},
        {"cluster": "south", "rollout": None},
    ]
    explain_rows(rows, [pod, {"metadata": {"name": "on the host"}}])
    assert [(row["rollout"] or {}).get("problem") for row in rows] == [
        f"{problem}: pod web-1: container web is in ImagePullBackOff: no such image",
        problem,
        "",
        None,
    ]
