"""Assignment of the pods of every shard to zones: an even or weighted division that keeps the limits. Pure.

A StatefulSet that is pinned to as many zones as it has pods has one pod in each of them, because its pods must be in
different zones. So the assignment fixes the number of pods of every zone, whatever the order of scheduling.
"""

from collections.abc import Mapping, Sequence

from federation.features.topologyspreadplan.rules.shardedservice import Limits, Service, Skews

Zones = tuple[str, ...]
"""The zones of a shard, in the order of the service's zones."""


def assign_zones(
    service: Service, limits: Limits, held: Mapping[int, Sequence[str]] | None = None
) -> tuple[Zones, ...] | None:
    """Return the zones of each shard, None if the limits leave no room.

    `held` has the zones of shards, by number, that already have pods; they keep them. Shards get zones in order, each
    those that miss most pods for their share. That finds an assignment whenever one exists without `held`.
    """
    caps = {zone.name: _cap(service, limits, zone.nodes) for zone in service.zones}
    targets = _targets(service, caps)
    if targets is None:
        return None
    kept = {
        shard: [name for name in dict.fromkeys(names) if name in caps][: service.replicas]
        for shard, names in (held or {}).items()
        if shard < service.shards
    }
    counts = dict.fromkeys(caps, 0)
    for names in kept.values():
        for name in names:
            counts[name] += 1
    order = list(caps)
    assigned = []
    for shard in range(service.shards):
        own = list(kept.get(shard, ()))
        free = [name for name in order if name not in own and counts[name] < caps[name]]
        free.sort(key=lambda name: counts[name] - targets[name])
        more = free[: service.replicas - len(own)]
        if len(own) + len(more) < service.replicas:
            return None
        for name in more:
            counts[name] += 1
        assigned.append(tuple(name for name in order if name in own or name in more))
    return tuple(assigned)


def _cap(service: Service, limits: Limits, nodes: int) -> int:
    """Return the most pods that a zone can have within the limits; one of each shard at most.

    A limit that the zones cannot hold anyway does not count.
    """
    if not nodes:
        return 0
    cap = service.shards
    if limits.zone and len(service.zones) > 2 and limits.zone * len(service.zones) >= service.pods:
        cap = min(cap, limits.zone)
    if limits.node * service.nodes >= service.pods:
        cap = min(cap, limits.node * nodes)
    return cap


def _targets(service: Service, caps: Mapping[str, int]) -> dict[str, int] | None:
    """Return the pods per zone: in proportion to the weights as far as the caps allow."""
    targets = dict.fromkeys(caps, 0)
    weights = {zone.name: zone.weight or 1 for zone in service.zones}
    for _ in range(service.pods):
        free = [name for name in caps if targets[name] < caps[name]]
        if not free:
            return None
        targets[min(free, key=lambda name: (targets[name] + 1) / weights[name])] += 1
    return targets


def count_by_zone(assigned: Sequence[Zones], zones: Sequence[str]) -> dict[str, int]:
    """Return the number of pods of each zone under an assignment."""
    return {name: sum(name in shard for shard in assigned) for name in zones}


def is_surely_free(service: Service, assigned: Sequence[Zones], skews: Skews) -> bool:
    """Return True if pinned shards cannot deadlock, by counting. False says nothing.

    Before the last pod of a zone is placed, the zone has one pod less than assigned and its emptiest node at most the
    integral mean. If even then both skews allow one more while another node and another zone are empty, no pod that its
    shard misses in the zone is ever blocked.
    """
    counts = count_by_zone(assigned, [zone.name for zone in service.zones])
    return all(
        (skews.zone is None or counts[zone.name] <= skews.zone)
        and (not zone.nodes or -(-counts[zone.name] // zone.nodes) <= skews.node)
        for zone in service.zones
    )
