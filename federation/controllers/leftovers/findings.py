"""The findings of one sweep: what was done to the objects that it found, and what is to be removed in the end."""

from dataclasses import dataclass, field

from federation.apimachinery.amounts import first_of
from federation.apimachinery.resources import Object
from federation.planning.leftovers.record import Record
from federation.planning.leftovers.strays import StrayAction

_NAMED_MAX = 10
"""Objects that an event names per outcome."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One object, the action on it, what the host has recorded about it, and its federated object."""

    action: StrayAction
    stray: Record
    record: Record | None
    federated: Object | None


@dataclass(slots=True)
class Findings:
    """The findings of one sweep."""

    outcomes: dict[str, list[str]] = field(default_factory=dict)
    records: set[str] = field(default_factory=set)
    """The records of objects that exist."""
    removals: list[Finding] = field(default_factory=list)
    """The objects that are to be removed; the guard counts them first."""
    is_unfinished: bool = False

    def add(self, outcome: str, record: Record) -> None:
        """Add an object to the event."""
        where = "/".join(filter(None, (record.namespace, record.name)))
        self.outcomes.setdefault(outcome, []).append(f"{record.resource.kind} {where}")

    def describe(self) -> str:
        """Return one line, "" when nothing happened."""
        parts = []
        for outcome, found in sorted(self.outcomes.items()):
            parts.append(f"{outcome}: {first_of(sorted(found), _NAMED_MAX)}")
        return "; ".join(parts)
