"""Strategies of ConfigMaps, Secrets and Leases."""

import base64
import json
import re
from collections.abc import Mapping
from typing import ClassVar

from federation.apimachinery.base64text import decode_base64
from federation.apimachinery.clock import to_rfc3339_micro
from federation.apimachinery.fielderrors import Causes, forbidden, immutable, invalid, required, too_long
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.strategies.base import Strategy
from federation.apiserver.semantics.strategies.events import normalize_times

_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")
_KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or"
    " 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_ACCOUNT = "kubernetes.io/service-account.name"
_JSON_KEYS = {"kubernetes.io/dockerconfigjson": ".dockerconfigjson", "kubernetes.io/dockercfg": ".dockercfg"}
DATA_BYTES_MAX = 1024 * 1024


class ImmutableDataStrategy(Strategy):
    """v1 ConfigMap; also the base of Secret: valid keys, maximum size, and `immutable: true`."""

    _PARTS: ClassVar[tuple[str, ...]] = ("data", "binaryData")

    def validate(self, obj: Object) -> Causes:
        causes: Causes = []
        size = 0
        for part in self._PARTS:
            for key, value in (obj.get(part) or {}).items():
                if not _KEY.fullmatch(key) or key in {".", ".."} or key.startswith(".."):
                    causes.append(invalid(f"{part}[{key}]", key, _KEY_TEXT))
                size += len(value)
        if size > DATA_BYTES_MAX:
            causes.append(too_long("", DATA_BYTES_MAX))
        return causes

    def validate_update(self, new: Object, old: Object) -> Causes:
        causes = self.validate(new)
        if old.get("immutable"):
            if not new.get("immutable"):
                causes.append(forbidden("immutable", "field is immutable when `immutable` is set"))
            causes += [
                forbidden(part, "field is immutable when `immutable` is set")
                for part in self._PARTS
                if new.get(part) != old.get(part)
            ]
        return causes


class SecretStrategy(ImmutableDataStrategy):
    """v1 Secret: stringData is encoded into data."""

    _PARTS = ("data",)
    _REQUIRED_KEYS: ClassVar[dict[str, tuple[str, ...]]] = {
        "kubernetes.io/tls": ("tls.crt", "tls.key"),
        "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
        "kubernetes.io/dockercfg": (".dockercfg",),
        "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    }

    def default(self, obj: Object) -> None:
        if not obj.get("type"):
            obj["type"] = "Opaque"
        texts = obj.pop("stringData", None)
        if texts:
            data = obj["data"] = dict(obj.get("data") or {})
            for key, text in texts.items():
                data[key] = base64.b64encode(text.encode()).decode()

    def validate(self, obj: Object) -> Causes:
        causes = super().validate(obj)
        data = obj.get("data") or {}
        for key, value in data.items():
            try:
                decode_base64(value)
            except ValueError:
                causes.append(invalid(f"data[{key}]", "<redacted>", "illegal base64 data"))
        causes += _validate_contents(obj, data)
        causes += [
            required(f"data[{key}]") for key in self._REQUIRED_KEYS.get(obj.get("type", ""), ()) if key not in data
        ]
        return causes

    def validate_update(self, new: Object, old: Object) -> Causes:
        return super().validate_update(new, old) + immutable("type", new.get("type"), old.get("type"))


def _validate_contents(obj: Object, data: Mapping[str, str]) -> Causes:
    """Validate what a Secret's type says about its content."""
    kind = obj.get("type", "")
    if kind == "kubernetes.io/service-account-token" and not (obj["metadata"].get("annotations") or {}).get(_ACCOUNT):
        return [required(f"metadata.annotations[{_ACCOUNT}]")]
    if kind == "kubernetes.io/basic-auth" and not {"username", "password"} & data.keys():
        return [required("data[username]"), required("data[password]")]
    key = _JSON_KEYS.get(kind)
    if key is None or key not in data:
        return []
    try:
        json.loads(base64.b64decode(data[key]))
    except ValueError as error:
        return [invalid(f"data[{key}]", "<secret contents redacted>", f"invalid JSON: {type(error).__name__}")]
    return []


class LeaseStrategy(Strategy):
    """coordination.k8s.io/v1 Lease: a lock, so updates need a resourceVersion."""

    names_again = False
    knows_finalizers = False
    allow_create_on_update = True
    allow_unconditional_update = False

    def default(self, obj: Object) -> None:
        normalize_times(obj.get("spec"), ("acquireTime", "renewTime"), to_rfc3339_micro)

    def validate(self, obj: Object) -> Causes:
        spec = obj.get("spec") or {}
        causes: Causes = []
        for field, minimum in (("leaseDurationSeconds", 1), ("leaseTransitions", 0)):
            value = spec.get(field)
            if isinstance(value, int) and value < minimum:
                text = "must be greater than 0" if minimum else "must be greater than or equal to 0"
                causes.append(invalid(f"spec.{field}", value, text))
        return causes
