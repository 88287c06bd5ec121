"""Remove from objects what must not leave the federation in a support bundle. Pure.

Two measures, because one may fail: of each object only listed fields are kept, none of which is meant for secrets; and
every known secret is removed from every text, plain or in base64, because messages of API servers quote values.
"""

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from federation.api import names

MARK = "***"
"""Stands for a removed value; shorter than any value that is removed, so no mark can hold one."""
LENGTH_MIN = 6
"""Shorter values, such as `true` or `5432`, occur everywhere and are not searched for."""
_METADATA = frozenset(
    {
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "generation",
        "resourceVersion",
        "labels",
        "finalizers",
    }
)
_SPECS: Mapping[str, frozenset[str] | None] = {
    # None: the whole spec. Templates and values of overrides are users' content.
    "FederatedCluster": None,
    "PropagationPolicy": None,
    "ClusterPropagationPolicy": None,
    "FederatedTypeConfig": None,
    "SchedulingProfile": None,
    "Leftover": None,
    "PlacementHold": None,
    "FederatedRollout": None,
    "FederatedObject": frozenset({"placements", "follows"}),
    "ClusterFederatedObject": frozenset({"placements", "follows"}),
}
_EVENT = ("involvedObject", "reason", "message", "type", "count", "firstTimestamp", "lastTimestamp", "eventTime")


def reduced(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an object that may leave the federation."""
    kind = str(obj.get("kind", ""))
    metadata = obj.get("metadata") or {}
    kept: dict[str, Any] = {
        "kind": kind,
        "metadata": {key: value for key, value in metadata.items() if key in _METADATA},
    }
    annotations = {
        key: value
        for key, value in (metadata.get("annotations") or {}).items()
        if names.DOMAIN in key and key != names.TEMPLATE_GENERATOR_MERGE_PATCH
    }
    if annotations:
        kept["metadata"]["annotations"] = annotations
    if kind == "Event":
        return kept | {key: obj[key] for key in _EVENT if key in obj}
    if kind in _SPECS:
        fields, spec = _SPECS[kind], obj.get("spec") or {}
        kept["spec"] = {key: value for key, value in spec.items() if fields is None or key in fields}
        if "status" in obj:
            kept["status"] = obj["status"]
    return kept


class Redactor:
    """Removes known secrets from texts and JSON values."""

    def __init__(self, secrets: Iterable[bytes]) -> None:
        found: set[str] = set()
        for secret in secrets:
            text = secret.decode(errors="replace")
            # A message may quote one line of a key.
            forms = [text, text.strip(), *text.splitlines(), base64.b64encode(secret).decode()]
            forms += [base64.b64encode(secret).decode().rstrip("="), orjson.dumps(text).decode()[1:-1]]
            found |= {form for form in forms if len(form) >= LENGTH_MIN}
        longest_first = sorted(found, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if found else None

    def text(self, text: str) -> str:
        """Return the text without any secret."""
        if self._pattern is None:
            return text
        while True:
            # A removal may join its neighbours to another secret. Each one makes the text shorter, so this ends.
            text, count = self._pattern.subn(MARK, text)
            if not count:
                return text

    def value(self, value: Any) -> Any:
        """Return the JSON value without any secret, in keys too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.value(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(each) for each in value]
        return value
