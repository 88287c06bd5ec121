"""A policy from the fields of a form: which objects, which clusters, how. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from federation.api.resources import CLUSTER_PROPAGATION_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery import nameformats
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import Object, Resource
from federation.web.ui.actions.action import Form, required
from federation.web.ui.actions.objectactions import parse_labels

KINDS: Mapping[str, str] = {
    "Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "Job": "batch/v1", "CronJob": "batch/v1",
    "Service": "v1", "ConfigMap": "v1", "Secret": "v1", "Ingress": "networking.k8s.io/v1",
}  # fmt: skip
"""Kinds that the form offers, with their versions."""
MODES = (("Divide", "Divide: clusters share the replicas"), ("Duplicate", "Copy: each cluster gets all of it"))
_CLUSTERS_MAX = 200
_WEIGHT_MAX = 1_000
_COUNT_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Draft:
    """A policy that does not exist yet."""

    resource: Resource
    namespace: str
    manifest: Object

    @property
    def name(self) -> str:
        """The name of the policy."""
        return str(self.manifest["metadata"]["name"])

    @property
    def text(self) -> str:
        """The manifest as YAML."""
        return str(yaml.dump(self.manifest, Dumper=yaml.CSafeDumper, sort_keys=False, width=120, allow_unicode=True))


def to_draft(form: Form) -> Draft:
    """Return the policy that a form describes; ConfigurationError names the field that is wrong."""
    name, namespace = required(form, "name", "Name"), form.get("namespace", "").strip()
    for label, value in (("Name", name), ("Namespace", namespace)):
        if value and (problems := nameformats.dns1123_subdomain(value)):
            raise ConfigurationError(f"{label}: {value[:100]!r}: {problems[0]}")
    resource = PROPAGATION_POLICIES if namespace else CLUSTER_PROPAGATION_POLICIES
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    spec: dict[str, Any] = {"schedulingMode": _mode(form), "resourceSelectors": _selectors(form)}
    placement, labels = _placement(form.get("clusters", "")), _labels(form, "clusterlabels", "Labels of clusters")
    if placement:
        spec["placement"] = placement
    if labels:
        spec["clusterSelector"] = labels
    if most := form.get("most", "").strip():
        spec["maxClusters"] = _number("At most", most, _COUNT_MAX)
    manifest = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}
    return Draft(resource, namespace, manifest)


def _mode(form: Form) -> str:
    mode = form.get("mode", "")
    if mode not in dict(MODES):
        raise ConfigurationError(f"How: {mode[:50]!r} is not one of those offered")
    return mode


def _selectors(form: Form) -> list[Object]:
    kinds = [kind for kind in KINDS if form.get(f"kind-{kind}")]
    if not kinds:
        raise ConfigurationError("Kinds: choose at least one")
    labels = _labels(form, "labels", "Labels of objects")
    matched = {"labelSelector": {"matchLabels": labels}} if labels else {}
    return [{"apiVersion": KINDS[kind], "kind": kind, **matched} for kind in kinds]


def _labels(form: Form, field: str, title: str) -> dict[str, str]:
    try:
        return parse_labels(form.get(field, "").replace(",", "\n"))
    except ConfigurationError as error:
        raise ConfigurationError(f"{title}{str(error).removeprefix('Labels')}") from error


def _placement(text: str) -> list[Object]:
    """Return the clusters of `member-1=2, member-2`: names with commas between, and weights if there are some."""
    parts = [part.strip() for part in text.replace("\n", ",").split(",") if part.strip()]
    if len(parts) > _CLUSTERS_MAX:
        raise ConfigurationError(f"Clusters: {len(parts)} names; at most {_CLUSTERS_MAX}, or choose by labels")
    found: dict[str, Object] = {}
    for part in parts:
        name, has_weight, weight = (each.strip() for each in part.partition("="))
        if nameformats.dns1123_subdomain(name):
            raise ConfigurationError(f"Clusters: {name[:100]!r} is no name of a cluster; write member-1=2, member-2=1")
        if name in found:
            raise ConfigurationError(f"Clusters: {name} occurs twice")
        preferences = {"preferences": {"weight": _number("Clusters", weight, _WEIGHT_MAX)}} if has_weight else {}
        found[name] = {"cluster": name, **preferences}
    weighted = sum("preferences" in each for each in found.values())
    if weighted not in (0, len(found)):
        raise ConfigurationError("Clusters: give each of them a weight, or none of them")
    return list(found.values())


def _number(title: str, text: str, most: int) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 9 or not 1 <= int(text) <= most:
        raise ConfigurationError(f"{title}: {text[:50]!r}: write a whole number from 1 to {most}")
    return int(text)
