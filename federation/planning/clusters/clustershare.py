"""The part of one cluster in the numbers of the whole fleet: health, room, and the price of requests. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from federation.api import names
from federation.apimachinery import conditions
from federation.apimachinery.quantity import to_int_ceil, to_milli
from federation.planning.cost.rates import rates_from


@dataclass(frozen=True, slots=True)
class ClusterShare:
    """CPU in thousandths of a core, memory in bytes, the price per hour in billionths; 0 for what is not known.

    `price` is that of the requested resources by the rates of the cluster, `has_price` whether it has rates.
    """

    is_ready: bool = False
    cpu: int = 0
    cpu_requested: int = 0
    memory: int = 0
    memory_requested: int = 0
    price: int = 0
    has_price: bool = False


NO_SHARE = ClusterShare()


def share_of(cluster: Mapping[str, Any]) -> ClusterShare:
    """Return the share of a FederatedCluster."""
    status = cluster.get("status") or {}
    resources = status.get("resources") or {}
    cpu, cpu_requested = _amounts(resources, "cpu")
    memory, memory_requested = _amounts(resources, "memory")
    rates = rates_from(cluster["metadata"].get("labels") or {}, names.PRICE_PREFIX)
    return ClusterShare(
        conditions.is_true(status.get("conditions"), names.CLUSTER_READY),
        cpu,
        cpu_requested,
        memory,
        memory_requested,
        rates.cost_of({"cpu": cpu_requested, "memory": memory_requested}) or 0,
        bool(rates.per_hour),
    )


def _amounts(resources: Mapping[str, Any], name: str) -> tuple[int, int]:
    """Return the total of a resource and what of it is requested; requests beyond the total belong to waiting pods."""
    to_int = to_milli if name == "cpu" else to_int_ceil
    free, total = ((resources.get(part) or {}).get(name) for part in ("available", "allocatable"))
    if total is None:
        return 0, 0
    whole = to_int(str(total))
    return whole, min(whole, max(0, whole - to_int(str(free)))) if free is not None else 0
