"""The ordinals of a StatefulSet that is divided over clusters. Pure.

A StatefulSet numbers its pods from `spec.ordinals.start`. Each cluster gets a range of its own, so that no two pods
have the same name. A range is recorded when a cluster is used for the first time and never moves: to scale one cluster
renumbers no pod anywhere (docs/decisions/0027). `plan_ranges` chooses the ranges, `divide_partition` divides the
number of pods that a rolling update leaves on the old revision.
"""

import re
from collections.abc import Collection, Mapping
from itertools import pairwise
from typing import Annotated, Any

import msgspec

from federation.api import names
from federation.api.resources import KRUISE_GROUP
from federation.apimachinery.annotationrecords import AnnotationRecord
from federation.apimachinery.errors import InvalidInput

_ROOM = 1000
"""Ordinals between the starts of two ranges, so that every cluster can grow. More if the StatefulSet is larger."""
_ORDINAL_MAX = 2**31 - 1
_RECORDED_MAX = 10_000
_RESERVED = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10}))?")


class OrdinalError(InvalidInput):
    """The ranges leave no room; the message is for the user."""


STATEFUL_SETS = frozenset({("apps", "StatefulSet"), (KRUISE_GROUP, "StatefulSet")})
STARTS = AnnotationRecord(names.ORDINAL_STARTS, dict[str, Annotated[int, msgspec.Meta(ge=0, le=_ORDINAL_MAX)]])


def parse_record(text: str | None) -> dict[str, int]:
    """Return the recorded start of each cluster's range, relative to the template's start; {} without a record."""
    found = STARTS.read(text) or {}
    return found if len(set(found.values())) == len(found) <= _RECORDED_MAX else {}


def plan_ranges(
    replicas: Mapping[str, int], recorded: Mapping[str, int], *, base: int, first: Collection[str] = ()
) -> dict[str, int]:
    """Return the start of each range, relative to `base`, with the recorded ones; OrdinalError if there is no room.

    `replicas` are the ordinals that each placed cluster needs: its replicas, and those that it has to leave out. New
    clusters come after all recorded ones, those in `first` before others. A recorded cluster that is not placed keeps
    its range, unless another cluster has grown into it.
    """
    room = _rounded_up(max(_ROOM, 2 * sum(replicas.values())))
    starts = dict(recorded)
    for cluster in sorted(replicas.keys() - starts.keys(), key=lambda name: (name not in first, name)):
        ends = (start + max(room, _rounded_up(replicas.get(name, 0))) for name, start in starts.items())
        starts[cluster] = max(ends, default=0)
    placed = sorted(replicas, key=lambda name: starts[name])
    for cluster, following in pairwise(placed):
        if starts[cluster] + replicas[cluster] > starts[following]:
            raise OrdinalError(
                f"cluster {cluster} has the ordinals from {base + starts[cluster]} and cluster {following} those from"
                f" {base + starts[following]}, which leaves no room for {replicas[cluster]} replicas in {cluster}:"
                f" limit it with maxReplicas: {starts[following] - starts[cluster]} in the policy"
            )
    if placed and base + starts[placed[-1]] + replicas[placed[-1]] > _ORDINAL_MAX:
        raise OrdinalError(f"the ordinals of cluster {placed[-1]} would exceed {_ORDINAL_MAX}")
    taken = [range(starts[name], starts[name] + replicas[name]) for name in placed]
    return {name: start for name, start in starts.items() if name in replicas or not any(start in r for r in taken)}


def start_of_range(ordinal: int) -> int:
    """Return the start of the range that an ordinal, relative to the template's start, is in if no range is larger."""
    return max(0, ordinal // _ROOM * _ROOM)


def count_reserved(entries: Any) -> int:
    """Return the number of ordinals that `reserveOrdinals` leaves out: numbers, and ranges such as "3-5".

    Malformed entries count as none.
    """
    count = 0
    for entry in entries if isinstance(entries, list) else ():
        matched = _RESERVED.fullmatch(str(entry))
        if matched is not None:
            first, last = int(matched[1]), int(matched[2] or matched[1])
            count += max(0, min(last, _ORDINAL_MAX) - first + 1)
    return count


def divide_partition(partition: int, replicas: Mapping[str, int], starts: Mapping[str, int]) -> dict[str, int]:
    """Return each cluster's partition, so that a rolling update leaves `partition` pods as they are in total.

    Kubernetes counts a partition from the start of the ordinals. The lowest ordinals stay, as in one cluster. For kinds
    without ordinals, `starts` is the order of the clusters; the last ones are updated first.
    """
    found, remaining = {}, partition
    for cluster in sorted(replicas, key=lambda name: starts[name]):
        found[cluster] = min(remaining, replicas[cluster])
        remaining -= found[cluster]
    return found


def _rounded_up(count: int) -> int:
    return -(-count // _ROOM) * _ROOM
