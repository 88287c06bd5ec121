"""The objects in its namespace that a pod, a service account or an Ingress refers to.

The fields of pods are KubeAdmiral's (docs/reference/followers.md): pull secrets, environment, volumes of every kind
that names a Secret, claims, service account. A generic ephemeral volume refers to nothing. Manifests are arbitrary JSON
here, so no shape is assumed. Pure. `leaderplan.py` uses the references.

Decision: docs/decisions/0090-secrets-follow-their-service-account-and-roles-do-not.md
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from federation.api import names
from federation.apimachinery import dotpaths
from federation.apimachinery.errors import InvalidInput
from federation.planning.clusters.deviceclaims import DEVICE_GROUP, KINDS, claim_refs


class Reference(NamedTuple):
    """An object in the namespace of the referring one."""

    group: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Identity(NamedTuple):
    """A leader or follower by kind (of any version), namespace and name."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind.lower()}/{self.name}"


class FollowersError(InvalidInput):
    """The annotation `followers` is malformed."""


CONFIG_MAP, SECRET, CLAIM, SERVICE_ACCOUNT = "ConfigMap", "Secret", "PersistentVolumeClaim", "ServiceAccount"
INGRESS = "Ingress"
NEEDED_BY_PODS = frozenset((CONFIG_MAP, SECRET, CLAIM, SERVICE_ACCOUNT))
"""Core kinds without which a pod does not start."""

_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_VOLUMES: Mapping[str, tuple[str, dotpaths.Path]] = {
    "configMap": (CONFIG_MAP, ("name",)),
    "secret": (SECRET, ("secretName",)),
    "persistentVolumeClaim": (CLAIM, ("claimName",)),
    "azureFile": (SECRET, ("secretName",)),
    "cephfs": (SECRET, ("secretRef", "name")),
    "cinder": (SECRET, ("secretRef", "name")),
    "flexVolume": (SECRET, ("secretRef", "name")),
    "rbd": (SECRET, ("secretRef", "name")),
    "scaleIO": (SECRET, ("secretRef", "name")),
    "iscsi": (SECRET, ("secretRef", "name")),
    "storageos": (SECRET, ("secretRef", "name")),
    "csi": (SECRET, ("nodePublishSecretRef", "name")),
}
_PROJECTED: Mapping[str, tuple[str, dotpaths.Path]] = {
    "configMap": (CONFIG_MAP, ("name",)),
    "secret": (SECRET, ("name",)),
}
_ENV: Mapping[str, tuple[str, dotpaths.Path]] = {
    "configMapKeyRef": (CONFIG_MAP, ("name",)),
    "secretKeyRef": (SECRET, ("name",)),
}
_ENV_FROM: Mapping[str, tuple[str, dotpaths.Path]] = {
    "configMapRef": (CONFIG_MAP, ("name",)),
    "secretRef": (SECRET, ("name",)),
}


def pod_references(pod_spec: Any) -> set[Reference]:
    """Return the objects that a pod with this spec refers to."""
    if not isinstance(pod_spec, Mapping):
        return set()
    found = {Reference("", kind, name) for kind, name in _named(pod_spec) if isinstance(name, str) and name}
    return found | {Reference(DEVICE_GROUP, KINDS[ref[0]], ref[1]) for ref in map(_split, claim_refs(pod_spec))}


def _split(ref: str) -> tuple[str, str]:
    kind, _, name = ref.partition("/")
    return kind, name


def follower_references(follower: Mapping[str, Any]) -> set[Reference]:
    """Return the Secrets that a ServiceAccount names for its pods, or an Ingress for TLS; none for other kinds."""
    found: list[Any] = []
    if follower.get("kind") == SERVICE_ACCOUNT:
        found = [entry.get("name") for field in ("imagePullSecrets", "secrets") for entry in _items(follower, field)]
    elif follower.get("kind") == INGRESS and isinstance(spec := follower.get("spec"), Mapping):
        found = [entry.get("secretName") for entry in _items(spec, "tls")]
    return {Reference("", SECRET, name) for name in found if isinstance(name, str) and name}


def _named(pod_spec: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    # Kubernetes still uses the older field when the newer one is empty.
    yield SERVICE_ACCOUNT, pod_spec.get("serviceAccountName") or pod_spec.get("serviceAccount")
    for secret in _items(pod_spec, "imagePullSecrets"):
        yield SECRET, secret.get("name")
    for field in _CONTAINERS:
        for container in _items(pod_spec, field):
            for variable in _items(container, "env"):
                yield from _sources(variable.get("valueFrom"), _ENV)
            for source in _items(container, "envFrom"):
                yield from _sources(source, _ENV_FROM)
    for volume in _items(pod_spec, "volumes"):
        yield from _sources(volume, _VOLUMES)
        projected = volume.get("projected")
        if isinstance(projected, Mapping):
            for source in _items(projected, "sources"):
                yield from _sources(source, _PROJECTED)


def _sources(value: Any, known: Mapping[str, tuple[str, dotpaths.Path]]) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        return
    for field, held in value.items():
        if field in known and isinstance(held, Mapping):
            kind, path = known[field]
            yield kind, dotpaths.get(held, path)


def _items(value: Mapping[str, Any], field: str) -> Iterable[Mapping[str, Any]]:
    held = value.get(field)
    return [item for item in held if isinstance(item, Mapping)] if isinstance(held, list) else ()


def listed_followers(annotations: Mapping[str, str]) -> set[Reference]:
    """Return the objects in the annotation `followers`; FollowersError unless it is a list of {group?, kind, name}."""
    text = annotations.get(names.FOLLOWERS)
    if not text:
        return set()
    remedy = 'write a list such as [{"kind":"Service","name":"web"}]'
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise FollowersError(f"annotation {names.FOLLOWERS}: not JSON, {error}; {remedy}") from error
    if value is None:
        return set()
    if not isinstance(value, list):
        raise FollowersError(f"annotation {names.FOLLOWERS}: {remedy}")
    return {_listed(entry, index) for index, entry in enumerate(value)}


def _listed(entry: Any, index: int) -> Reference:
    fields = entry if isinstance(entry, Mapping) else {}
    group, kind, name = fields.get("group") or "", fields.get("kind"), fields.get("name")
    if not (isinstance(group, str) and isinstance(kind, str) and isinstance(name, str) and kind and name):
        raise FollowersError(f"annotation {names.FOLLOWERS}: item {index} needs a kind and a name, both text")
    return Reference(group, kind, name)
