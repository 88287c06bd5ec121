"""Answers by counting alone, which hold for services of any size: no deadlock, and bounds of the worst case. Pure."""

from typing import NamedTuple

from federation.features.topologyspreadplan.rules.shardedservice import Service, Skews, compute_limits


class Maxima(NamedTuple):
    """The most pods on one node and in one domain (a zone, or a node of a service in one zone)."""

    node: int
    domain: int


def cannot_deadlock(service: Service, skews: Skews) -> bool:
    """Return True if unpinned shards have too few pods for a deadlock. False says nothing.

    In a deadlock, every domain with a feasible node is used by all shards that miss pods, so there are fewer of them
    than replicas. All other domains are blocked: by the zone's skew above a domain that has a pod, or because all their
    nodes have as many pods as the node's skew.
    """
    nodes = _nodes_by_domain(service)
    open_max = service.replicas - 1
    if 0 in nodes or len(nodes) <= open_max:
        return False
    # The emptiest domain has a pod: an open one is used, a blocked one has pods on all nodes.
    blocked = sorted(
        count * skews.node if skews.zone is None else min(1 + skews.zone, count * skews.node) for count in nodes
    )
    fewest = min(sum(blocked[: len(nodes) - opened]) + opened for opened in range(open_max + 1))
    return fewest > service.pods - 1


def worst_case_bounds(service: Service, skews: Skews) -> Maxima:
    """Return upper bounds of the pods on one node and in one domain, in any order of scheduling.

    A node gets its last pod while all other nodes have at least that number less maxSkew; the same holds for zones. A
    domain has at most one pod of each shard.
    """
    nodes = [count for count in _nodes_by_domain(service) if count]
    pods, shards, every = service.pods, service.shards, sum(nodes)

    def is_possible(load: int) -> bool:
        floor = max(0, load - skews.node)
        return load + (every - 1) * floor <= pods and any(load + (count - 1) * floor <= shards for count in nodes)

    node = max(filter(is_possible, range(shards + 1)), default=0)
    zone_skew = skews.zone
    if zone_skew is None:
        return Maxima(node, node)
    domain = max(total for total in range(shards + 1) if total + (len(nodes) - 1) * max(0, total - zone_skew) <= pods)
    return Maxima(node, domain)


def _nodes_by_domain(service: Service) -> list[int]:
    return [zone.nodes for zone in service.zones] if len(service.zones) > 1 else [1] * service.nodes


def relaxations(service: Service, skews: Skews) -> list[Skews]:
    """Return larger values of maxSkew, the smallest change first: "not more than" instead of "less than" the share."""
    relaxed = compute_limits(service.pods, len(service.zones), is_relaxed=True).skews
    node = max(skews.node, relaxed.node)
    zone = None if skews.zone is None or relaxed.zone is None else max(skews.zone, relaxed.zone)
    found = [Skews(node, skews.zone), Skews(skews.node, zone), Skews(node, zone)]
    return [each for number, each in enumerate(found) if each != skews and each not in found[:number]]
