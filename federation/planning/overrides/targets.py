"""The target clusters of an override rule: names, labels and affinity terms (docs/reference/overrides.md)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from federation.api.selectors import ClusterTerms, compile_cluster_terms
from federation.apimachinery.selectors import Labels, SelectorError, compile_label_map
from federation.planning.overrides.errors import OverrideError


@dataclass(frozen=True, slots=True)
class Target:
    """The compiled targetClusters of a rule; all given conditions must hold, the default one matches every cluster."""

    names: frozenset[str] = frozenset()
    selector: Mapping[str, str] | None = None
    terms: ClusterTerms | None = None

    def matches(self, name: str, labels: Labels | None) -> bool:
        """Return True if the rule applies to the cluster; OverrideError when a selector is malformed."""
        try:
            return (
                (not self.names or name in self.names)
                and (not self.selector or compile_label_map(self.selector).matches(labels))
                and (self.terms is None or self.terms.matches(name, labels))
            )
        except SelectorError as error:
            raise OverrideError(str(error), "targetClusters") from error


def compile_target(target: Mapping[str, Any] | None) -> Target:
    """Return the compiled form of `targetClusters`; absent means all clusters.

    Names match in lower case too: cluster names are always lower case, but published examples write `Cluster-01`.
    """
    if not target:
        return Target()
    names = target.get("clusters") or ()
    affinity = target.get("clusterAffinity")
    return Target(
        names=frozenset(names) | frozenset(name.lower() for name in names),
        selector=target.get("clusterSelector"),
        terms=compile_cluster_terms(affinity) if affinity else None,
    )
