"""The records of one group from its pods: who leads, what the leader decides for, and where the others go. Pure.

The pod that leads keeps to lead while it runs. When it has ended or is gone, one that runs takes over, with its place
in a JobQueue. Pods that have ended count no longer. Pods that cannot be counted with the others are not of the group,
also those that run: a user must not hide them from quotas by a label.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from federation.apimachinery.resources import Object
from federation.planning.federatedobject.finished import has_finished_everywhere
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.podgroups import POD_GROUP, GroupRef, PodGroup, count_pods, size_of
from federation.planning.rendering.admittednodes import QUEUE_NODES
from federation.scheduling.jobqueues import ADMISSION

Changes = Iterator[tuple[Object, dict[str, str | None]]]
"""Federated Pods, and the annotations to write on each."""


def plan_records(ref: GroupRef, pods: Sequence[Object], group: Mapping[str, Any] | None) -> Changes:
    """Yield the records of a group that differ, the leader's first. `group` is the template of its PodGroup."""
    living = [each for each in pods if not each["metadata"].get("deletionTimestamp")]
    running = sorted((each for each in living if not has_finished_everywhere(each)), key=_age)
    if not running:
        return
    leader = _choose(running)
    if not any(map(effective_placement, running)) and (waits := _waits(ref, running, group)):
        yield from _change(leader, PodGroup(ref.name, waits=waits))
        return
    counted = count_pods(each["spec"]["template"] for each in running)
    if isinstance(counted, str):
        members = [each for each in running if _is_counted(each, leader)]
        fewer = count_pods(each["spec"]["template"] for each in members)
        is_led = bool(members) and not isinstance(fewer, str)
        for each in running:
            if not is_led or not _is_counted(each, leader):
                yield from _change(each, PodGroup(ref.name, waits=counted))
        if not is_led or isinstance(fewer, str):
            return
        running, counted = members, fewer
    before = leader if _leads(leader) else next(filter(_leads, living), leader)
    yield from _change(leader, PodGroup(ref.name, pods=counted), _annotations(before, ADMISSION.name, QUEUE_NODES.name))
    clusters, name = tuple(sorted(effective_placement(leader))), str(leader["spec"]["template"]["metadata"]["name"])
    nodes = _annotations(before, QUEUE_NODES.name)
    for each in running:
        if each is not leader and (clusters or POD_GROUP.of(each) is not None):
            yield from _change(each, PodGroup(ref.name, leader=name, clusters=clusters), nodes)


def _is_counted(pod: Object, leader: Object) -> bool:
    """Return whether the leader of a group that runs is charged for a pod, itself included."""
    record = POD_GROUP.of(pod)
    if record is None or not _leads(leader) or not effective_placement(leader):
        return False
    return pod is leader or record.leader == leader["spec"]["template"]["metadata"]["name"]


def _choose(running: Sequence[Object]) -> Object:
    """Return the pod that leads, or else one that has a place; of several one with a place, and the oldest."""
    return max(running, key=lambda each: (_leads(each), bool(effective_placement(each))))


def _leads(pod: Object) -> bool:
    record = POD_GROUP.of(pod)
    return record is not None and record.leads


def _waits(ref: GroupRef, running: Sequence[Object], group: Mapping[str, Any] | None) -> str:
    size = size_of(ref, (each["spec"]["template"] for each in running), group)
    if isinstance(size, str):
        return size
    is_short = len(running) < size
    return f"its pod group {ref.name} is not complete: {len(running)} of {size} pods exist" if is_short else ""


def _annotations(pod: Object, *names: str) -> dict[str, str | None]:
    present = pod["metadata"].get("annotations") or {}
    return {name: present.get(name) for name in names}


def _change(pod: Object, record: PodGroup, more: Mapping[str, str | None] | None = None) -> Changes:
    present = pod["metadata"].get("annotations") or {}
    wanted = {**(more or {}), **POD_GROUP.entry(record)}
    if differing := {name: text for name, text in wanted.items() if present.get(name) != text}:
        yield pod, differing


def _age(pod: Object) -> tuple[str, str]:
    return str(pod["metadata"].get("creationTimestamp") or ""), str(pod["metadata"]["name"])
