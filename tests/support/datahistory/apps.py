"""The applications of a history: workloads with and without volumes, copies of configuration, a kind in two versions."""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

from federation.api import names
from federation.apimachinery.resources import (
    CONFIGMAPS,
    CRDS,
    DEPLOYMENTS,
    JOBS,
    PERSISTENT_VOLUME_CLAIMS,
    SECRETS,
    STATEFUL_SETS,
    Object,
    Resource,
)
from federation.simulator.controllers.names import SIMULATOR_RUN_FOR
from tests.support.manifests import a_deployment, a_policy

WIDGETS = Resource("example.com", "v1", "Widget", "widgets")
OLD_WIDGETS = WIDGETS._replace(version="v1beta1")
DEFINITION = "widgets.example.com"
DISK = "disk-data"
"""The claim of the Deployment `disk`; it follows its workload."""


class App(NamedTuple):
    """An application: its kind, how it is built, and what of it is scaled."""

    name: str
    resource: Resource
    build: Callable[[int], Object]
    has_replicas: bool = True
    has_volumes: bool = False


def _labels(name: str) -> dict[str, str]:
    return {"app": name, names.PROPAGATION_POLICY_LABEL: name}


def _template(name: str, **spec: Any) -> Object:
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": "v:1"}], **spec}}


def _web(replicas: int) -> Object:
    return a_deployment("web", replicas, **{names.PROPAGATION_POLICY_LABEL: "web"})


def _disk(replicas: int) -> Object:
    deployment = a_deployment("disk", replicas, **{names.PROPAGATION_POLICY_LABEL: "disk"})
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": DISK}}]
    deployment["spec"]["template"]["spec"]["volumes"] = volumes
    return deployment


def the_claim_of_disk() -> Object:
    """Return the PersistentVolumeClaim that `disk` uses."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    header = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    return {**header, "metadata": {"name": DISK, "namespace": "default", "labels": {"app": "disk"}}, "spec": spec}


def _db(replicas: int) -> Object:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    spec = {
        "replicas": replicas,
        "serviceName": "db",
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": {"app": "db"}},
        "template": _template("db"),
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
    }
    metadata = {"name": "db", "namespace": "default", "labels": _labels("db")}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec}


def _crunch(replicas: int) -> Object:
    template = _template("crunch", restartPolicy="Never")
    template["metadata"]["annotations"] = {SIMULATOR_RUN_FOR: "600s"}
    metadata = {"name": "crunch", "namespace": "default", "labels": _labels("crunch")}
    spec = {"parallelism": replicas, "completions": replicas, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _plain(kind: str, name: str, field: str) -> Callable[[int], Object]:
    def build(_: int) -> Object:
        metadata = {"name": name, "namespace": "default", "labels": _labels(name)}
        return {"apiVersion": "v1", "kind": kind, "metadata": metadata, field: {"first": "b25l"}}

    return build


def _widget(size: int) -> Object:
    metadata = {"name": "widget", "namespace": "default", "labels": _labels("widget")}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": {"size": size}}


APPS = {
    app.name: app
    for app in (
        App("db", STATEFUL_SETS, _db, has_volumes=True),
        App("disk", DEPLOYMENTS, _disk, has_volumes=True),
        App("web", DEPLOYMENTS, _web),
        App("crunch", JOBS, _crunch, has_replicas=False),
        App("conf", CONFIGMAPS, _plain("ConfigMap", "conf", "data"), has_replicas=False),
        App("pass", SECRETS, _plain("Secret", "pass", "data"), has_replicas=False),
        App("widget", WIDGETS, _widget, has_replicas=False),
    )
}
COUNTED = ("db", "disk", "web", "crunch")
"""Applications that run pods; the others are copied."""


def place_of(app: App) -> str:
    """Return the key of the application's object in a store."""
    return key_of(app.resource, app.name)


def key_of(resource: Resource, name: str) -> str:
    """Return the key of an object of namespace `default` in a store."""
    return f"/{resource.group or 'core'}/{resource.plural}/default/{name}"


def policy_of(app: App, clusters: dict[str, int], **spec: Any) -> Object:
    """Return the policy of an application, which has its name."""
    resource = OLD_WIDGETS if app.resource == WIDGETS else app.resource
    selectors = [{"apiVersion": resource.api_version, "kind": resource.kind}]
    mode = "Divide" if app.name in COUNTED else "Duplicate"
    return a_policy(clusters, name=app.name, **{"resourceSelectors": selectors, "schedulingMode": mode, **spec})


def definition(*, has_new: bool, serves_old: bool = True) -> Object:
    """Return the CustomResourceDefinition of widgets: the new version stores a field that the old one lacks."""
    versions = [_version("v1beta1", ("size",), is_stored=not has_new, is_served=serves_old)]
    if has_new:
        versions.append(_version("v1", ("size", "colour"), is_stored=True, is_served=True))
    kind = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    return {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": DEFINITION},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": kind, "versions": versions},
    }


def _version(name: str, fields: tuple[str, ...], *, is_stored: bool, is_served: bool) -> Object:
    spec = {"type": "object", "properties": {each: {"type": "integer"} for each in fields}}
    schema = {"type": "object", "properties": {"spec": spec}}
    return {"name": name, "served": is_served, "storage": is_stored, "schema": {"openAPIV3Schema": schema}}


def definition_policy() -> Object:
    """Return the policy that copies the definition into all clusters."""
    kinds = [{"apiVersion": CRDS.api_version, "kind": CRDS.kind, "name": DEFINITION}]
    rules = {"rescheduleWhen": {"clusterJoined": True}}
    policy = a_policy(
        {"*": 1}, name="kinds", resourceSelectors=kinds, schedulingMode="Duplicate", reschedulePolicy=rules
    )
    del policy["metadata"]["namespace"]
    return {**policy, "kind": "ClusterPropagationPolicy"}


def merged(value: Any, patch: Any) -> Any:
    """Return what a JSON merge patch makes of a value."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(value) if isinstance(value, dict) else {}
    for key, change in patch.items():
        if change is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), change)
    return result


def missing(wanted: Any, held: Any, path: str = "") -> list[str]:
    """Return the paths of fields of `wanted` that `held` lacks or has with another value."""
    if isinstance(wanted, dict):
        if not isinstance(held, dict):
            return [path]
        return [line for key, value in wanted.items() for line in missing(value, held.get(key), f"{path}.{key}")]
    if isinstance(wanted, list):
        if not isinstance(held, list) or len(held) != len(wanted):
            return [path]
        return [
            line
            for number, (left, right) in enumerate(zip(wanted, held, strict=True))
            for line in missing(left, right, f"{path}[{number}]")
        ]
    return [] if wanted == held else [path]


PLURALS = {app.resource.plural for app in APPS.values()} | {PERSISTENT_VOLUME_CLAIMS.plural}
