"""Which clusters an override rule is for (spec §8.1).

By name, by labels, by affinity terms: all that are given must hold.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from federation.api import selectors
from federation.api.selectors import ClusterTerms, Labels, SelectorError
from federation.planning.overrides.errors import OverrideError


@dataclass(frozen=True, slots=True)
class Target:
    """The compiled targetClusters of a rule; the default one is for all clusters."""

    names: frozenset[str] = frozenset()
    selector: Mapping[str, str] | None = None
    terms: ClusterTerms | None = None

    def matches(self, name: str, labels: Labels | None) -> bool:
        """Say whether the rule is for the cluster; OverrideError when a selector is malformed."""
        try:
            return (
                (not self.names or name in self.names)
                and (not self.selector or selectors.compile_label_map(self.selector).matches(labels))
                and (self.terms is None or self.terms.matches(name, labels))
            )
        except SelectorError as error:
            raise OverrideError(str(error), "targetClusters") from error


def compile_target(target: Mapping[str, Any] | None) -> Target:
    """Return the compiled form of `targetClusters`; absent means all clusters.

    Names are also taken in lower case: clusters cannot have another name, and published examples write `Cluster-01`.
    """
    if not target:
        return Target()
    names = target.get("clusters") or ()
    affinity = target.get("clusterAffinity")
    return Target(
        names=frozenset(names) | frozenset(name.lower() for name in names),
        selector=target.get("clusterSelector"),
        terms=selectors.compile_cluster_terms(affinity) if affinity else None,
    )
