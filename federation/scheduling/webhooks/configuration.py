"""Compile a SchedulerPluginWebhookConfiguration: URLs, credentials, payload version and declared fields.

The first supported entry of payloadVersions is used. Fields that KubeAdmiral does not have are optional; without them a
configuration has the same meaning as there. An invalid configuration is a PluginError that names field and remedy.
"""

import base64
import binascii
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from federation.apimachinery.durations import parse_duration
from federation.apimachinery.errors import PluginError
from federation.scheduling.framework.profile import POINTS
from federation.scheduling.framework.types import PluginTLS
from federation.scheduling.policyspec import hash_of

V1ALPHA1 = "v1alpha1"
V1BETA1 = "v1beta1"
PAYLOAD_VERSIONS = (V1ALPHA1, V1BETA1)
UNIT_FIELDS = frozenset({"annotations", "current", "labels", "policy", "resourceRequest", "template"})
CLUSTER_FIELDS = frozenset({"annotations", "apiResourceTypes", "conditions", "labels", "resources", "taints"})
TIMEOUT_S = 5.0
_NOT_DECISIVE = frozenset({"failurePolicy", "httpTimeout", "tlsConfig"})
"""Settings whose changes do not reschedule objects."""

_PATH_CHARACTERS = "/%:@!$&'()*+,;=~"


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """A compiled configuration. `urls` maps the plugin's extension points to addresses."""

    name: str
    version: str = V1ALPHA1
    urls: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = TIMEOUT_S
    tls: PluginTLS = field(default_factory=PluginTLS)
    unit_fields: frozenset[str] = frozenset()
    cluster_fields: frozenset[str] = frozenset()
    is_ignorable: bool = False
    problem: str = ""
    """Why the configuration is unusable; the plugin fails with this message."""


def compile_webhook(source: Mapping[str, Any]) -> WebhookOptions:
    """Return the compiled configuration; PluginError when it is unusable."""
    name, spec = str(source["metadata"]["name"]), source.get("spec") or {}
    try:
        return _compile(name, spec)
    except ValueError as problem:
        raise PluginError(f"webhook {name!r}: {problem}") from problem


def unusable(source: Mapping[str, Any], problem: str) -> WebhookOptions:
    """Return the options of a plugin with an unusable configuration; it fails by its failurePolicy."""
    spec = source.get("spec") or {}
    return WebhookOptions(
        str(source["metadata"]["name"]), is_ignorable=spec.get("failurePolicy") == "Ignore", problem=problem
    )


def decisive_hash(source: Mapping[str, Any]) -> str:
    """Return the hash of the settings that decisions depend on: all but deadlines and credentials."""
    spec = source.get("spec") or {}
    return hash_of({key: value for key, value in spec.items() if key not in _NOT_DECISIVE})


def join_url(prefix: str, path: str) -> str:
    """Return the path below the prefix, cleaned and with the prefix's query, as Go's url.JoinPath does."""
    parts = urlsplit(prefix)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"urlPrefix {prefix!r} is not an http or https address")
    joined = posixpath.normpath(f"/{parts.path}/{quote(path, safe=_PATH_CHARACTERS)}")
    slash = "/" if path.endswith("/") and joined.strip("/") else ""
    return urlunsplit((parts.scheme, parts.netloc, f"/{joined.lstrip('/')}{slash}", parts.query, ""))


def _compile(name: str, spec: Mapping[str, Any]) -> WebhookOptions:
    versions = list(spec.get("payloadVersions") or ())
    version = next((version for version in versions if version in PAYLOAD_VERSIONS), None)
    if version is None:
        known = ", ".join(PAYLOAD_VERSIONS)
        raise ValueError(f"none of its payloadVersions {versions} is supported; known: {known}")
    if version == V1ALPHA1:
        for extension in ("fields", "replicasPath"):
            if spec.get(extension):
                raise ValueError(f"{extension} needs payload version {V1BETA1}: put it first in payloadVersions")
    prefix = str(spec.get("urlPrefix") or "")
    join_url(prefix, "")
    paths = {point: str(spec.get(f"{point}Path") or "") for point in POINTS}
    timeout_s = _timeout_s(spec)
    fields, policy = spec.get("fields") or {}, spec.get("failurePolicy") or "Fail"
    if policy not in ("Fail", "Ignore"):
        raise ValueError(f"failurePolicy {policy!r} is neither Fail nor Ignore")
    return WebhookOptions(
        name,
        version,
        {point: join_url(prefix, path) for point, path in paths.items() if path},
        timeout_s,
        _tls(spec.get("tlsConfig") or {}),
        _fields(fields, "unit", UNIT_FIELDS),
        _fields(fields, "cluster", CLUSTER_FIELDS),
        policy == "Ignore",
    )


def _timeout_s(spec: Mapping[str, Any]) -> float:
    try:
        timeout_s = parse_duration(str(spec.get("httpTimeout") or "0"))
    except ValueError as problem:
        raise ValueError(f"httpTimeout: {problem}") from problem
    return timeout_s if timeout_s > 0 else TIMEOUT_S


def _fields(declared: Mapping[str, Any], what: str, known: frozenset[str]) -> frozenset[str]:
    wanted = frozenset(declared.get(what) or ())
    if unknown := wanted - known:
        raise ValueError(f"fields.{what} has {', '.join(sorted(unknown))}; known: {', '.join(sorted(known))}")
    return wanted


def _tls(config: Mapping[str, Any]) -> PluginTLS:
    def data(key: str) -> bytes:
        try:
            return base64.b64decode(str(config.get(key) or ""), validate=True)
        except binascii.Error as problem:
            raise ValueError(f"tlsConfig.{key} is not base64: {problem}") from problem

    tls = PluginTLS(
        data("caData"),
        data("certData"),
        data("keyData"),
        str(config.get("serverName") or ""),
        bool(config.get("insecure")),
    )
    if bool(tls.cert_data) != bool(tls.key_data):
        raise ValueError("tlsConfig has one of certData and keyData without the other")
    if tls.insecure and tls.ca_data:
        raise ValueError(
            "tlsConfig has both insecure and caData: nothing is verified with insecure; remove one of them"
        )
    return tls
