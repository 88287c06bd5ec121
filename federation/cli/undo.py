"""The command `fedctl undo`: restore the placement before the last move, of one object or of all that a cause moved.

It annotates the users' objects with the time of the move; the control plane restores the placement.
"""

import asyncio
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from federation.api import names
from federation.api.federatedtype import FederatedType, from_config
from federation.api.resources import (
    CLUSTER_FEDERATED_OBJECTS,
    CLUSTER_PROPAGATION_POLICIES,
    FEDERATED_CLUSTERS,
    FEDERATED_OBJECTS,
    FEDERATED_TYPE_CONFIGS,
    PROPAGATION_POLICIES,
    SCHEDULING_PROFILES,
)
from federation.apimachinery.clock import SystemClock, from_rfc3339
from federation.apimachinery.errors import ConfigurationError, Forbidden, NotFound
from federation.apimachinery.listening import Patience
from federation.apimachinery.resources import NAMESPACES, Object, Resource, group_kind_of
from federation.cli.applications.deliveryview import read_delivery
from federation.planning.federatedobject.placements import current_clusters
from federation.planning.guard.ledger import Cause
from federation.planning.guard.record import PastMove, past_move
from federation.planning.guard.undo import UNDO_WINDOW
from federation.planning.status.schedulingsummary import describe_move
from federation.plans.kinds import ServedKinds, split_target
from federation.terminal import candidates, flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext

if TYPE_CHECKING:
    from federation.client.http import HTTPClient

_CAUSES = (
    PROPAGATION_POLICIES,
    CLUSTER_PROPAGATION_POLICIES,
    SCHEDULING_PROFILES,
    FEDERATED_TYPE_CONFIGS,
    FEDERATED_CLUSTERS,
    NAMESPACES,
)
_POLL_S = 0.2
Found = tuple[Object, FederatedType, PastMove]
"""A federated object, its type, and its last move."""


def undo_command(
    target: Annotated[
        str,
        typer.Argument(metavar="KIND/NAME", autocompletion=candidates.objects, help="An object, or what moved many."),
    ],
    namespace: flags.Namespace = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    timeout: flags.Timeout = 60,
) -> None:
    """Restore the placement before the last move.

    Within an hour, of one object, or of all that a policy, a profile, a type or a cluster moved. The placement stays
    until something changes again, so take the change back as well.

    \b
    fedctl undo deployment/web
    fedctl undo propagationpolicy/web
    """  # noqa: D301  # the backspace keeps lines apart in the help
    execute(undo(KubeconfigContext(kubeconfig, context), target, namespace, timeout_s=timeout))


async def undo(context: KubeconfigContext, target: str, namespace: str, *, timeout_s: float) -> int:
    """Restore the earlier placements and print them; return 1 if some are not restored within the timeout."""
    kind, name = split_target(target, repr(target))
    async with context.client() as host:
        resource = await ServedKinds(host).named(kind)
        try:
            moves = await _moves(host, resource, namespace if resource.namespaced else "", name)
        except Forbidden:
            if resource in _CAUSES:
                raise
            return await _undo_own(host, resource, namespace, name, timeout_s)
        for federated, type_, move in moves:
            metadata = federated["spec"]["template"]["metadata"]
            patch = {"metadata": {"annotations": {names.UNDO: move.at}}}
            await host.patch(type_.resource, metadata["name"], patch, namespace=metadata.get("namespace", ""))
        late = [found for found in moves if not await _is_restored(host, found, timeout_s)]
    for federated, _, _ in late:
        print(f"{_shown(federated)}: not restored within {timeout_s:g} s; its events say why")
    return 1 if late else 0


async def _undo_own(host: "HTTPClient", resource: Resource, namespace: str, name: str, timeout_s: float) -> int:
    """Undo the move of one object for a user who may read it, and no federated object; return the exit code."""
    what = f"{resource.kind} {namespace}/{name}"
    delivery = await read_delivery(host, resource, namespace, name)
    moves = [delivery["lastMove"]] if delivery.get("lastMove") else []
    _check_recent(what, [move["at"] for move in moves])
    [move] = moves
    patch = {"metadata": {"annotations": {names.UNDO: move["at"]}}}
    await host.patch(resource, name, patch, namespace=namespace)
    patience = Patience(SystemClock(), timeout_s)
    while not patience.is_over():
        after = (await read_delivery(host, resource, namespace, name)).get("lastMove")
        if after is None or after["at"] != move["at"]:
            print(f"{what}: back in {', '.join(sorted(move['placement'])) or 'no cluster'}")
            return 0
        await asyncio.sleep(_POLL_S)
    print(f"{what}: not restored within {timeout_s:g} s; its events say why")
    return 1


async def _moves(host: "HTTPClient", resource: Resource, namespace: str, name: str) -> Sequence[Found]:
    """Return the moves to undo; ConfigurationError when there are none, or the only one is too long ago."""
    configs = (await host.list(FEDERATED_TYPE_CONFIGS)).items
    types = {type_.resource.group_kind: type_ for type_ in map(from_config, configs)}
    scope = FEDERATED_OBJECTS if resource.namespaced else CLUSTER_FEDERATED_OBJECTS
    scopes = (FEDERATED_OBJECTS, CLUSTER_FEDERATED_OBJECTS) if resource in _CAUSES else (scope,)
    found: list[Found] = []
    for kind in scopes:
        for federated in (await host.list(kind, namespace=namespace if kind.namespaced else "")).items:
            template, move = federated["spec"]["template"], past_move(federated)
            type_ = types.get(group_kind_of(template))
            if move is None or type_ is None:
                continue
            is_meant = type_.resource.kind == resource.kind and template["metadata"]["name"] == name
            if is_meant or Cause(resource.kind, namespace, name) in move.causes:
                found.append((federated, type_, move))
    what = f"{resource.kind} {namespace}/{name}" if namespace else f"{resource.kind} {name}"
    recent = _check_recent(what, [move.at for _, _, move in found])
    return [each for each in found if each[2].at in recent]


def _check_recent(what: str, times: Sequence[str]) -> Collection[str]:
    """Return those of the times of moves that can be undone; ConfigurationError without any."""
    if not times:
        raise ConfigurationError(f"{what}: no move is recorded that a policy, a type or a cluster caused")
    now = SystemClock().now()
    if recent := {at for at in times if now - from_rfc3339(at) <= UNDO_WINDOW}:
        return recent
    hours = UNDO_WINDOW.total_seconds() / 3600
    raise ConfigurationError(f"{what}: the last move was at {times[0]}, more than {hours:g} h ago")


async def _is_restored(host: "HTTPClient", found: Found, timeout_s: float) -> bool:
    """Wait until the move is not recorded any more, and print the placement."""
    before, type_, move = found
    clock, metadata = SystemClock(), before["metadata"]
    patience = Patience(clock, timeout_s)
    while not patience.is_over():
        kind = FEDERATED_OBJECTS if metadata.get("namespace") else CLUSTER_FEDERATED_OBJECTS
        try:
            after = await host.get(kind, metadata["name"], metadata.get("namespace", ""))
        except NotFound:
            return False
        if (now := past_move(after)) is None or now.at != move.at:
            change = describe_move(current_clusters(before, type_), current_clusters(after, type_))
            print(f"{_shown(before)}: {change or 'it was there already'}")
            return True
        await asyncio.sleep(_POLL_S)
    return False


def _shown(federated: Object) -> str:
    template = federated["spec"]["template"]
    where = "/".join(filter(None, (federated["metadata"].get("namespace"), template["metadata"]["name"])))
    return f"{template['kind']} {where}"
