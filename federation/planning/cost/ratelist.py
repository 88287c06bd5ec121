"""The answer of the source of rates, and the labels that it gives to a cluster (docs/reference/cost.md#source). Pure.

The answer is JSON: {"clusters": {NAME: {"price": {RESOURCE: NUMBER}, "carbon": {RESOURCE: NUMBER},
"capacityType": "spot"}}}. What it has for a cluster replaces the labels of that kind; what it does not have stays.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from federation.api import names
from federation.apimachinery.errors import ConfigurationError
from federation.planning.cost.rates import RATE_MAX, to_rate

_INTERVAL_S_MIN = 10.0
_PREFIXES = {"price": names.PRICE_PREFIX, "carbon": names.CARBON_PREFIX}
_CAPACITY_TYPE = "capacityType"
_LABEL_NAME_MAX = 63
"""Longest name of a label after its prefix."""
Labels = dict[str, str | None]
"""Labels to write; None removes one."""


@dataclass(frozen=True, slots=True)
class RateOptions:
    """Where the rates of clusters come from, and how often."""

    url: str = ""
    """URL of the answer; empty for no source."""
    interval_s: float = 300.0
    """Time between two requests."""


def to_rate_options(url: str, interval_s: float) -> RateOptions:
    """Return the options; ConfigurationError, with the setting's name, for those that cannot work."""
    if url and not url.startswith(("http://", "https://")):
        raise ConfigurationError("cluster-rates-url must start with http:// or https://")
    if interval_s < _INTERVAL_S_MIN:
        raise ConfigurationError(f"cluster-rates-interval-s must be at least {_INTERVAL_S_MIN:g}")
    return RateOptions(url, interval_s)


def parse_rates(body: bytes) -> Mapping[str, Mapping[str, Any]]:
    """Return the entries by cluster; ValueError, with the field, for an answer that is not as above.

    The whole answer is refused: a source that is wrong about one cluster may be wrong about all.
    """
    try:
        answer = json.loads(body, parse_float=Decimal)
    except (ValueError, RecursionError) as problem:
        raise ValueError(f"the answer is not JSON: {problem}") from None
    clusters = answer.get("clusters") if isinstance(answer, dict) else None
    if not isinstance(clusters, dict):
        raise ValueError("the answer has no object clusters")  # noqa: TRY004  # one type of error for all answers
    for name, entry in clusters.items():
        _check(entry, f"clusters.{name}")
    return clusters


def label_changes(labels: Mapping[str, str], entry: Mapping[str, Any]) -> Labels:
    """Return the changes of a cluster's labels that make them those of an entry; {} when they are."""
    wanted: Labels = {}
    for measure, prefix in _PREFIXES.items():
        if measure in entry:
            wanted |= dict.fromkeys(label for label in labels if label.startswith(prefix))
            wanted |= {
                prefix + resource: str(rate) if isinstance(rate, int) else f"{rate:f}"
                for resource, rate in entry[measure].items()
            }
    if _CAPACITY_TYPE in entry:
        wanted[names.CAPACITY_TYPE] = entry[_CAPACITY_TYPE]
    return {label: value for label, value in wanted.items() if labels.get(label) != value}


def _check(entry: object, field: str) -> None:
    if not isinstance(entry, dict):
        raise ValueError(f"{field} is not an object")  # noqa: TRY004  # as above
    for key, value in entry.items():
        if key == _CAPACITY_TYPE:
            if value not in (names.SPOT, names.ON_DEMAND):
                raise ValueError(f"{field}.{key} is {value!r}, not {names.SPOT} or {names.ON_DEMAND}")
        elif key not in _PREFIXES:
            raise ValueError(f"{field}.{key} is unknown; known are {', '.join((*_PREFIXES, _CAPACITY_TYPE))}")
        elif not isinstance(value, dict):
            raise ValueError(f"{field}.{key} is not an object")
        else:
            for resource, rate in value.items():
                if isinstance(rate, bool) or not isinstance(rate, int | Decimal) or to_rate(str(rate)) is None:
                    raise ValueError(f"{field}.{key}.{resource} is {rate!r}, not a number from 0 to {RATE_MAX}")
                if not _is_label_name(resource):
                    raise ValueError(f"{field}.{key}.{resource!r} is not the name of a resource without its domain")


def _is_label_name(text: str) -> bool:
    inner = text.replace("-", "").replace("_", "").replace(".", "")
    is_plain = inner.isascii() and inner.isalnum() and text[0].isalnum() and text[-1].isalnum()
    return is_plain and len(text) <= _LABEL_NAME_MAX
