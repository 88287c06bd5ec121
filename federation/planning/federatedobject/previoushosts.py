"""Objects in members that Karmada or KubeAdmiral delivered, and whether that control plane still runs. Pure.

Two control planes that write the same object undo each other's changes, and one whose objects are deleted deletes in
the members. So an object of the other is taken over only when the other is off: nobody renews its Leases, and nobody
probes its clusters. KubeAdmiral elects no leader by default, so its probes are what tells.

Decision: docs/decisions/0064-the-previous-control-plane-is-off.md
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from federation.api import names
from federation.apimachinery.clock import parse_rfc3339

KARMADA_DOMAIN = "karmada.io"


class PreviousHost(StrEnum):
    """A control plane whose objects can be taken over."""

    KARMADA = "Karmada"
    KUBEADMIRAL = "KubeAdmiral"


DOMAINS = {PreviousHost.KARMADA: KARMADA_DOMAIN, PreviousHost.KUBEADMIRAL: "kubeadmiral.io"}
"""The domains of their labels, annotations and finalizers."""
_NAMESPACES = {PreviousHost.KARMADA: "karmada", PreviousHost.KUBEADMIRAL: "kube-admiral"}
"""The prefix of the namespaces of their Leases."""
_KARMADA_MARKS = ("karmada.io/managed", "work.karmada.io/name", "resourcetemplate.karmada.io/uid")
_PROBE_AGE_MAX = timedelta(seconds=100)
"""KubeAdmiral probes every 30 s and takes a cluster for lost after 100 s."""
_LEASE_DURATIONS = 2
"""After this many durations without renewal nobody holds a Lease."""


def in_domain(key: str, domain: str) -> bool:
    """Return whether the prefix of a label, annotation, finalizer or API version is of the domain."""
    prefix = key.partition("/")[0]
    return prefix == domain or prefix.endswith(f".{domain}")


def delivered_by(live: Mapping[str, Any]) -> PreviousHost | None:
    """Return who delivered the member's object, None if it was not one of them or this federation manages it now."""
    labels, annotations = (live["metadata"].get(key) or {} for key in ("labels", "annotations"))
    if names.TEMPLATE_HASH in annotations:
        return None
    if any(mark in labels or mark in annotations for mark in _KARMADA_MARKS):
        return PreviousHost.KARMADA
    return PreviousHost.KUBEADMIRAL if labels.get(names.MANAGED_LABEL) == "true" else None


def remaining_finalizers(live: Mapping[str, Any]) -> list[str]:
    """Return finalizers of these control planes on the member's object."""
    finalizers = live["metadata"].get("finalizers") or ()
    return [each for each in finalizers if any(in_domain(each, domain) for domain in DOMAINS.values())]


def signs_of_life(
    host: PreviousHost, leases: Iterable[Mapping[str, Any]], clusters: Iterable[Mapping[str, Any]], now: datetime
) -> list[str]:
    """Return what shows that the control plane runs; `clusters` are KubeAdmiral's FederatedClusters."""
    found = []
    for lease in leases:
        metadata, spec = lease["metadata"], lease.get("spec") or {}
        if not str(metadata.get("namespace")).startswith(_NAMESPACES[host]):
            continue
        age_max = timedelta(seconds=_LEASE_DURATIONS * int(spec.get("leaseDurationSeconds") or 0))
        if _is_recent(spec.get("renewTime"), age_max, now):
            found.append(f"Lease {metadata['namespace']}/{metadata['name']} was renewed at {spec['renewTime']}")
    for cluster in clusters:
        for condition in (cluster.get("status") or {}).get("conditions") or ():
            if _is_recent(condition.get("lastProbeTime"), _PROBE_AGE_MAX, now):
                name = cluster["metadata"]["name"]
                found.append(f"FederatedCluster {name} was probed at {condition['lastProbeTime']}")
                break
    return found


def _is_recent(text: Any, age_max: timedelta, now: datetime) -> bool:
    moment = parse_rfc3339(text)
    return moment is not None and now - moment <= age_max
