"""Compare the rights that we have in a member with those that the federated types need.

The account cannot extend its own rights: the right to do that would equal all rights. A type that is federated after
the join therefore needs an administrator of the member, and the condition `Authorized` names the missing rights and
the command. Only objects of that type are held in that member, because its cache of them stays incomplete. The rights
come from a SelfSubjectRulesReview, one request per check; a member that does not answer it gets no condition.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import orjson

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery import conditions
from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import ApiError, ClusterError
from federation.client.client import Client
from federation.controllers.cluster.names import (
    EVENT_RIGHTS_MISSING,
    REASON_RIGHTS_EXCESSIVE,
    REASON_RIGHTS_MISSING,
    REASON_RIGHTS_SUFFICIENT,
)
from federation.controllers.cluster.statuswriter import ConditionWanted, Publisher
from federation.planning.clusters.memberrights import UPDATE_ALL, describe_rights, find_missing_rights, is_unrestricted
from federation.runtime.events import WARNING, Recorder

_PATH = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
_TIMEOUT_S = 10.0
_BYTES_MAX = 1024 * 1024
_RULES_MAX = 2_000
"""Rules of one review; an account of ours has about 20."""


class RightsCheck:
    """Checks the rights in one member, periodically and when the federated types or the credentials changed."""

    def __init__(
        self,
        cluster: str,
        types: Callable[[], Sequence[FederatedType]],
        publisher: Publisher,
        recorder: Recorder,
        clock: Clock,
        *,
        period_s: float,
        version: str,
    ) -> None:
        self._cluster = cluster
        self.types = types
        self._publisher = publisher
        self._recorder = recorder
        self._clock = clock
        self._period_s = period_s
        self._version = version
        self._due_s = float("-inf")
        self._is_expired = False
        """Whether `expire` was called since the last check began, which may have used earlier credentials."""
        self._condition: ConditionWanted | None = None
        self._compared: tuple[list[dict[str, Any]], Sequence[FederatedType]] | None = None
        """The rules and the types that the condition is for."""

    @property
    def is_due(self) -> bool:
        """Whether the next call of `condition` queries the member."""
        return self._clock.monotonic() >= self._due_s

    def expire(self) -> None:
        """Check again at the next call of `condition`, also if a check is under way."""
        self._is_expired = True
        self._due_s = float("-inf")

    async def condition(self, member: Client) -> ConditionWanted | None:
        """Return the condition to publish, None while nothing is known."""
        if not self.is_due:
            return self._condition
        self._is_expired = False
        held = await _review(member)
        if not self._is_expired:
            self._due_s = self._clock.monotonic() + self._period_s
        if held is not None:
            compared = (held, self.types())
            if self._condition is None or compared != self._compared:  # they hardly ever change
                self._condition = to_condition(self._cluster, *compared, version=self._version)
                self._compared = compared
            self._emit_event(self._condition)
        return self._condition

    def _emit_event(self, wanted: ConditionWanted) -> None:
        cluster = self._publisher.cluster(self._cluster)
        if cluster is None or wanted.status == "True":
            return
        published = conditions.find((cluster.get("status") or {}).get("conditions"), wanted.type)
        if published is None or published.get("message") != wanted.message:
            self._recorder.event(cluster, WARNING, EVENT_RIGHTS_MISSING, wanted.message)


def to_condition(
    cluster: str, held: list[dict[str, Any]], types: Iterable[FederatedType], version: str
) -> ConditionWanted:
    """Return the condition `Authorized` for the rules that a rules review lists."""
    command = f"fedctl join --update-credentials {cluster} --kubeconfig FILE"
    missing = find_missing_rights(held, types)
    if missing:
        text = (
            f"the credentials lack rights in the member that version {version} needs for the federated types:"
            f" {describe_rights(missing)}; grant them with: {command}, or in all members with: {UPDATE_ALL}"
        )
        return ConditionWanted(names.CLUSTER_AUTHORIZED, "False", REASON_RIGHTS_MISSING, text, is_exact=True)
    if is_unrestricted(held):
        text = f"the credentials allow everything in the member; restrict them to the federated types with: {command}"
        return ConditionWanted(names.CLUSTER_AUTHORIZED, "True", REASON_RIGHTS_EXCESSIVE, text, is_exact=True)
    text = "the credentials have the rights of all federated types"
    return ConditionWanted(names.CLUSTER_AUTHORIZED, "True", REASON_RIGHTS_SUFFICIENT, text, is_exact=True)


async def _review(member: Client) -> list[dict[str, Any]] | None:
    """Return the resource rules, None if the member does not know them all or does not answer."""
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": names.SYSTEM_NAMESPACE},
    }
    try:
        code, answer = await member.raw("POST", _PATH, body=body, timeout_s=_TIMEOUT_S)
        is_usable = code in (200, 201) and len(answer) <= _BYTES_MAX
        status = orjson.loads(answer).get("status") if is_usable else None
    except (ApiError, ClusterError, orjson.JSONDecodeError, AttributeError):
        return None
    rules = status.get("resourceRules") if isinstance(status, dict) else None
    if not isinstance(rules, list) or not isinstance(status, dict) or status.get("incomplete"):
        return None
    if len(rules) > _RULES_MAX:
        return None
    return [rule for rule in rules if isinstance(rule, dict)]
