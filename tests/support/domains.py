"""Trees of topology domains out of labels as tests write them: cluster → its labels.

The product reads labels once per cluster (`framework/topology.py`) and never needs this form.
"""

from collections.abc import Mapping, Sequence

from federation.planning.placement.tree import Domain, Groups, SpreadConstraint, tree_of


def to_tree(labels: Mapping[str, Mapping[str, str]], constraints: Sequence[SpreadConstraint]) -> Domain:
    """Return the tree of the clusters, which keep their order in every leaf."""
    keys = [constraint.key for constraint in constraints]
    groups: Groups = {}
    for cluster, own in labels.items():
        groups.setdefault(tuple(map(own.get, keys)), []).append(cluster)
    return tree_of(groups, constraints)
