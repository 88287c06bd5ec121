"""Defaults of Pods and of the pod templates of workloads."""

from collections.abc import Iterable
from typing import Any

Fields = dict[str, Any]

_DEFAULT_MODE = 420
_TOLERATED_S = 300
_TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_VOLUME_SOURCES_WITH_MODE = ("secret", "configMap", "downwardAPI", "projected")


def default_pod(pod: Fields) -> None:
    """Fill a Pod, including requests from limits and the fields of admission plugins.

    Those are service account, priority and tolerations.
    """
    spec = pod.setdefault("spec", {})
    default_pod_spec(spec)
    fill(spec, enableServiceLinks=True, preemptionPolicy="PreemptLowerPriority", priority=0)
    if not spec.get("serviceAccountName"):
        spec["serviceAccountName"] = spec["serviceAccount"] = "default"
    for container in _containers(spec):
        resources = container["resources"]
        if limits := resources.get("limits"):
            requests = resources.setdefault("requests", {})
            for name, amount in limits.items():
                requests.setdefault(name, amount)
    _default_tolerations(spec)


def default_template(template: Fields) -> None:
    """Fill a pod template."""
    template.setdefault("metadata", {})
    default_pod_spec(template.setdefault("spec", {}))


def default_pod_spec(spec: Fields) -> None:
    """Fill a pod's spec, its containers and volumes."""
    fill(
        spec,
        dnsPolicy="ClusterFirst",
        restartPolicy="Always",
        schedulerName="default-scheduler",
        terminationGracePeriodSeconds=30,
    )
    if "securityContext" not in spec:
        spec["securityContext"] = {}
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    uses_host_network = spec.get("hostNetwork", False)
    for container in _containers(spec):
        _default_container(container, uses_host_network=uses_host_network)
    for volume in spec.get("volumes") or ():
        _default_volume(volume)


def fill(fields: Fields, **defaults: Any) -> None:
    """Set each absent or null field; the values must be immutable."""
    for name, value in defaults.items():
        if fields.get(name) is None:
            fields[name] = value


def _containers(spec: Fields) -> Iterable[Fields]:
    for kind in ("initContainers", "containers"):
        yield from spec.get(kind) or ()


def _default_container(container: Fields, *, uses_host_network: bool) -> None:
    if not container.get("imagePullPolicy") and (image := container.get("image")):
        container["imagePullPolicy"] = "Always" if _tag(image) in {"", "latest"} else "IfNotPresent"
    fill(container, terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File")
    if "resources" not in container:
        container["resources"] = {}
    for port in container.get("ports") or ():
        fill(port, protocol="TCP")
        if uses_host_network:
            fill(port, hostPort=port.get("containerPort"))
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe := container.get(name):
            fill(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
            _default_handler(probe)
    for handler in (container.get("lifecycle") or {}).values():
        if isinstance(handler, dict):
            _default_handler(handler)
    for variable in container.get("env") or ():
        if reference := (variable.get("valueFrom") or {}).get("fieldRef"):
            fill(reference, apiVersion="v1")


def _default_handler(handler: Fields) -> None:
    if (get := handler.get("httpGet")) is not None:
        fill(get, path="/", scheme="HTTP")
    if (grpc := handler.get("grpc")) is not None:
        fill(grpc, service="")


def _default_volume(volume: Fields) -> None:
    if len(volume) == 1:
        volume["emptyDir"] = {}
        return
    for source in _VOLUME_SOURCES_WITH_MODE:
        if (found := volume.get(source)) is not None:
            fill(found, defaultMode=_DEFAULT_MODE)
    if (path := volume.get("hostPath")) is not None:
        fill(path, type="")
    for source in (volume.get("projected") or {}).get("sources") or ():
        if (token := source.get("serviceAccountToken")) is not None:
            fill(token, expirationSeconds=3600)
    _default_field_refs(volume)


def _default_field_refs(volume: Fields) -> None:
    sources = [volume.get("downwardAPI") or {}]
    sources += [source.get("downwardAPI") or {} for source in (volume.get("projected") or {}).get("sources") or ()]
    for source in sources:
        for item in source.get("items") or ():
            if reference := item.get("fieldRef"):
                fill(reference, apiVersion="v1")


def _default_tolerations(spec: Fields) -> None:
    tolerations = spec.get("tolerations") or []
    for key in _TOLERATED:
        if not any(
            (not present.get("key") or present["key"] == key) and present.get("effect") in {None, "", "NoExecute"}
            for present in tolerations
        ):
            tolerations = [
                *tolerations,
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATED_S},
            ]
    spec["tolerations"] = tolerations


def _tag(image: str) -> str:
    if "@" in image:
        return "digest"
    return image.rpartition("/")[2].partition(":")[2]
