"""Trees of topology domains, built from the labels of each cluster.

The product reads labels once per cluster (`framework/topology.py`) and never needs this form.
"""

from collections.abc import Mapping, Sequence

from federation.planning.placement.topologydomains import Domain, Groups, SpreadConstraint, build_domain_tree


def to_tree(labels: Mapping[str, Mapping[str, str]], constraints: Sequence[SpreadConstraint]) -> Domain:
    """Return the tree of domains; clusters keep their order in every leaf."""
    keys = [constraint.topology_key for constraint in constraints]
    groups: Groups = {}
    for cluster, own in labels.items():
        groups.setdefault(tuple(map(own.get, keys)), []).append(cluster)
    return build_domain_tree(groups, constraints)
