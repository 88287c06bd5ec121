"""The relations of a unit to other workloads, as part of the scheduling unit. `relationsteps.py` works with it.

Part of the public plugin API. A relation says in which domains the partners of a rule are. A domain is a cluster, or
the clusters with the same value of a label. `federation/scheduling/affinity` computes relations.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from federation.scheduling.framework.shapekeys import ShapeKey


class Located(NamedTuple):
    """A domain with partners, and the number of them."""

    domain: str
    partners: int


@dataclass(frozen=True, slots=True)
class Relation:
    """One rule about other workloads. `weight` is 0 if it is required; `is_theirs`: it is a rule of the partners.

    `located` are the domains whose partners may stay there; partners in clusters that the unit would have to leave do
    not count. `held` are all domains that have partners. Without any partner the unit may go anywhere if it
    `may_be_first`. `is_broken`: the unit runs beside a partner that it should be apart from.
    """

    is_apart: bool
    weight: int
    topology_key: str
    text: str
    located: tuple[Located, ...] = ()
    held: frozenset[str] = frozenset()
    may_be_first: bool = False
    is_theirs: bool = False
    is_broken: bool = False

    @property
    def is_required(self) -> bool:
        return self.weight == 0

    def count_in(self, domain: str | None) -> int:
        """Return the number of partners in a domain."""
        return next((located.partners for located in self.located if located.domain == domain), 0)


RELATIONS: ShapeKey[tuple[Relation, ...]] = ShapeKey("relations", ())


def domain_of(topology_key: str, name: str, labels: Mapping[str, str]) -> str | None:
    """Return the domain of a cluster, None if it lacks the label; without a key each cluster is one."""
    return labels.get(topology_key) if topology_key else name
