"""The defaults of a UnitedDeployment. Pure; returns new objects."""

from collections.abc import Mapping, Sequence
from typing import Any

from federation.apimachinery.resources import Object
from federation.features.uniteddeployment.rules.subsetcounts import is_bounded, is_specified
from federation.features.uniteddeployment.rules.templaterevisions import HISTORY_LIMIT

MANUAL = "Manual"


def default_united(united: Mapping[str, Any]) -> Object:
    """Return the object as admission stores it: with the defaults of its spec, and without a status."""
    defaulted = {key: value for key, value in united.items() if key != "status"}
    return {**defaulted, "spec": default_spec(united.get("spec") or {})}


def default_spec(spec: Mapping[str, Any]) -> Object:
    """Return the spec with its defaults.

    Without `replicas` it is the sum of the subsets' replicas if each has an integer, otherwise 1. OpenKruise always
    takes 1, and then refuses subsets with a larger sum. Minimums become 0 if a subset has a minimum or a maximum and
    none has replicas.
    """
    topology = spec.get("topology") or {}
    subsets: Sequence[Mapping[str, Any]] = topology.get("subsets") or ()
    defaulted = dict(spec)
    if spec.get("replicas") is None:
        defaulted["replicas"] = default_replicas(subsets)
    if spec.get("revisionHistoryLimit") is None:
        defaulted["revisionHistoryLimit"] = HISTORY_LIMIT
    strategy = {"type": MANUAL} | {key: value for key, value in (spec.get("updateStrategy") or {}).items() if value}
    defaulted["updateStrategy"] = strategy | {"manualUpdate": strategy.get("manualUpdate") or {}}
    if any(map(is_bounded, subsets)) and not any(map(is_specified, subsets)):
        filled = [{**subset, "minReplicas": subset.get("minReplicas") or 0} for subset in subsets]
        defaulted["topology"] = {**topology, "subsets": filled}
    return defaulted


def default_replicas(subsets: Sequence[Mapping[str, Any]]) -> int:
    """Return the total of a UnitedDeployment without one."""
    counts = [subset.get("replicas") for subset in subsets]
    integers = [count for count in counts if type(count) is int]
    return sum(integers) if integers and len(integers) == len(counts) else 1
