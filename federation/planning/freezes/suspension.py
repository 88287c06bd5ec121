"""The suspension that holds an object in a cluster now, and until when. Pure.

A ClusterDeliverySuspension holds every write and every removal. A DeliverySuspension is written by the users of one
namespace: it holds creations and updates only, so that it stops no deletion, drain or removal of a cluster.

A suspension is stored, and what it holds is decided again at each look. One that cannot be read holds everything that
it may be about: a mistake in it must not lift it.

Reference: docs/reference/suspensions.md.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from federation.apimachinery.clock import from_rfc3339, to_rfc3339
from federation.apimachinery.resources import NAMESPACES, GroupKind, group_kind_of
from federation.apimachinery.selectors import EVERYTHING, Selector, SelectorError, compile_label_selector

_MALFORMED = (SelectorError, ValueError, TypeError, KeyError, AttributeError)


@dataclass(frozen=True, slots=True)
class _Objects:
    """Objects by kind in any version, name and labels; "" stands for any name."""

    kind: GroupKind
    name: str
    labels: Selector

    def matches(self, obj: Mapping[str, Any]) -> bool:
        metadata = obj.get("metadata") or {}
        if group_kind_of(obj) != self.kind:
            return False
        return self.name in ("", metadata.get("name")) and self.labels.matches(metadata.get("labels") or {})


@dataclass(frozen=True, slots=True)
class Suspension:
    """A compiled DeliverySuspension or ClusterDeliverySuspension; empty parts select everything.

    `problem` says why it cannot be read.
    """

    title: str
    message: str
    namespaces: frozenset[str] = frozenset()
    clusters: frozenset[str] = frozenset()
    selector: Selector = EVERYTHING
    objects: tuple[_Objects, ...] = ()
    until: datetime | None = None
    problem: str = ""
    scope: str = ""
    """The namespace of a DeliverySuspension, "" for the cluster-wide kind."""

    @property
    def is_cluster_wide(self) -> bool:
        """Whether an administrator wrote it: then it holds removals, too."""
        return self.scope == ""

    def concerns(self, obj: Mapping[str, Any], namespace: str, cluster: str, labels: Mapping[str, str]) -> bool:
        """Return whether it is about an object of the host in a cluster with these labels.

        A Namespace counts as an object of itself: its deletion takes them with it. A DeliverySuspension is about no
        object without a namespace, which its author need not be allowed to change, and so not about the Namespace.
        """
        if not namespace and self.scope:
            return False
        if not namespace and obj.get("kind") == NAMESPACES.kind:
            namespace = str((obj.get("metadata") or {}).get("name"))
        if self.namespaces and namespace not in self.namespaces:
            return False
        if (self.clusters and cluster not in self.clusters) or not self.selector.matches(labels):
            return False
        return not self.objects or any(each.matches(obj) for each in self.objects)


def compile_suspension(source: Mapping[str, Any]) -> Suspension:
    """Return the compiled form; one that cannot be read holds everything within its namespace or namespaces."""
    metadata, spec = source["metadata"], source.get("spec") or {}
    namespace = metadata.get("namespace")
    where = f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])
    title = f"{source.get('kind') or ('DeliverySuspension' if namespace else 'ClusterDeliverySuspension')} {where}"
    namespaces = frozenset((namespace,)) if namespace else frozenset(map(str, spec.get("namespaces") or ()))
    try:
        until = from_rfc3339(str(spec["until"])) if spec.get("until") else None
        return Suspension(
            title,
            f"{title} holds {_describe(until)}: {spec.get('reason')} (owner: {spec.get('owner')})",
            namespaces,
            frozenset(map(str, spec.get("clusters") or ())),
            compile_label_selector(spec["clusterSelector"]) if spec.get("clusterSelector") else EVERYTHING,
            tuple(map(_compile_objects, spec.get("objects") or ())),
            until,
            scope=namespace or "",
        )
    except _MALFORMED as error:
        return Suspension(
            title, f"{title} is malformed: {error}", namespaces, problem=str(error), scope=namespace or ""
        )


def find_suspended(
    suspensions: Iterable[Suspension],
    obj: Mapping[str, Any],
    namespace: str,
    cluster: str,
    labels: Mapping[str, str],
    now: datetime,
    *,
    only_cluster_wide: bool = False,
) -> Suspension | None:
    """Return the suspension that holds the object in the cluster for longest, None for none.

    With `only_cluster_wide`, those of administrators alone: the answer about a removal.
    """
    found = [
        each
        for each in suspensions
        if (each.until is None or each.until > now)
        and (each.is_cluster_wide or not only_cluster_wide)
        and each.concerns(obj, namespace, cluster, labels)
    ]
    if not found:
        return None
    return max(found, key=lambda each: (each.until is None, each.until or now, each.title))


def _describe(until: datetime | None) -> str:
    return "until it is deleted" if until is None else f"until {to_rfc3339(until)}"


def _compile_objects(entry: Mapping[str, Any]) -> _Objects:
    labels = entry.get("labelSelector")
    selector = compile_label_selector(labels) if labels else EVERYTHING
    if not (entry["apiVersion"] and entry["kind"]):
        raise ValueError("objects need apiVersion and kind")
    return _Objects(group_kind_of(entry), str(entry.get("name") or ""), selector)
