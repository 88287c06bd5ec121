"""The pod spec and the containers of workloads (docs/reference/overrides.md)."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from federation.apimachinery import dotpaths
from federation.planning.overrides.errors import OverrideError

_TEMPLATE = ("spec", "template", "spec")
_PATHS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("apps", "Deployment"): _TEMPLATE,
    ("apps", "StatefulSet"): _TEMPLATE,
    ("apps", "DaemonSet"): _TEMPLATE,
    ("apps.kruise.io", "CloneSet"): _TEMPLATE,
    ("apps.kruise.io", "StatefulSet"): _TEMPLATE,
    ("batch", "Job"): _TEMPLATE,
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template", "spec"),
    ("", "Pod"): ("spec",),
}


class Container(NamedTuple):
    """One container, and the JSON pointer to it."""

    name: str
    pointer: str
    value: Mapping[str, Any]


def pod_spec_path(template: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the keys of the pod spec in this kind of workload, of any version; OverrideError if it has none."""
    group = template.get("apiVersion", "").rpartition("/")[0]
    kind = template.get("kind", "")
    path = _PATHS.get((group, kind))
    if path is None:
        raise OverrideError(f"unknown type to get pod spec: {template.get('apiVersion')} {kind}")
    return path


def containers(template: Mapping[str, Any]) -> list[Container]:
    """Return init containers, then containers; OverrideError when the kind or the object has no pod spec."""
    path = pod_spec_path(template)
    spec = dotpaths.get(template, path)
    if not isinstance(spec, Mapping):
        raise OverrideError(f"the object has no {'.'.join(path)}")
    prefix = "/" + "/".join(path)
    return [*_listed(spec, prefix, "initContainers"), *_listed(spec, prefix, "containers")]


def _listed(spec: Mapping[str, Any], prefix: str, field: str) -> Iterator[Container]:
    for index, value in enumerate(spec.get(field) or ()):
        yield Container(str(value.get("name", "")), f"{prefix}/{field}/{index}", value)


def find(template: Mapping[str, Any], name: str) -> Container | None:
    """Return the first container of that name, init containers first; None when there is none."""
    return next((container for container in containers(template) if container.name == name), None)
