"""The clusters that a subset of a federated WorkloadSpread covers. Pure.

An expression of the required node selector is about clusters when the prefix of its key is `cluster.kubeadmiral.io` or
ends with `.cluster.kubeadmiral.io`. Without that part the key is a label of the FederatedCluster:
`topology.kubernetes.io.cluster.kubeadmiral.io/region` is its label `topology.kubernetes.io/region`. The key
`cluster.kubeadmiral.io/name` is the cluster's name. All other expressions select nodes inside the members
(docs/decisions/0032).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from federation.apimachinery.resources import Object
from federation.apimachinery.selectors import Requirement, compile_requirement
from federation.features.workloadspread import names

_OPERATORS = frozenset(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
_NAME = ""
"""The key of the requirements on the name: no label has it."""


def cluster_requirements(subset: Mapping[str, Any]) -> tuple[Requirement, ...]:
    """Return the requirements on clusters, all of which must hold; () for a subset that covers every cluster.

    The subset is in the v1beta1 form (`hub.py`). SelectorError for a malformed expression.
    """
    found = []
    for expression in _expressions(subset):
        label = _label_of(expression)
        if label is not None:
            requirement = compile_requirement({**expression, "key": label or names.CLUSTER_NAME_TERM}, _OPERATORS)
            found.append(replace(requirement, key=label))
    return tuple(found)


def covers(requirements: tuple[Requirement, ...], name: str, labels: Mapping[str, str]) -> bool:
    """Return True if a cluster with this name and these labels meets the requirements."""
    values = {**labels, _NAME: name} if requirements else {}
    return all(requirement.matches(values) for requirement in requirements)


def without_cluster_terms(subset: Mapping[str, Any]) -> Object:
    """Return the subset for a member: without expressions on clusters; an empty node selector is left out."""
    term = subset.get("requiredNodeSelector")
    if not term:
        return dict(subset)
    kept = [expression for expression in _expressions(subset) if _label_of(expression) is None]
    rest = {key: value for key, value in term.items() if key != "matchExpressions"}
    inside = {**rest, "matchExpressions": kept} if kept else rest
    result = {key: value for key, value in subset.items() if key != "requiredNodeSelector"}
    return {**result, "requiredNodeSelector": inside} if any(inside.values()) else result


def _expressions(subset: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [each for each in (subset.get("requiredNodeSelector") or {}).get("matchExpressions") or () if each]


def _label_of(expression: Mapping[str, Any]) -> str | None:
    """Return the label of clusters that the expression is about, "" for their name, None for an expression on nodes."""
    key = str(expression.get("key") or "")
    if key == names.CLUSTER_NAME_TERM:
        return _NAME
    prefix, slash, name = key.partition("/")
    if not slash or not f".{prefix}".endswith(f".{names.CLUSTER_TERM_DOMAIN}"):
        return None
    of_label = prefix.removesuffix(names.CLUSTER_TERM_DOMAIN).removesuffix(".")
    return f"{of_label}/{name}" if of_label else name
