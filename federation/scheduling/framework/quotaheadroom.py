"""The replicas that quotas of the namespace still allow for a unit (docs/reference/quotas.md).

Amounts are integers: cpu in thousandths, prices and emissions per hour in billionths, the rest in whole units.
`scheduling/quotas.py` counts what the other workloads use; the engine asks `excess` about a division.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Protocol

from federation.apimachinery.quantity import format_quantity, parse, to_int_ceil, to_milli
from federation.planning.accounts.claim import Use, Uses
from federation.planning.accounts.usage import Excess, Limit, Scope, Usage
from federation.planning.cost.rates import NANO
from federation.scheduling.framework import names
from federation.scheduling.framework.costs import CARBON, PRICE, rates_of
from federation.scheduling.framework.shapekeys import ShapeKey
from federation.scheduling.framework.types import CPU, MEMORY, PODS, Cluster, Resources

MEASURES = {names.PRICE_PER_HOUR: PRICE, names.CARBON_PER_HOUR: CARBON}
"""Measures that depend on the cluster."""
_REQUESTS = "requests."
_THOUSAND = 1000


class Quota(Protocol):
    """The part of the quota that the unit's namespace may still use in all clusters together."""

    def excess(self, replicas: Mapping[str, int]) -> str: ...  # "" when the replicas by cluster fit, else the reason


QUOTA: ShapeKey[Quota | None] = ShapeKey("quota", None)


@dataclass(frozen=True, slots=True, eq=False)
class Headroom:
    """The quotas that apply to a unit, what other workloads use of them, and what counts for the unit already."""

    scopes: Mapping[str, Scope[str]]
    others: Mapping[str, int]
    present: Mapping[str, int]
    request: Resources
    clusters: Mapping[str, Cluster]
    pods: int = 1
    requests: Mapping[str, Resources] = field(default_factory=dict)
    """The request of a replica in clusters whose overrides change it."""

    def excess(self, replicas: Mapping[str, int]) -> str:
        """Return the quota that a division exceeds, with the reason; "" when it fits.

        What a unit has already is never taken away: only an amount that grows can exceed a quota.
        """
        uses = {
            name: Use(count, dict(self.requests.get(name, self.request)), self.pods) for name, count in replicas.items()
        }
        wanted = amounts_of(uses, self.others, self.clusters)
        return describe(find_excess(self.scopes, self.others, self.present, wanted))


def scope_of(quota: str, hard: Mapping[str, int | None]) -> Scope[str]:
    """Return the scope of a quota, from its limits by resource; None where one is not valid."""
    return Scope(quota, {name: Limit(amount) for name, amount in hard.items()})


def find_excess(
    scopes: Mapping[str, Scope[str]], others: Mapping[str, int], present: Mapping[str, int], wanted: Mapping[str, int]
) -> Excess[str] | None:
    """Return the first account that is exceeded, by quota; all quotas of a namespace count the same payers."""
    usage = Usage(scopes)
    for quota, scope in sorted(scopes.items()):
        usage.add(quota, others)
        if excess := usage.find_excess(quota, {name: wanted.get(name, 0) for name in scope.limits}, present):
            return excess
    return None


def amounts_of(uses: Uses, measures: Iterable[str], clusters: Mapping[str, Cluster]) -> dict[str, int]:
    """Return what is used of each measure; a cluster without rates costs nothing."""
    return {
        measure: sum(_amount(use, measure, clusters.get(name)) for name, use in uses.items()) for measure in measures
    }


def _amount(use: Use, measure: str, cluster: Cluster | None) -> int:
    if (rate := MEASURES.get(measure)) is not None:
        return 0 if cluster is None else use.replicas * (rates_of(cluster, rate).cost_of(use.request) or 0)
    name = plain(measure)
    return use.replicas * (use.pods if name == PODS else use.request.get(name, 0))


def plain(measure: str) -> str:
    """Return the resource that a measure counts."""
    return measure.removeprefix(_REQUESTS)


def limit_of(name: str, value: str | int) -> int:
    """Return a limit of a quota as an integer; ValueError for what is no quantity."""
    if name in MEASURES:
        return to_milli(value) * (NANO // _THOUSAND)
    return to_milli(value) if plain(name) == CPU else to_int_ceil(value)


def to_text(name: str, amount: int) -> str:
    """Return an amount as a quantity."""
    if name in MEASURES:
        return format(round(Decimal(amount) / NANO, 3).normalize(), "f")
    if plain(name) == CPU:
        return format_quantity(parse(f"{amount}m"))
    return (
        format_quantity(parse(f"{amount / 2**20:g}Mi"))
        if plain(name) == MEMORY and amount % 2**20 == 0
        else str(amount)
    )


def describe(excess: Excess[str] | None) -> str:
    """Return which quota is exceeded, "" for none."""
    if excess is None:
        return ""
    if excess.hard is None:
        return f"FederatedResourceQuota {excess.scope}, whose spec.overall[{excess.measure}] is not a valid amount"
    limit = f"FederatedResourceQuota {excess.scope}: {to_text(excess.measure, excess.hard)} {_title(excess.measure)}"
    used = to_text(excess.measure, excess.others)
    return f"{limit}, of which other workloads use {used}" if excess.others else limit


def _title(name: str) -> str:
    return {names.PRICE_PER_HOUR: "price per hour", names.CARBON_PER_HOUR: "g CO2e per hour"}.get(name, name)
