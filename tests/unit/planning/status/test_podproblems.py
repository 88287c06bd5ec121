"""What is wrong with pods that do not become ready, in words."""

from typing import Any

import pytest

from federation.planning.status.podproblems import PodProblem, find_problem, problem_of

CRASHING = {
    "name": "web",
    "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting failed container"}},
    "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "message": "panic: no\n  database"}},
}


def a_pod(
    name: str = "web-1", *, created: str = "2026-01-01T00:00:00Z", is_ready: bool = False, **status: Any
) -> dict[str, Any]:
    held = [{"type": "Ready", "status": "True" if is_ready else "False"}, *status.pop("conditions", ())]
    return {
        "metadata": {"name": name, "creationTimestamp": created},
        "status": {"phase": "Running", "conditions": held, **status},
    }


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (a_pod(is_ready=True), None),
        (a_pod(phase="Succeeded"), None),
        ({**a_pod(), "metadata": {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"}}, None),
        (a_pod(), PodProblem("pod web-1 runs and is not ready")),
        (a_pod(phase="Pending"), PodProblem("pod web-1 is starting")),
        (
            a_pod(phase="Pending", containerStatuses=[{"state": {"waiting": {"reason": "ContainerCreating"}}}]),
            PodProblem("pod web-1 is starting"),
        ),
        (
            a_pod(containerStatuses=[CRASHING]),
            PodProblem(
                "pod web-1: container web is in CrashLoopBackOff: back-off 40s restarting failed container; it ended with"
                " exit code 1 (Error): panic: no database",
                is_broken=True,
            ),
        ),
        (
            a_pod(initContainerStatuses=[{"name": "init", "state": {"terminated": {"exitCode": 2, "reason": "Error"}}}]),
            PodProblem("pod web-1: container init has ended with exit code 2 (Error)", is_broken=True),
        ),
        (
            a_pod(initContainerStatuses=[{"name": "init", "state": {"terminated": {"exitCode": 0}}}]),
            PodProblem("pod web-1 runs and is not ready"),
        ),
        (
            a_pod(
                phase="Pending",
                containerStatuses=[
                    {"name": "web", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image x:1"}}}
                ],
            ),
            PodProblem("pod web-1: container web is in ImagePullBackOff: no such image x:1", is_broken=True),
        ),
        (
            a_pod(
                phase="Pending",
                conditions=[{"type": "PodScheduled", "status": "False", "message": "0/3 nodes: Insufficient cpu"}],
            ),
            PodProblem("pod web-1 is not scheduled: 0/3 nodes: Insufficient cpu"),
        ),
        ({"metadata": None, "status": {"containerStatuses": ["x", {"state": 3}], "conditions": 5}}, PodProblem("pod  is starting")),
    ],
)  # fmt: skip
def test_the_problem_of_a_pod(pod: dict[str, Any], expected: PodProblem | None) -> None:
    assert problem_of(pod) == expected


def test_a_broken_pod_comes_before_newer_ones_and_a_newer_one_before_others() -> None:
    old, new = a_pod("old"), a_pod("new", created="2026-01-02T00:00:00Z")
    broken = a_pod("broken", containerStatuses=[CRASHING])
    assert find_problem([old, new]) == PodProblem("pod new runs and is not ready")
    assert "pod broken" in (find_problem([new, broken]) or PodProblem("")).text
    assert find_problem([a_pod(is_ready=True)]) is None


def test_messages_are_cut() -> None:
    waiting = {"reason": "ErrImagePull", "message": "x" * 10_000}
    problem = problem_of(a_pod(containerStatuses=[{"name": "web", "state": {"waiting": waiting}}]))
    assert problem is not None
    assert len(problem.text) < 400
