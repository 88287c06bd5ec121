"""Rates of a cluster, and what one replica costs there per hour (docs/reference/cost.md).

A cluster's labels hold its rates: `price.federation.kubeadmiral.io/cpu` is the price of one core for one hour,
`carbon.federation.kubeadmiral.io/cpu` its emissions in grams of CO2e. The part after the slash is the name of the
resource without its domain, so that GPUs are `gpu`. Emissions also follow from those of a kWh and from watts.

Amounts are integers in billionths of the label's unit: sums of them are exact and have no order. Pure. Read
`cheapest.py` next.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation

from federation.api import names
from federation.planning.cost.names import GRID_CARBON, POWER_PREFIX

NANO = 10**9
"""Billionths in one unit of a rate."""
RATE_MAX = 10**9
"""The highest rate of a label; higher ones are typing errors."""
_UNIT_OF = {"cpu": 1000, "memory": 2**30, "ephemeral-storage": 2**30}
"""Amounts of a request in one unit of a rate: cores of thousandths, GiB of bytes; others are counted."""
_WATTS = 1000
"""Watts in one kW."""
_LEAST = {"cpu": 100, "memory": 200 * 2**20}
"""Requests assumed for a replica without requests, as in kube-scheduler; otherwise it would be free everywhere."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Billionths per unit and hour by resource; `problems` describe labels that are no rates."""

    per_hour: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    def cost_of(self, request: Mapping[str, int]) -> int | None:
        """Return billionths per hour for one replica, rounded to the nearest; None without any rate.

        `request` has cpu in thousandths and the rest in whole units. A resource without a rate costs nothing.
        """
        if not self.per_hour:
            return None
        total = 0
        for name, amount in {**_LEAST, **request}.items():
            if rate := self.per_hour.get(name.rpartition("/")[2]):
                unit = _UNIT_OF.get(name, 1)
                total += (2 * amount * rate + unit) // (2 * unit)
        return total


def rates_from(labels: Mapping[str, str], prefix: str) -> Rates:
    """Return the rates in labels with the prefix; malformed ones are left out and described."""
    rates, problems = {}, []
    for label, text in labels.items():
        if not label.startswith(prefix):
            continue
        rate = to_rate(text)
        if rate is None:
            problems.append(f"label {label} is {text!r}; a rate is a number from 0 to {RATE_MAX}, such as 0.031")
        else:
            rates[label.removeprefix(prefix)] = rate
    if prefix == names.CARBON_PREFIX and GRID_CARBON in labels:
        grid, power = (
            rates_from({GRID_CARBON: labels[GRID_CARBON]}, ""),
            rates_from(labels, POWER_PREFIX),
        )
        if (per_kwh := grid.per_hour.get(GRID_CARBON)) is not None:
            rates = {name: watts * per_kwh // (_WATTS * NANO) for name, watts in power.per_hour.items()} | rates
        problems += [*grid.problems, *power.problems]
    return Rates(rates, tuple(problems))


def to_rate(text: str) -> int | None:
    """Return a decimal number in billionths; None for anything else, negative numbers included."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return round(number * NANO) if number.is_finite() and 0 <= number <= RATE_MAX else None


def from_nano(amount: int) -> float:
    """Return billionths as a number for people and JSON."""
    return amount / NANO
