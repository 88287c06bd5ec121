"""Whether a division keeps to the hard topology constraints of a unit (`whenUnsatisfiable: DoNotSchedule`).

`planning/placement/topology.py` makes divisions that do; this checks those that anybody else made, by the same rules
(docs/decisions/0017). What ran before in a domain may stay there; which domains count is decided in favour of the
division where planners differ.
"""

from collections.abc import Mapping
from typing import NamedTuple

from federation.planning.placement.tree import Domain, count_each, shut_domains


class Occupied(NamedTuple):
    """Replicas per cluster, and how many of them may stay whatever the others have.

    `shrinks`: replicas are only taken away, and none from the domain with the fewest while another one has too many.
    """

    replicas: Mapping[str, int]
    stays: Mapping[str, int]
    shrinks: bool = False


class Barred(NamedTuple):
    """Clusters in whose domains no replica can be expected.

    `closed` ones are unready or tainted, `full` ones may have none by policy or user; `idle` ones contain the full ones
    and those that some planners give none: domains of only such count for minDomains, but hold nobody down.
    """

    closed: frozenset[str]
    full: frozenset[str]
    idle: frozenset[str]


def breach_of_spread(root: Domain, occupied: Occupied, barred: Barred) -> str:
    """Return which domain has more replicas than a constraint allows, "" when none has."""
    counts = count_each(root, occupied.replicas)
    stays = count_each(root, occupied.stays) if occupied.stays else dict.fromkeys(counts, 0)
    shut = shut_domains(root, (barred.closed, barred.full))
    idle = shut if barred.idle == barred.full else shut_domains(root, (barred.closed, barred.idle))
    for node in counts:
        constraint, rest = node.constraint, node.rest
        if constraint is None or not constraint.is_hard:
            continue
        if rest is not None and counts[rest] > stays[rest]:
            without = f"clusters without a label {constraint.key}"
            return f"it gave {counts[rest]} replicas to {without}, which DoNotSchedule keeps out"
        counted = [child for child in node.children if child not in shut]
        lowest = min([child for child in counted if child not in idle] or counted, key=counts.__getitem__, default=None)
        fewest, compared, is_robbed = 0, "", False
        if lowest is not None and len(counted) >= constraint.domains_min:
            fewest, compared = counts[lowest], f" and {counts[lowest]} to {lowest}"
            is_robbed = occupied.shrinks and fewest < stays[lowest]
        for child in node.children:
            most = fewest + constraint.skew_max
            if counts[child] > (most if is_robbed else max(most, stays[child])):
                bound = constraint.describe(len(counted))
                return f"it gave {counts[child]} replicas to domain {child}{compared}, beyond {bound}"
    return ""
