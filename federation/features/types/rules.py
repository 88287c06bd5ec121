"""How the FederatedTypeConfigs that ship reach a host, new or old, without undoing what administrators changed. Pure.

Every start compares three states of a configuration: what shipped when this host was last brought up to date
(`before`), what the host has (`live`), and what ships now (`after`). A field that still is as it was shipped follows
the new version; any other one, a removed one too, belongs to the administrators. A configuration that was shipped and
is gone was deleted by them, and stays away. `features/types/shippedtypes.py` acts and keeps the record.
"""

from collections.abc import Mapping
from typing import Any

from federation.api.federatedtype import default_type_configs
from federation.apimachinery.equality import is_json_equal
from federation.apimachinery.mergepatch import create_merge_patch
from federation.apimachinery.resources import Object

_LATER = frozenset(
    {
        "apiservices.apiregistration.k8s.io",
        "clonesets.apps.kruise.io",
        "ingressclasses.networking.k8s.io",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "networkpolicies.networking.k8s.io",
        "poddisruptionbudgets.policy",
        "priorityclasses.scheduling.k8s.io",
        "statefulsets.apps.kruise.io",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "workloadspreads.apps.kruise.io",
    }
)
"""Configurations that the hosts without a record did not get when they were created."""
_WITHOUT_PATHS = frozenset({"cronjobs.batch", "jobs.batch", "statefulsets.apps"})
"""Those that had no `pathDefinition` then."""


def first_shipped() -> dict[str, Object]:
    """Return by name what was shipped to hosts that have no record yet."""
    parts = {config["metadata"]["name"]: shipped_part(config) for config in default_type_configs()}
    for name in _WITHOUT_PATHS:
        del parts[name]["spec"]["pathDefinition"]
    return {name: part for name, part in parts.items() if name not in _LATER}


def shipped_part(config: Mapping[str, Any]) -> Object:
    """Return the part of a configuration that is compared: its annotations and its spec."""
    return {
        "metadata": {"annotations": dict(config["metadata"].get("annotations") or {})},
        "spec": dict(config.get("spec") or {}),
    }


def plan_update(before: Mapping[str, Any], live: Mapping[str, Any], after: Mapping[str, Any]) -> Object:
    """Return the merge patch of a configuration, empty when it stays as it is; `before` and `after` are its parts."""
    present = shipped_part(live)
    patch = create_merge_patch(present, _merged(before, present, after))
    if patch:
        patch["metadata"] = {**patch.get("metadata", {}), "resourceVersion": live["metadata"]["resourceVersion"]}
    return patch


def _merged(before: Any, live: Any, after: Any) -> Any:
    """Return the next value of a field; None is absence. Lists are replaced as a whole."""
    if not (isinstance(live, Mapping) and isinstance(after, Mapping)):
        return after if is_json_equal(before, live) else live
    base = before if isinstance(before, Mapping) else {}
    keys = dict.fromkeys((*live, *after))
    merged = {key: _merged(base.get(key), live.get(key), after.get(key)) for key in keys}
    return {key: value for key, value in merged.items() if value is not None}
