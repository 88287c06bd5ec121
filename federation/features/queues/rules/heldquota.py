"""What an admitted job holds of its queue: whether it needs more now, or less. Pure.

Decision: docs/decisions/0231-a-queued-job-holds-what-it-runs.md
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from federation.features.queues.rules.configuration import Component
from federation.features.queues.rules.entries import Entry
from federation.features.queues.rules.facts import Amounts, Option, Pair
from federation.scheduling.framework.types import PODS
from federation.scheduling.jobqueues import Admission, Phase


def holds_of(admission: Admission) -> dict[Pair, int]:
    """Return what an admitted job holds, by flavour and resource."""
    return {(flavor, name): amount for flavor, held in admission.holds.items() for name, amount in held.items()}


def held_with(entry: Entry, is_ready: Callable[[str], bool], admission: Admission) -> dict[Pair, int] | None:
    """Return what an object holds with an admission, None for nothing.

    What is admitted holds it until it has finished. What has to leave holds it until it is gone, except from clusters
    that are lost: whether it is gone there cannot be seen.
    """
    if entry.has_finished:
        return None
    match admission.phase:
        case Phase.ADMITTED if entry.placed or admission.queue == entry.queue:
            return holds_of(admission)
        case Phase.EVICTED if entry.placed or any(map(is_ready, entry.departed)):
            return holds_of(admission)
    return None


def find_less(options: Iterable[Option], holds: Amounts) -> Amounts | None:
    """Return the amounts of the same flavours that are less than what a job holds, None if it needs all of it."""
    for option in options:
        if all(amount <= holds.get(pair, 0) for pair, amount in option.amounts.items()):
            return option.amounts if option.amounts != holds else None
    return None


def has_grown(components: Iterable[Component], holds: Mapping[str, Mapping[str, int]]) -> bool:
    """Return whether the pods of an object request more of a resource than it was admitted for, in all flavours."""
    held: dict[str, int] = defaultdict(int)
    for amounts in holds.values():
        for name, amount in amounts.items():
            held[name] += amount
    wanted: dict[str, int] = defaultdict(int)
    for component in components:
        for name, amount in component.amounts().items():
            wanted[name] += amount
    return any(amount > held[name] for name, amount in wanted.items() if name in held or name != PODS)
