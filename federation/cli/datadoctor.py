"""`fedctl doctor --data`: workloads that would start on empty volumes, and by which way out of a cluster."""

from collections.abc import Mapping, Sequence
from typing import Any

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_OBJECTS, PLACEMENT_HOLDS
from federation.apimachinery import conditions
from federation.apimachinery.amounts import to_count
from federation.apimachinery.resources import Object
from federation.cli.hostfacts import read_access_modes, read_policies
from federation.planning.diagnosis.dataways import Answer, DataWay, DataWorkload, find_data_ways
from federation.planning.failover.tolerance import AccessModes, FailoverMode, fixed_volumes_of
from federation.planning.federatedobject.placements import placement_of
from federation.planning.guard.deletions import is_deletion
from federation.planning.guard.record import held_move
from federation.scheduling.policymatching import PolicyIndex
from federation.terminal.kubeconfigcontext import KubeconfigContext
from federation.terminal.printing import print_rows

_ANSWERS = {Answer.EMPTY: "starts empty", Answer.HELD: "held", Answer.APPROVED: "approved"}


async def show_data(context: KubeconfigContext, output: str) -> int:
    """Print each way; return 1 if something would start empty without a further question."""
    async with context.client() as host:
        policies, modes = await read_policies(host), await read_access_modes(host)
        federated = (await host.list(FEDERATED_OBJECTS)).items
        clusters = (await host.list(FEDERATED_CLUSTERS)).items
        holds = (await host.list(PLACEMENT_HOLDS)).items
    approved = frozenset(hold["metadata"]["name"] for hold in holds if hold["spec"].get("approval"))
    workloads = [found for each in federated if (found := to_workload(each, policies, modes, approved)) is not None]
    ways = find_data_ways(workloads, frozenset(each["metadata"]["name"] for each in clusters if _is_member(each)))
    rows = ([each.object, each.cluster, each.way, _ANSWERS[each.answer], each.because] for each in ways)
    documents = [each._asdict() for each in ways]
    print_rows(documents, output, "nothing would start empty", rows, "OBJECT, CLUSTER", "WAY, ANSWER, BECAUSE")
    if output == "table":
        _summarise(workloads, ways)
    return 1 if any(each.answer is Answer.EMPTY for each in ways) else 0


def to_workload(
    federated: Object,
    policies: PolicyIndex,
    modes: Mapping[tuple[str, str], Sequence[str]],
    approved: frozenset[str],
) -> DataWorkload | None:
    """Return the facts about a federated object with volumes that do not move; None for others.

    One that is placed nowhere counts if it waits because of such volumes.
    """
    template, namespace = federated["spec"]["template"], str(federated["metadata"].get("namespace") or "")
    volumes = fixed_volumes_of(template, _modes_in(namespace, modes))
    clusters = frozenset(placement_of(federated, names.GLOBAL_SCHEDULER))
    policy, held = policies.policy_of(federated), held_move(federated)
    if held is not None and is_deletion(held.cause):
        held = None
    is_placed = bool(clusters)
    if not is_placed and held is not None:
        clusters = held.clusters
    if not volumes or not clusters:
        return None
    stays = policy is None or policy.rescheduling.is_sticky
    return DataWorkload(
        name=f"{template['kind']} {namespace}/{template['metadata']['name']}",
        volumes=volumes,
        clusters=clusters,
        policy="" if policy is None else f"policy {'/'.join(filter(None, policy.ref))}",
        fails_over=not stays and policy is not None and policy.failover.mode is FailoverMode.AUTO,
        has_application_failover=not stays and policy is not None and policy.failover.application is not None,
        held=held,
        is_approved=held is not None and held.hold in approved,
        is_placed=is_placed,
    )


def _modes_in(namespace: str, modes: Mapping[tuple[str, str], Sequence[str]]) -> AccessModes:
    return lambda claim: modes.get((namespace, claim))


def _is_member(cluster: Mapping[str, Any]) -> bool:
    stated = (cluster.get("status") or {}).get("conditions")
    return conditions.is_true(stated, names.CLUSTER_JOINED) and not cluster["metadata"].get("deletionTimestamp")


def _summarise(workloads: Sequence[DataWorkload], ways: Sequence[DataWay]) -> None:
    """Print how many workloads have volumes, and that all other ways wait."""
    open_ = {each.object for each in ways if each.answer is Answer.EMPTY}
    held = {each.object for each in ways if each.answer is Answer.HELD}
    print(
        f"{to_count(len(workloads), 'workload')} with volumes that do not move: {len(open_)} would start empty without"
        f" a question, {len(held)} held; by all other ways they wait for: fedctl approve"
    )
