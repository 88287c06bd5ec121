"""Queues and flavours, compiled from their objects; and what a job may charge to which flavours. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

from federation.apimachinery.quantity import to_int_ceil, to_milli
from federation.apimachinery.selectors import Selector, compile_label_selector
from federation.features.queues.rules.checks import Check, compile_checks
from federation.features.queues.rules.facts import Option, Pair, Queue, Reclaim
from federation.planning.accounts.usage import Limit
from federation.planning.rendering.admittednodes import PodNodes
from federation.scheduling.framework.types import CPU, PODS

OPTIONS_MAX = 16
"""Choices of flavours for one job that are tried, the first ones in the queue's order."""


@dataclass(frozen=True, slots=True)
class Component:
    """Equal pods of a job: the labels that their nodes must have, their number, and what one requests."""

    selector: frozenset[tuple[str, str]]
    count: int
    request: tuple[tuple[str, int], ...]
    is_open: bool = True
    """Whether flavours can give it labels of nodes: the object has pod specs."""

    def amounts(self) -> dict[str, int]:
        """Return what all of them request, and their number as `pods`."""
        return {**{name: amount * self.count for name, amount in self.request}, PODS: self.count}


@dataclass(frozen=True, slots=True)
class Flavor:
    """A CapacityFlavor."""

    name: str
    clusters: Selector | None
    node_labels: frozenset[tuple[str, str]]
    assigns: bool = False
    """Whether pods without its labels get them."""
    tolerations: tuple[Mapping[str, Any], ...] = ()

    def can_have(self, selector: frozenset[tuple[str, str]], *, is_open: bool) -> bool:
        """Return whether pods with this nodeSelector can use the flavour."""
        if self.node_labels <= selector:
            return True
        own = dict(selector)
        return self.assigns and is_open and all(own.get(key, value) == value for key, value in self.node_labels)

    def nodes_for(self, selector: frozenset[tuple[str, str]]) -> PodNodes | None:
        """Return what such pods get, None if they have it."""
        labels = dict(sorted(self.node_labels - selector))
        return (
            PodNodes(dict(sorted(selector)), labels, list(map(dict, self.tolerations)))
            if (labels or self.tolerations)
            else None
        )


@dataclass(frozen=True, slots=True)
class ClusterQueue:
    """A ClusterJobQueue: its part in decisions, and its rules for jobs. `problem` says why it admits nothing."""

    queue: Queue
    flavors: tuple[str, ...]
    namespaces: Selector | None
    priority_classes: frozenset[str]
    pending_max: int
    losses_max: int
    evictions_per_hour: int
    checks: tuple[Check, ...] = ()


def compile_flavor(source: Mapping[str, Any]) -> Flavor:
    """Return the flavour; SelectorError for a malformed selector."""
    spec = source.get("spec") or {}
    selector = spec.get("clusterSelector")
    return Flavor(
        source["metadata"]["name"],
        None if selector is None else compile_label_selector(selector),
        frozenset((str(key), str(value)) for key, value in (spec.get("nodeLabels") or {}).items()),
        spec.get("assignNodes") is True,
        tuple(spec.get("tolerations") or ()),
    )


def compile_queue(source: Mapping[str, Any]) -> ClusterQueue:
    """Return the queue; SelectorError or ValueError for a malformed object."""
    name, spec = source["metadata"]["name"], source.get("spec") or {}
    limits: dict[Pair, Limit] = {}
    for flavor in spec.get("flavors") or ():
        for resource in flavor.get("resources") or ():
            kind = resource["name"]
            limits[flavor["name"], kind] = Limit(
                amount_of(kind, resource["nominalQuota"]),
                _optional(kind, resource.get("borrowingLimit")),
                _optional(kind, resource.get("lendingLimit")),
            )
    preemption, selector = spec.get("preemption") or {}, spec.get("namespaceSelector")
    queue = Queue(
        name,
        limits,
        cohort=spec.get("cohort") or "",
        weight=max(1, spec.get("fairWeight") or 1),
        is_held=is_held(spec),
        is_drained=is_drained(spec),
        keeps=spec.get("queueingStrategy") != "BestEffortFIFO",
        gives_way_within=preemption.get("withinQueue") == "LowerPriority",
        reclaim=Reclaim(preemption.get("reclaimWithinCohort") or "Never"),
    )
    per_hour = preemption.get("evictionsPerHour")
    losses = spec.get("lossesMax")
    return ClusterQueue(
        queue,
        tuple(flavor["name"] for flavor in spec.get("flavors") or ()),
        None if selector is None else compile_label_selector(selector),
        frozenset(spec.get("priorityClassNames") or ()),
        spec.get("pendingMax") or 10_000,
        3 if losses is None else losses,
        10 if per_hour is None else per_hour,
        compile_checks(spec),
    )


def is_held(spec: Mapping[str, Any]) -> bool:
    """Return whether a queue admits nothing."""
    return spec.get("stopPolicy") in ("Hold", "HoldAndDrain")


def is_drained(spec: Mapping[str, Any]) -> bool:
    """Return whether jobs of a queue have to leave their clusters."""
    return spec.get("stopPolicy") == "HoldAndDrain"


def amount_of(resource: str, value: str | int) -> int:
    """Return an amount as an integer: cpu in thousandths."""
    return to_milli(value) if resource == CPU else to_int_ceil(value)


def _optional(resource: str, value: str | int | None) -> int | None:
    return None if value is None else amount_of(resource, value)


def options_for(
    components: tuple[Component, ...],
    queue: ClusterQueue,
    flavors: Mapping[str, Flavor],
    clusters: Mapping[str, Mapping[str, str]],
) -> tuple[Option, ...]:
    """Return the choices of flavours for a job, the queue's first flavours first; () if a component can use none.

    `clusters` are the labels of all clusters. Components with equal selectors get the same flavour.
    """
    selectors = list(dict.fromkeys(component.selector for component in components))
    is_open = all(component.is_open for component in components)
    usable = [
        [flavors[name] for name in queue.flavors if name in flavors and flavors[name].can_have(each, is_open=is_open)]
        for each in selectors
    ]
    found = []
    for chosen in islice(product(*usable), OPTIONS_MAX):
        by_selector = dict(zip(selectors, chosen, strict=True))
        amounts: dict[Pair, int] = {}
        for component in components:
            flavor = by_selector[component.selector].name
            for resource, amount in component.amounts().items():
                if amount and (resource != PODS or (flavor, PODS) in queue.queue.limits):
                    amounts[flavor, resource] = amounts.get((flavor, resource), 0) + amount
        nodes = (flavor.nodes_for(selector) for selector, flavor in by_selector.items()) if is_open else ()
        given = tuple(each for each in nodes if each is not None)
        found.append(Option(amounts, _clusters_of(chosen, clusters), given))
    return tuple(found)


def _clusters_of(chosen: Iterable[Flavor], clusters: Mapping[str, Mapping[str, str]]) -> frozenset[str]:
    selectors = [flavor.clusters for flavor in chosen if flavor.clusters is not None]
    return frozenset(
        name for name, labels in clusters.items() if all(selector.matches(labels) for selector in selectors)
    )
