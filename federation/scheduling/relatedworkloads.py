"""A federated object as a workload of the index. Pure.

Objects with pods are workloads, and those of kinds with replicas. What has neither, for example a ConfigMap, can have
rules about workloads, but is nobody's partner.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.planning.federatedobject.placements import placement_of
from federation.scheduling.affinity.index import Workload
from federation.scheduling.podrequest import has_pods
from federation.scheduling.policyspec import Policy


def to_workload(federated: Mapping[str, Any], federated_type: FederatedType, policy: Policy | None) -> Workload:
    """Return the workload with the clusters that the scheduler placed it in, and the rules of its policy."""
    metadata, template = federated["metadata"], federated["spec"]["template"]
    source = template.get("metadata") or {}
    namespace, labels = str(metadata.get("namespace") or ""), source.get("labels") or {}
    found = (rule.for_object(namespace, labels) for rule in (policy.workload_rules if policy is not None else ()))
    return Workload(
        key_of(federated),
        namespace,
        f"{template.get('kind')} {source.get('name')}",
        labels if is_partner(template, federated_type) else None,
        frozenset(placement_of(federated, names.GLOBAL_SCHEDULER)),
        tuple(dict.fromkeys(rule for rule in found if rule is not None)),
    )


def placed_in(workload: Workload, clusters: Iterable[str]) -> Workload:
    """Return the workload in other clusters."""
    return replace(workload, clusters=frozenset(clusters))


def is_partner(template: Mapping[str, Any], federated_type: FederatedType) -> bool:
    """Return whether rules can be about the object."""
    return has_pods(template, federated_type) or bool(federated_type.paths.replicas_spec)


def key_of(federated: Mapping[str, Any]) -> Hashable:
    """Return the key of a federated object in the index: its namespace and name."""
    metadata = federated["metadata"]
    return str(metadata.get("namespace") or ""), str(metadata["name"])
