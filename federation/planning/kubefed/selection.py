"""The clusters of a federated object, as fields of a PropagationPolicy. Pure.

KubeFed's rules: a list of clusters takes precedence over a selector, an empty list selects no cluster, an empty
selector selects all, and a placement with neither selects none. Placements of a namespace and of an object in it must
both hold.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from federation.apimachinery.resources import Object

_Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Selection:
    """Clusters that are listed and have the labels. `clusters` is None without a list.

    `expressions` are those of a label selector, with a list of values each.
    """

    clusters: tuple[str, ...] | None = None
    labels: _Labels = ()
    expressions: tuple[Mapping[str, Any], ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether no cluster can be selected."""
        return self.clusters is not None and not self.clusters

    def intersect(self, other: "Selection") -> "Selection":
        """Return the clusters that both select."""
        clusters = self.clusters
        if other.clusters is not None:
            clusters = tuple(name for name in other.clusters if clusters is None or name in clusters)
        labels = dict(self.labels)
        conflicts = []
        for key, value in other.labels:
            if labels.setdefault(key, value) != value:
                conflicts.append({"key": key, "operator": "In", "values": [value]})
        return Selection(clusters, tuple(labels.items()), (*self.expressions, *other.expressions, *conflicts))

    def to_policy(self) -> Object:
        """Return the fields of a policy's spec that select by label; the list is for `placement`."""
        fields: Object = {}
        if self.labels:
            fields["clusterSelector"] = dict(self.labels)
        if self.expressions:
            fields["clusterAffinity"] = [{"matchExpressions": [dict(each) for each in self.expressions]}]
        return fields


ALL = Selection()


def to_selection(placement: Mapping[str, Any] | None) -> Selection | None:
    """Return the clusters of `spec.placement`, None when it has neither list nor selector."""
    given = placement or {}
    if (clusters := given.get("clusters")) is not None:
        return Selection(tuple(dict.fromkeys(each["name"] for each in clusters)))
    return to_label_selection(given)


def to_label_selection(placement: Mapping[str, Any] | None) -> Selection | None:
    """Return the clusters that `spec.placement.clusterSelector` selects, None without it."""
    selector = (placement or {}).get("clusterSelector")
    if selector is None:
        return None
    expressions = tuple(
        {"key": each["key"], "operator": each["operator"], "values": list(each.get("values") or ())}
        for each in selector.get("matchExpressions") or ()
    )
    return Selection(None, tuple((selector.get("matchLabels") or {}).items()), expressions)
