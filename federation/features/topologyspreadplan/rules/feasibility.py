"""The possibilities of the zones and nodes: findings before any pod runs, and the feasible nodes of one pod. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from federation.features.topologyspreadplan.rules.shardedservice import Limits, Mode, Service, Skews


class Severity(StrEnum):
    """How much a finding or violation matters."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """A property of the zones that limits what constraints can guarantee.

    With `is_refused`, no constraints can place the pods, or mode Strict does not allow the plan.
    """

    reason: str
    severity: Severity
    message: str
    is_refused: bool = False


def find_limits(service: Service, limits: Limits) -> list[Finding]:
    """Return what the zones of the service do not allow or guarantee, the most severe first."""
    found = [*_refusals(service), *_unguaranteed(service, limits)]
    zones = len(service.zones)
    if zones == 2 and service.pods % 2:
        found.append(
            Finding("OddPods", Severity.WARNING, f"{service.pods} pods cannot be split equally over two zones")
        )
    if zones > 1 and service.replicas == zones:
        text = "each zone has a pod of each shard, so an update must delete a pod before it creates the new one"
        found.append(Finding("NoSurge", Severity.INFO, text))
    return found


def _refusals(service: Service) -> list[Finding]:
    zones, replicas = len(service.zones), service.replicas
    found = []
    empty = [zone.name for zone in service.zones if not zone.nodes]
    if not service.nodes:
        found.append(Finding("NoNodes", Severity.CRITICAL, "no node is in an allowed zone", is_refused=True))
    elif zones > 1 and replicas > zones - len(empty):
        text = f"{replicas} pods of a shard need {replicas} zones with nodes; there are {zones - len(empty)}"
        found.append(Finding("TooFewZones", Severity.CRITICAL, text, is_refused=True))
    elif zones == 1 and replicas > service.nodes:
        text = f"{replicas} pods of a shard need {replicas} nodes; there are {service.nodes}"
        found.append(Finding("TooFewNodes", Severity.CRITICAL, text, is_refused=True))
    if empty and service.nodes:
        found.append(Finding("EmptyZone", Severity.WARNING, f"no node is in zone {', '.join(empty)}"))
    return found


def _unguaranteed(service: Service, limits: Limits) -> list[Finding]:
    is_strict, zones, pods = service.mode is Mode.STRICT, len(service.zones), service.pods
    found = []
    small = [name for name, limit in (("node", limits.node), ("zone", limits.zone)) if limit == 0]
    if small and pods:
        text = f"with {pods} pods, the limit per {' and per '.join(small)} is 0 and cannot hold; maxSkew is 1"
        found.append(Finding("LimitBelowOne", Severity.WARNING, text, is_refused=is_strict))
    if service.nodes * limits.node < pods and "node" not in small:
        needed = -(-pods // limits.node)
        text = f"{pods} pods with at most {limits.node} per node need {needed} nodes; there are {service.nodes}"
        found.append(Finding("FewNodes", Severity.WARNING, text, is_refused=is_strict))
    if zones >= 3 and limits.zone and zones * limits.zone < pods:
        needed = -(-pods // limits.zone)
        text = f"{pods} pods with at most {limits.zone} per zone need {needed} zones; there are {zones}"
        found.append(Finding("FewZones", Severity.WARNING, text, is_refused=is_strict))
    return found


def feasible_nodes(
    pods: Mapping[str, int],
    zones: Mapping[str, str],
    used: Collection[str],
    skews: Skews,
    *,
    allowed: Collection[str] | None = None,
    schedulable: Collection[str] | None = None,
) -> list[str]:
    """Return the nodes that the hard constraints allow for the next pod of a shard, in the order of `zones`.

    `zones` has the zone of each node, `pods` the pods of the service by node, `used` the nodes with pods of the shard.
    `allowed` are the zones of its node affinity, None for all. `schedulable` are the nodes that accept pods, None for
    all; other nodes count for the skew, because their taints are not considered there.
    """
    eligible = {node: zone for node, zone in zones.items() if allowed is None or zone in allowed}
    if not eligible:
        return []
    totals = dict.fromkeys(eligible.values(), 0)
    for node, zone in eligible.items():
        totals[zone] += pods.get(node, 0)
    floor, zone_floor = min(pods.get(node, 0) for node in eligible), min(totals.values())
    used_zones = {zones[node] for node in used if node in zones} if skews.zone is not None else set()
    return [
        node
        for node, zone in eligible.items()
        if node not in used
        and zone not in used_zones
        and pods.get(node, 0) + 1 - floor <= skews.node
        and (skews.zone is None or totals[zone] + 1 - zone_floor <= skews.zone)
        and (schedulable is None or node in schedulable)
    ]
