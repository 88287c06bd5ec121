"""The free capacity of a member's nodes as a small histogram: `status.resources.nodeClasses`. Pure.

A sum over all nodes does not show whether a replica fits on any. Nodes are grouped into classes with the same taints
and selectable labels, and each class into buckets of nodes with similar free resources. A bucket has the minimum of its
nodes and amounts are rounded down, so the histogram never shows more than fits; up to `BUCKETS_MAX` different nodes it
is exact. `scheduling/framework/capacity.py` reads it.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence

from federation.apimachinery.quantity import NANOS, Notation, Quantity
from federation.apimachinery.resources import Object

CPU = "cpu"
PODS = "pods"
BUCKETS_MAX = 64
"""Buckets per cluster: about 6 KiB of status."""
CLASSES_MAX = 16
_COMPARISONS_MAX = 1_000_000
"""Nodes times label keys that `classify` compares: about 0.2 s. More keys are omitted."""
_OMITTED_MAX = 1_000
"""Label keys that are published as omitted."""
_HOSTNAME = "kubernetes.io/hostname"
_MILLI_NANOS = NANOS // 1000
_SIGNIFICANT_BITS = 6
"""Precision of rounded amounts: a loss of at most 3 %, none for whole cores and GiB below 64."""

Amounts = dict[str, int]
"""Resource name → amount; cpu in thousandths, everything else in whole units."""
Taints = tuple[tuple[str, str, str], ...]
"""(key, value, effect) of the NoSchedule and NoExecute taints, sorted."""
_Vector = tuple[int, ...]
_Labels = tuple[tuple[str, str], ...]
ClassKey = tuple[_Labels, Taints]
Amount = tuple[Mapping[str, int], Mapping[str, int]]
"""(allocatable, free) of one node."""


def classify(nodes: Mapping[str, tuple[Mapping[str, str], Taints]]) -> tuple[dict[str, ClassKey], list[str]]:
    """Return each node's class, and the label keys that classes ignore.

    Classes differ in taints and in labels, keys with few values first, while there are at most `CLASSES_MAX`; the
    hostname is never one of them. All nodes of a class have the same value of its labels.
    """
    values: dict[str, set[str]] = {}
    for labels, _ in nodes.values():
        for key, value in labels.items():
            values.setdefault(key, set()).add(value)
    kept: list[str] = []
    parts = _numbered({name: taints for name, (_, taints) in nodes.items()})
    candidates = sorted(
        (key for key in values if key != _HOSTNAME and len(values[key]) <= CLASSES_MAX),
        key=lambda key: (len(values[key]), key),
    )
    for key in candidates[: _COMPARISONS_MAX // max(1, len(nodes))]:
        finer = _numbered({name: (parts[name], labels.get(key)) for name, (labels, _) in nodes.items()})
        if len(set(finer.values())) <= CLASSES_MAX:
            kept.append(key)
            parts = finer
    kept.sort()
    classes = {
        name: (tuple((key, labels[key]) for key in kept if key in labels), taints)
        for name, (labels, taints) in nodes.items()
    }
    return classes, sorted(values.keys() - set(kept))[:_OMITTED_MAX]


def _numbered(parts: Mapping[str, Hashable]) -> dict[str, int]:
    """Return a number for each node that is the same for equal parts."""
    numbers: dict[Hashable, int] = {}
    return {name: numbers.setdefault(part, len(numbers)) for name, part in parts.items()}


def compute_node_classes(
    classes: Mapping[ClassKey, Sequence[Amount]], omitted: Sequence[str] = (), *, buckets_max: int = BUCKETS_MAX
) -> Object:
    """Return the status fields `nodeClasses` and `omittedNodeLabels` for the nodes of each class."""
    # With more sets of taints than classes, the nodes with the rarest ones are omitted.
    ordered = sorted(classes.items(), key=lambda entry: (-len(entry[1]), entry[0]))[:CLASSES_MAX]
    shares = _shares([len(nodes) for _, nodes in ordered], buckets_max)
    listed = [_to_class(key, nodes, share) for (key, nodes), share in zip(ordered, shares, strict=True)]
    return {"nodeClasses": listed, "omittedNodeLabels": list(omitted)} if omitted else {"nodeClasses": listed}


def _shares(sizes: Sequence[int], total: int) -> list[int]:
    """Return the number of buckets per class: at least one each, the rest by the number of nodes."""
    nodes, spare = sum(sizes), total - len(sizes)
    return [1 + spare * size // nodes for size in sizes] if nodes else []


def _to_class(key: ClassKey, nodes: Sequence[Amount], buckets_max: int) -> Object:
    names = sorted({name for allocatable, _ in nodes for name, amount in allocatable.items() if amount > 0})
    vectors = Counter([tuple([max(0, free.get(name, 0)) for name in names]) for _, free in nodes])
    labels, taints = key
    result: Object = {
        "nodes": len(nodes),
        "largest": to_texts({name: max(allocatable.get(name, 0) for allocatable, _ in nodes) for name in names}),
    }
    if labels:
        result["labels"] = dict(labels)
    if taints:
        result["taints"] = [{"key": key, "value": value, "effect": effect} for key, value, effect in taints]
    free = [
        {"nodes": count, "resources": to_texts(dict(zip(names, vector, strict=True)))}
        for vector, count in _buckets(vectors, buckets_max)
    ]
    if free:
        result["free"] = free
    return result


def _buckets(vectors: Mapping[_Vector, int], buckets_max: int) -> list[tuple[_Vector, int]]:
    """Return at most `buckets_max` pairs of minimum and number of nodes, most free first."""
    if len(vectors) > buckets_max:
        rounded: Counter[_Vector] = Counter()
        for vector, count in vectors.items():
            rounded[tuple(map(round_down, vector))] += count
        vectors = rounded
    if len(vectors) > buckets_max:
        vectors = _merged(vectors, buckets_max)
    return sorted(((vector, count) for vector, count in vectors.items() if any(vector)), reverse=True)


def round_down(amount: int) -> int:
    """Return the amount with its highest bits only; cpu in thousandths keeps whole and quarter cores."""
    if amount % 1000 == 0:
        return round_down(amount // 1000) * 1000 if amount else 0
    excess = amount.bit_length() - _SIGNIFICANT_BITS
    binary = amount >> excess << excess if excess > 0 else amount
    return max(binary, amount - amount % 250 if amount < 16_000 else 0)


def _merged(vectors: Mapping[_Vector, int], buckets_max: int) -> dict[_Vector, int]:
    """Return `buckets_max` buckets: split the group with the largest loss in the middle of its widest side."""
    width = len(next(iter(vectors)))
    scales = [max(1, *(vector[side] for vector in vectors)) for side in range(width)]
    groups = [_Group(sorted(vectors.items()), scales)]
    while len(groups) < buckets_max:
        worst = max(range(len(groups)), key=lambda index: groups[index].loss)
        if groups[worst].loss <= 0:
            break
        groups[worst : worst + 1] = groups[worst].split()
    merged: Counter[_Vector] = Counter()
    for group in groups:
        merged[group.floor] += group.nodes
    return merged


class _Group:
    """Nodes that may become one bucket."""

    __slots__ = ("_entries", "_scales", "_side", "floor", "loss", "nodes")

    def __init__(self, entries: list[tuple[_Vector, int]], scales: list[int]) -> None:
        self._entries = entries
        self._scales = scales
        sides = list(zip(*(vector for vector, _ in entries), strict=True))
        self.floor: _Vector = tuple(map(min, sides))
        self.nodes = sum(count for _, count in entries)
        losses = [
            sum((vector[side] - low) * count for vector, count in entries) / scales[side]
            for side, low in enumerate(self.floor)
        ]
        self.loss = sum(losses)
        self._side = max(range(len(losses)), key=losses.__getitem__)

    def split(self) -> list["_Group"]:
        side = self._side
        values = [vector[side] for vector, _ in self._entries]
        middle = (min(values) + max(values)) / 2
        low = [entry for entry in self._entries if entry[0][side] <= middle]
        high = [entry for entry in self._entries if entry[0][side] > middle]
        return [_Group(low, self._scales), _Group(high, self._scales)]


def to_texts(amounts: Mapping[str, int]) -> dict[str, str]:
    """Return a ResourceList in Kubernetes' text form, without zeros."""
    return {name: _to_text(name, amount) for name, amount in sorted(amounts.items()) if amount}


def _to_text(name: str, amount: int) -> str:
    return str(to_quantity(name, amount))


def to_quantity(name: str, amount: int) -> Quantity:
    """Return an amount of a resource, cpu in thousandths, as a quantity."""
    if name == CPU:
        return Quantity(amount * _MILLI_NANOS)
    is_bytes = name in ("memory", "ephemeral-storage") or name.startswith("hugepages-")
    return Quantity(amount * NANOS, Notation.BINARY_SI if is_bytes else Notation.DECIMAL_SI)


def floor_amounts(quantities: Iterable[tuple[str, Quantity]]) -> Amounts:
    """Return the allocatable amounts of a node as integers, rounded down."""
    return {name: quantity.nanos // (_MILLI_NANOS if name == CPU else NANOS) for name, quantity in quantities}


def ceil_amounts(quantities: Iterable[tuple[str, Quantity]]) -> Amounts:
    """Return the requests of a pod as integers, rounded up."""
    return {name: quantity.milli if name == CPU else quantity.value for name, quantity in quantities}
