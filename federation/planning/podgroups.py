"""Groups of bare Pods: the labels by which a pod says its group, and the record of the group on its pods. Pure.

One pod of a group leads: it is scheduled for all of them, as one gang with one demand. The others go where it goes. The
wing `features/podgroups` writes the record into an annotation of each federated Pod; scheduler, queues and quotas read
it, so that all of them count a group once, by its leader.

Decision: docs/decisions/0167-a-pod-of-a-group-leads.md
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from federation.api import names
from federation.api.components import ComponentRule, Components
from federation.apimachinery import dotpaths
from federation.apimachinery.annotationrecords import AnnotationRecord, Count
from federation.planning.components import COMPONENTS_MAX, pods_of

_POD = Components((ComponentRule("pods", at=("spec",), pod_specs=((),)),))
_COUNT_MAX = 2**31 - 1
_BYTES_MAX = 64 * 1024
"""The different specs of one group, as JSON: they are an annotation."""


class CountedPod(msgspec.Struct, frozen=True):
    """So many pods of a group, and the parts of the spec of each that decide where it fits."""

    count: Count
    pod: dict[str, Any]


class PodGroup(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record on a pod: its group, and what it is there.

    `leader` is the pod that decides, "" on this pod itself. It has all `pods`; the others have its `clusters`. `waits`
    says why the group cannot be scheduled yet.
    """

    name: str
    leader: str = ""
    pods: tuple[CountedPod, ...] = ()
    clusters: tuple[str, ...] = ()
    waits: str = ""

    @property
    def leads(self) -> bool:
        """Whether the pod decides for the group, which is complete."""
        return not self.leader and not self.waits


POD_GROUP = AnnotationRecord(names.POD_GROUP, PodGroup)


class GroupRef(NamedTuple):
    """A group in its namespace. `api_group` is that of its PodGroup, "" if the pods themselves say how many there are.

    As text it is the key of an index.
    """

    api_group: str
    name: str

    def __str__(self) -> str:
        return f"{self.api_group}/{self.name}"


class _Counted(NamedTuple):
    """A label with the name, and the label or annotation with the number of pods."""

    label: str
    field: str
    count_key: str


_KUEUE = "kueue.x-k8s.io/pod-group-name"
_COUNTED = (
    _Counted(_KUEUE, "annotations", "kueue.x-k8s.io/pod-group-total-count"),
    _Counted("pod-group.scheduling.sigs.k8s.io/name", "labels", "pod-group.scheduling.sigs.k8s.io/min-available"),
)
_OBJECTS: Mapping[str, tuple[dotpaths.Path, dotpaths.Path]] = {
    "scheduling.x-k8s.io": (("metadata", "labels", "scheduling.x-k8s.io/pod-group"), ("spec", "minMember")),
    "scheduling.volcano.sh": (("metadata", "annotations", "scheduling.k8s.io/group-name"), ("spec", "minMember")),
    "scheduling.k8s.io": (
        ("spec", "schedulingGroup", "podGroupName"),
        ("spec", "schedulingPolicy", "gang", "minCount"),
    ),
}
"""By the API group of a PodGroup: where a pod names it, and where it says how many pods start together."""
KIND = "PodGroup"


def group_of(template: Mapping[str, Any]) -> GroupRef | None:
    """Return the group that a pod names, None for a pod without one and for other kinds."""
    if template.get("kind") != "Pod" or template.get("apiVersion") != "v1":
        return None
    labels = (template.get("metadata") or {}).get("labels") or {}
    for each in _COUNTED:
        if name := labels.get(each.label):
            return GroupRef("", str(name))
    for api_group, (path, _) in _OBJECTS.items():
        name = dotpaths.get(template, path)
        if isinstance(name, str) and name:
            return GroupRef(api_group, name)
    return None


def is_pod_group(template: Mapping[str, Any]) -> bool:
    """Return whether an object is a PodGroup that pods may name."""
    return template.get("kind") == KIND and str(template.get("apiVersion")).partition("/")[0] in _OBJECTS


def size_of(ref: GroupRef, pods: Iterable[Mapping[str, Any]], group: Mapping[str, Any] | None) -> int | str:
    """Return how many pods have to exist before any starts, or why that is not known.

    `pods` are the templates of those that exist, `group` is the template of the PodGroup.
    """
    if ref.api_group:
        if group is None:
            return f"PodGroup {ref.name} of {ref.api_group} is not federated; create it, and select it with a policy"
        size = dotpaths.get(group, _OBJECTS[ref.api_group][1])
        return size if type(size) is int else 1
    sizes = set()
    for pod in pods:
        metadata = pod.get("metadata") or {}
        each = next(each for each in _COUNTED if (metadata.get("labels") or {}).get(each.label))
        text = str((metadata.get(each.field) or {}).get(each.count_key, ""))
        if not (text.isascii() and text.isdecimal() and 0 < int(text[:11]) <= _COUNT_MAX):
            return f"pod {metadata.get('name')} has no number of pods; set {each.count_key} in its {each.field}"
        sizes.add(int(text))
    if len(sizes) > 1:
        return f"its pods name different numbers of pods: {', '.join(map(str, sorted(sizes)))}"
    return max(sizes, default=1)


def count_pods(pods: Iterable[Mapping[str, Any]]) -> tuple[CountedPod, ...] | str:
    """Return the pods of templates, equal ones counted together, or why they cannot be counted."""
    counts: dict[bytes, int] = {}
    for template in pods:
        for each in pods_of(template, _POD):
            content = msgspec.json.encode(each.pod, order="sorted")
            counts[content] = counts.get(content, 0) + 1
    if len(counts) > COMPONENTS_MAX or sum(map(len, counts)) > _BYTES_MAX:
        return (
            f"its pods have more than {COMPONENTS_MAX} different specs, or too long ones; divide it into several groups"
        )
    return tuple(CountedPod(count, msgspec.json.decode(pod)) for pod, count in sorted(counts.items()))
