"""The autoscalers in members that own the replicas of delivered objects.

Only an object whose replicas were set through the subresource `scale` is looked up, with one list in the member, when a
write would set them. `managedFields` of the object tell that again after a restart, so nothing is stored. An answer
"none" is short-lived: somebody may have scaled by hand just before an autoscaler was created.
"""

from collections import OrderedDict
from dataclasses import dataclass

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import Forbidden, NotFound
from federation.apimachinery.resources import HORIZONTAL_POD_AUTOSCALERS
from federation.client.client import Client
from federation.delivery.members.expectations import MemberKey
from federation.planning.drift.scalers import scaler_of

_OWNED_S = 300.0
"""How long the replicas stay an autoscaler's before it is looked up again."""
_NONE_S = 10.0
_PAGE_SIZE = 500
_PAGES_MAX = 10
OBJECTS_MAX = 50_000
"""Answers per cluster, some hundred bytes each; a forgotten one is looked up again."""


async def find_scaler(client: Client, key: MemberKey) -> str:
    """Return the name of the autoscaler in the member that targets the object, "" without one.

    A member that does not serve autoscalers, or does not let us list them, has none. Raises ApiError and ClusterError.
    """
    token, resource = "", key.resource
    for _ in range(_PAGES_MAX):
        try:
            page = await client.list(HORIZONTAL_POD_AUTOSCALERS, key.namespace, limit=_PAGE_SIZE, continue_token=token)
        except (NotFound, Forbidden):
            return ""
        if found := scaler_of(page.items, resource.group, resource.kind, key.name):
            return found
        token = page.continue_token
        if not token:
            break
    return ""


@dataclass(frozen=True, slots=True)
class _Answer:
    scaler: str
    until_s: float


class Scalers:
    """The last answers by member object."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._answers: dict[str, OrderedDict[MemberKey, _Answer]] = {}

    def find(self, key: MemberKey) -> str:
        """Return the autoscaler that owns the replicas as far as is known, "" without one."""
        answer = self._answer(key)
        return "" if answer is None else answer.scaler

    def left_s(self, key: MemberKey) -> float:
        """Return for how many seconds the answer holds, 0 when the member has to be asked."""
        answer = self._answer(key)
        return 0.0 if answer is None else max(answer.until_s - self._clock.monotonic(), 0.0)

    def record(self, key: MemberKey, scaler: str) -> bool:
        """Record an answer; return whether another autoscaler, or none, owns the replicas now."""
        answers = self._answers.setdefault(key.cluster, OrderedDict())
        before = answers.pop(key, None)
        answers[key] = _Answer(scaler, self._clock.monotonic() + (_OWNED_S if scaler else _NONE_S))
        if len(answers) > OBJECTS_MAX:
            answers.popitem(last=False)
        return scaler != (before.scaler if before is not None else "")

    def forget_cluster(self, cluster: str) -> None:
        """Forget a cluster that left or was replaced."""
        self._answers.pop(cluster, None)

    def _answer(self, key: MemberKey) -> _Answer | None:
        answers = self._answers.get(key.cluster)
        return None if answers is None else answers.get(key)
