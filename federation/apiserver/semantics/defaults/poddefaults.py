"""Defaults of Pods and of the pod templates of workloads."""

import re
from collections.abc import Iterable
from typing import Any, Final

Fields = dict[str, Any]

_IMAGE: Final = re.compile(
    r"(?:[a-zA-Z0-9][a-zA-Z0-9.-]*(?::\d+)?/|\[[a-fA-F0-9:]+\](?::\d+)?/)?[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
    r"(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*(?::(?P<tag>\w[\w.-]{0,127}))?(?P<digest>@[A-Za-z][^@]*:[0-9a-fA-F]{32,})?",
    re.ASCII,
)
_DEFAULT_MODE = 420
_TOLERATED_S = 300
_TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_VOLUME_SOURCES_WITH_MODE = ("secret", "configMap", "downwardAPI", "projected")


def default_pod(pod: Fields) -> None:
    """Fill a Pod, including requests from limits, and what admission plugins fill: service account and tolerations."""
    spec = pod.setdefault("spec", {})
    default_pod_spec(spec)
    if spec.get("hostNetwork"):
        _default_host_ports(spec)
    fill(spec, enableServiceLinks=True)
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
    for container in _containers(spec):
        _default_container(container)
    for container in spec.get("ephemeralContainers") or ():
        _default_container(container)
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


def _default_host_ports(spec: Fields) -> None:
    """Fill the host ports of a Pod in its node's network; pod templates get none, as in Kubernetes."""
    for container in _containers(spec):
        for port in container.get("ports") or ():
            fill(port, hostPort=port.get("containerPort"))


def _default_container(container: Fields) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = "Always" if _uses_latest(container.get("image") or "") else "IfNotPresent"
    fill(container, terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File")
    if "resources" not in container:
        container["resources"] = {}
    for port in container.get("ports") or ():
        fill(port, protocol="TCP")
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
    if (target := volume.get("iscsi")) is not None:
        fill(target, iscsiInterface="default")
    if claim := (volume.get("ephemeral") or {}).get("volumeClaimTemplate"):
        fill(claim.setdefault("spec", {}), volumeMode="Filesystem")
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


def _uses_latest(image: str) -> bool:
    """Return True if a valid image reference has no digest, and no tag or the tag `latest`."""
    found = _IMAGE.fullmatch(image)
    return found is not None and found["tag"] in {None, "latest"} and found["digest"] is None
