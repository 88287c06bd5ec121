"""Ask members what is wrong with the pods of workloads that a rollout has changed and that do not become ready.

A member is asked once per workload and interval, in a task of its own: a silent member delays no reconcile. Each answer
counts until the next one. Nothing is watched, so pods cost no memory.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import ApiError, ClusterError
from federation.apimachinery.resources import PODS, Object
from federation.apimachinery.selectors import format_label_selector
from federation.planning.status.podproblems import PodProblem, find_problem
from federation.runtime.controller import Key
from federation.runtime.members import Members

INTERVAL_S = 5.0
_PODS_MAX = 200
"""Pods to read of a workload in a cluster; the problem of others is not found."""


@dataclass(slots=True)
class _Answer:
    asked_s: float
    problem: PodProblem | None = None


class PodReader:
    """Keeps the newest answers. It lives as long as the controller; `enqueue` requeues a rollout for a new answer."""

    def __init__(self, members: Members, clock: Clock, enqueue: Callable[[Key], None]) -> None:
        self._members = members
        self._clock = clock
        self._enqueue = enqueue
        self._answers: dict[Key, dict[str, _Answer]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def forget(self, key: Key) -> None:
        """Discard the answers about a workload."""
        self._answers.pop(key, None)

    def problem(self, key: Key, cluster: str, workload: Object) -> PodProblem | None:
        """Return what was wrong with the pods lately, None if nothing or not known; ask again if that is long ago."""
        answers = self._answers.setdefault(key, {})
        answer, now_s = answers.get(cluster), self._clock.monotonic()
        if answer is None or now_s >= answer.asked_s + INTERVAL_S:
            answer = answers[cluster] = _Answer(now_s, answer.problem if answer is not None else None)
            task = asyncio.create_task(self._ask(key, cluster, workload, answer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return answer.problem

    async def close(self) -> None:
        """End the requests that are under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _ask(self, key: Key, cluster: str, workload: Object, answer: _Answer) -> None:
        try:
            selector = format_label_selector(workload["spec"]["selector"])
            if not selector:
                return
            client = self._members.client(cluster)
            pods = await client.list(PODS, key.namespace, label_selector=selector, limit=_PODS_MAX)
        except (ApiError, ClusterError, KeyError, TypeError, AttributeError):
            return  # What the workload's own status says is all that is known.
        problem = find_problem(pods.items)
        if problem != answer.problem:
            answer.problem = problem
            self._enqueue(key)
