"""The selections of Karmada's policies: objects, and clusters by name, label and field. Pure.

Karmada's conditions of one affinity must all hold. So must ours: names become `placement` or `clusters`, labels become
`clusterSelector`, and expressions and excluded names become the one term of `clusterAffinity`.
"""

from dataclasses import dataclass, field
from typing import Any

from federation.apimachinery.resources import Object
from federation.features.convert.rules.fieldreader import FieldReader
from federation.planning.clusters.region import REGION_LABEL

ZONE_LABEL = "topology.kubernetes.io/zone"
PROVIDER_LABEL = "provider"
"""Ours to choose: Kubernetes has no label for the provider."""
FIELD_LABELS = {"region": REGION_LABEL, "zone": ZONE_LABEL, "provider": PROVIDER_LABEL}


@dataclass(frozen=True, slots=True)
class ClusterChoice:
    """The clusters that an affinity matches. Empty parts match every cluster."""

    names: list[str] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    term: Object = field(default_factory=dict)

    def selection(self) -> Object:
        """Return `clusterSelector` and `clusterAffinity`; the names are for the caller."""
        parts: Object = {"clusterSelector": self.labels, "clusterAffinity": [self.term] if self.term else []}
        return {key: value for key, value in parts.items() if value}


def to_cluster_choice(affinity: FieldReader) -> ClusterChoice:
    """Return the clusters of a ClusterAffinity; excluded names are taken from listed ones."""
    names, excluded = affinity.texts("clusterNames"), affinity.texts("exclude")
    selector = affinity.child("labelSelector")
    labels = selector.text_map("matchLabels")
    expressions = [_to_requirement(each, each.text("key")) for each in selector.children("matchExpressions")]
    expressions += _field_expressions(affinity.child("fieldSelector"))
    term: Object = {"matchExpressions": expressions} if expressions else {}
    left = [name for name in names if name not in excluded]
    if names and not left:
        raise affinity.refuse("exclude", "excludes every cluster of clusterNames; correct the policy")
    if names and (others := sorted(set(excluded).difference(names))):
        affinity.note("exclude", f"{', '.join(others)}: not among clusterNames")
    if excluded and not names:
        term["matchFields"] = [{"key": "metadata.name", "operator": "NotIn", "values": excluded}]
    return ClusterChoice(left, labels, term)


def to_resource_selectors(spec: FieldReader, namespace: str) -> list[Object]:
    """Return our resourceSelectors; `namespace` is that of the policy, empty for a cluster-wide one."""
    selectors = [_to_resource_selector(each, namespace) for each in spec.children("resourceSelectors")]
    if not selectors:
        spec.note("resourceSelectors", "an absent list selects nothing here; list the kinds, or label the objects")
    return selectors


def _to_resource_selector(selector: FieldReader, namespace: str) -> Object:
    converted: Object = {"apiVersion": selector.text("apiVersion"), "kind": selector.text("kind")}
    name = selector.text("name")
    other = selector.text("namespace")
    if other and other != namespace:
        raise selector.refuse("namespace", f"a policy selects in its own namespace; write one in {other}")
    if name:
        converted["name"] = name
        selector.drop("labelSelector", "Karmada ignores it beside name; it is left out")
    elif labels := selector.any("labelSelector"):
        converted["labelSelector"] = labels
    return converted


def _to_requirement(expression: FieldReader, key: str) -> dict[str, Any]:
    return {"key": key, "operator": expression.text("operator"), "values": expression.texts("values")}


def _field_expressions(selector: FieldReader) -> list[Object]:
    converted = []
    for expression in selector.children("matchExpressions"):
        name = expression.one_of("key", tuple(FIELD_LABELS))
        label = FIELD_LABELS[name]
        expression.note("key", f"clusters have no field {name}; label them: fedctl join NAME --labels {label}=VALUE")
        converted.append(_to_requirement(expression, label))
    return converted
