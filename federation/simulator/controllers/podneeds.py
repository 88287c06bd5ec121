"""The preconditions of a kubelet for the containers of a pod: ConfigMaps, Secrets, and images. Pure.

A volume without its ConfigMap or Secret keeps the pod in ContainerCreating; a variable without its own keeps its
container in CreateContainerConfigError. The texts are those of a kubelet. There are no images here: one of a registry
whose name ends with `.invalid`, a domain that never exists, cannot be pulled, as in a real cluster.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from federation.apimachinery.resources import CONFIGMAPS, SECRETS, Object, Resource

Fields = Mapping[str, Any]
_NO_SUCH_DOMAIN = ".invalid"
_UPPER = re.compile(r"[A-Z]")


@dataclass(frozen=True, slots=True)
class Need:
    """An object that a pod refers to, and keys of it that must exist."""

    resource: Resource
    name: str
    keys: tuple[str, ...] = ()
    volume: str = ""
    """The volume that has it; "" for variables."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why containers cannot start: the reason of their waiting state, its message, and the Event about it."""

    reason: str
    message: str
    event: str
    event_message: str


def needs_of(spec: Fields) -> Iterator[Need]:
    """Yield what the pod needs, volumes first, without what is optional."""
    for volume in spec.get("volumes") or ():
        name = str(volume.get("name"))
        yield from _sources(name, volume)
        for source in (volume.get("projected") or {}).get("sources") or ():
            yield from _sources(name, source)
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        for source in container.get("envFrom") or ():
            yield from _reference(CONFIGMAPS, source.get("configMapRef"))
            yield from _reference(SECRETS, source.get("secretRef"))
        for variable in container.get("env") or ():
            value = variable.get("valueFrom") or {}
            yield from _reference(CONFIGMAPS, value.get("configMapKeyRef"))
            yield from _reference(SECRETS, value.get("secretKeyRef"))


def _sources(volume: str, source: Fields) -> Iterator[Need]:
    for resource, field, name_field in (
        (CONFIGMAPS, "configMap", "name"),
        (SECRETS, "secret", "secretName" if "secretName" in (source.get("secret") or {}) else "name"),
    ):
        found = source.get(field)
        if found is not None and not found.get("optional") and found.get(name_field):
            keys = tuple(str(item.get("key")) for item in found.get("items") or ())
            yield Need(resource, str(found[name_field]), keys, volume)


def _reference(resource: Resource, reference: Fields | None) -> Iterator[Need]:
    if reference is not None and not reference.get("optional") and reference.get("name"):
        yield Need(resource, str(reference["name"]), (str(reference["key"]),) if reference.get("key") else ())


def missing(need: Need, found: Object | None, namespace: str) -> Problem | None:
    """Return the problem of a pod whose need is this object, None if it is met."""
    kind = need.resource.kind.lower()
    if found is None:
        text = f'{kind} "{need.name}" not found'
    else:
        present = {**(found.get("data") or {}), **(found.get("binaryData") or {})}
        absent = next((key for key in need.keys if key not in present), None)
        if absent is None:
            return None
        text = f"couldn't find key {absent} in {need.resource.kind} {namespace}/{need.name}"
        if need.volume:
            text = f"references non-existent {'config' if kind == 'configmap' else 'secret'} key: {absent}"
    if need.volume:
        event = f'MountVolume.SetUp failed for volume "{need.volume}" : {text}'
        return Problem("ContainerCreating", "", "FailedMount", event)
    return Problem("CreateContainerConfigError", text, "Failed", f"Error: {text}")


def image_problem(spec: Fields, *, is_retry: bool) -> Problem | None:
    """Return the problem of an image that cannot be pulled; a kubelet that tries again backs off."""
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        image = str(container.get("image") or "")
        repository = image.partition("@")[0].rpartition("/")[2].partition(":")[0]
        if _UPPER.search(repository):
            text = f'couldn\'t parse image name "{image}": invalid reference format'
            return Problem("InvalidImageName", text, "InspectFailed", text)
        host = image.partition("/")[0].partition(":")[0] if "/" in image else ""
        if not host.endswith(_NO_SUCH_DOMAIN):
            continue
        if is_retry:
            text = f'Back-off pulling image "{image}"'
            return Problem("ImagePullBackOff", text, "BackOff", text)
        text = f'failed to pull and unpack image "{image}": dial tcp: lookup {host}: no such host'
        return Problem("ErrImagePull", text, "Failed", f'Failed to pull image "{image}": {text}')
    return None


def claims_of(pod: Fields) -> list[str]:
    """Return the names of the claims that a pod's volumes name."""
    volumes = pod["spec"].get("volumes") or ()
    return [str(each["persistentVolumeClaim"].get("claimName")) for each in volumes if "persistentVolumeClaim" in each]


def claim_problem(name: str, claim: Fields | None, storage_class: Fields | None) -> str:
    """Return why a pod cannot be scheduled with this claim, "" if it can.

    A claim whose class waits for a consumer is bound when the pod has a node.
    """
    if claim is None:
        return f'persistentvolumeclaim "{name}" not found'
    if claim["metadata"].get("deletionTimestamp"):
        return f'persistentvolumeclaim "{name}" is being deleted'
    waits_for_pod = (storage_class or {}).get("volumeBindingMode") == "WaitForFirstConsumer"
    is_bound = (claim.get("status") or {}).get("phase") == "Bound"
    return "" if is_bound or waits_for_pod else "pod has unbound immediate PersistentVolumeClaims"
