"""The replicas that quotas of the namespace still allow for a unit (docs/reference/quotas.md).

Amounts are integers: cpu in thousandths, prices and emissions per hour in billionths, the rest in whole units.
`scheduling/quotas.py` counts what the other workloads use; the engine asks `excess` about a division.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from federation.apimachinery.quantity import format_quantity, parse, to_int_ceil, to_milli
from federation.planning.cost.rates import NANO
from federation.scheduling.framework import names
from federation.scheduling.framework.costs import CARBON, PRICE, rates_of
from federation.scheduling.framework.types import CPU, MEMORY, PODS, Cluster, Resources

_MEASURES = {names.PRICE_PER_HOUR: PRICE, names.CARBON_PER_HOUR: CARBON}
_REQUESTS = "requests."
_THOUSAND = 1000


@dataclass(frozen=True, slots=True)
class Quota:
    """A quota's limits by resource."""

    name: str
    hard: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Charge:
    """The usage of an object: the request of a replica, the replicas by cluster, and the pods of a replica."""

    request: Resources
    replicas: Mapping[str, int]
    pods: int = 1

    def only(self, cluster: str) -> "Charge":
        """Return the part in one cluster."""
        return Charge(self.request, {cluster: self.replicas.get(cluster, 0)}, self.pods)


@dataclass(frozen=True, slots=True, eq=False)
class Headroom:
    """The quotas that apply to a unit, what other workloads use of them, and what the unit has already."""

    quotas: tuple[Quota, ...]
    others: Mapping[str, int]
    request: Resources
    current: Mapping[str, int]
    clusters: Mapping[str, Cluster]
    pods: int = 1

    def excess(self, replicas: Mapping[str, int]) -> str:
        """Return the quota that a division exceeds, with the reason; "" when it fits.

        What a unit has already is never taken away: only an amount that grows can exceed a quota.
        """
        wanted = amounts_of(Charge(self.request, replicas, self.pods), self.others, self.clusters)
        present = amounts_of(Charge(self.request, self.current, self.pods), self.others, self.clusters)
        for quota in self.quotas:
            for name, hard in quota.hard.items():
                if wanted[name] > present[name] and self.others[name] + wanted[name] > hard:
                    used = to_text(name, self.others[name])
                    limit = f"FederatedResourceQuota {quota.name}: {to_text(name, hard)} {_title(name)}"
                    return f"{limit}, of which other workloads use {used}" if self.others[name] else limit
        return ""


def amounts_of(charge: Charge, resources: Iterable[str], clusters: Mapping[str, Cluster]) -> dict[str, int]:
    """Return what a charge uses of each resource; a cluster without rates costs nothing."""
    total, amounts = sum(charge.replicas.values()), {}
    for name in resources:
        if (measure := _MEASURES.get(name)) is not None:
            amounts[name] = sum(
                count * (rates_of(clusters[cluster], measure).cost_of(charge.request) or 0)
                for cluster, count in charge.replicas.items()
                if cluster in clusters
            )
        else:
            plain = name.removeprefix(_REQUESTS)
            amounts[name] = total * charge.pods if plain == PODS else total * charge.request.get(plain, 0)
    return amounts


def limit_of(name: str, value: str | int) -> int:
    """Return a limit of a quota as an integer; ValueError for what is no quantity."""
    if name in _MEASURES:
        return to_milli(value) * (NANO // _THOUSAND)
    return to_milli(value) if name.removeprefix(_REQUESTS) == CPU else to_int_ceil(value)


def to_text(name: str, amount: int) -> str:
    """Return an amount as a quantity."""
    plain = name.removeprefix(_REQUESTS)
    if name in _MEASURES:
        return format(round(Decimal(amount) / NANO, 3).normalize(), "f")
    if plain == CPU:
        return format_quantity(parse(f"{amount}m"))
    return format_quantity(parse(f"{amount / 2**20:g}Mi")) if plain == MEMORY and amount % 2**20 == 0 else str(amount)


def _title(name: str) -> str:
    return {names.PRICE_PER_HOUR: "price per hour", names.CARBON_PER_HOUR: "g CO2e per hour"}.get(name, name)
