"""Query all members at the same time, and report those that gave no answer.

A member that fails never hides the answers of the others: commands print what they have, then one line per problem on
standard error, and exit with `PARTIAL`.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from federation.api.names import CLUSTER_READY
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery import conditions
from federation.apimachinery.errors import ApiError, ClusterError, ConfigurationError, Forbidden
from federation.cli.members.access import Member
from federation.terminal.kubeconfigcontext import get_json

if TYPE_CHECKING:
    from federation.client.http import HTTPClient

T = TypeVar("T")
_CLUSTERS = "/federation/v1/clusters"
PARTIAL = 3
"""The exit code when some members gave no answer and others did."""
_PATIENCE_S, _LITTLE_PATIENCE_S = 10.0, 2.0
"""How long a member may be silent, and one that is not ready."""
_CONCURRENT_MAX = 64
_NAMES_MAX = 5


@dataclass(slots=True)
class Answers(Generic[T]):
    """The answers of members, by name in the order of the members; `problems` says why others did not answer."""

    values: dict[str, T] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)

    @property
    def code(self) -> int:
        """The exit code of a command that needed the answers of all members."""
        if not self.problems:
            return 0
        return PARTIAL if self.values else 1


async def find_members(
    host: "HTTPClient", wanted: Sequence[str], patience_s: float | None, namespace: str
) -> list[Member]:
    """Return the members with these names. Without names: all, or those of the namespace for users who see no more.

    Names are not looked up: who may use the proxy of one cluster need not have the right to list clusters.
    """
    named = dict.fromkeys((name for text in wanted for name in text.split(",") if name), _PATIENCE_S)
    patience = named or await _all(host, namespace)
    return [Member(host, name, patience_s or usual_s) for name, usual_s in patience.items()]


async def _all(host: "HTTPClient", namespace: str) -> dict[str, float]:
    """Return the members, and how long each may be silent."""
    try:
        clusters = {str(item["metadata"]["name"]): item for item in (await host.list(FEDERATED_CLUSTERS)).items}
        patience = {name: _usual_s(clusters[name]) for name in sorted(clusters)}
    except Forbidden as refusal:
        if not namespace:
            raise Forbidden(f"{refusal.message}; name a namespace that you have a role in, with -n") from refusal
        try:
            found: Any = await get_json(host, _CLUSTERS, {"namespace": namespace})
        except Forbidden as second:
            raise Forbidden(f"{refusal.message}; {second.message}") from second
        patience = {str(item["name"]): _PATIENCE_S for item in found.get("items") or ()}
        if not patience:
            raise ConfigurationError(f"nothing of namespace {namespace} is placed in a cluster") from refusal
    if not patience:
        raise ConfigurationError("no member clusters; add one with: fedctl join NAME --kubeconfig FILE")
    return patience


def _usual_s(cluster: Mapping[str, Any]) -> float:
    ready = conditions.find((cluster.get("status") or {}).get("conditions"), CLUSTER_READY)
    return _PATIENCE_S if ready is None or ready.get("status") == "True" else _LITTLE_PATIENCE_S


async def ask(members: Sequence[Member], question: Callable[[Member], Awaitable[T]]) -> Answers[T]:
    """Return the answers of all members, after at most the time that one may take for each of its requests."""
    slots = asyncio.Semaphore(_CONCURRENT_MAX)
    problems: dict[str, str] = {}

    async def answer(member: Member) -> tuple[str, T] | None:
        async with slots:
            try:
                return member.name, await question(member)
            except (ApiError, ClusterError) as error:
                problems[member.name] = describe_problem(member.name, error)
                return None

    found = await asyncio.gather(*map(answer, members))
    ordered = {member.name: problems[member.name] for member in members if member.name in problems}
    return Answers(dict(pair for pair in found if pair is not None), ordered)


def describe_problem(name: str, error: Exception) -> str:
    """Return an error without the name of the member, which messages of the host begin with."""
    text = str(error)
    titles = (f'cluster "{name}"', f"cluster {name}", f'{FEDERATED_CLUSTERS.group_resource} "{name}" is forbidden')
    title = next(filter(text.startswith, titles), "")
    return text.removeprefix(title).lstrip(": ") if title else text


def print_problems(problems: Mapping[str, str]) -> None:
    """Print one line on standard error for each problem; members with the same one share it."""
    for text, names in group_problems(problems):
        print(f"fedctl: {names}: {text}", file=sys.stderr)


def group_problems(problems: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return each problem once, with the names of its members; many names are counted."""
    names_by_text: dict[str, list[str]] = {}
    for name, text in problems.items():
        names_by_text.setdefault(" ".join(text.split()), []).append(name)
    return [(text, _listed(names)) for text, names in names_by_text.items()]


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMES_MAX
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:_NAMES_MAX])} and {more} more"
