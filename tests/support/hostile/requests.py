"""Shared parts of the recipes of hostile requests: their target objects and the assembly of a request.

Read `refused.py` and `harmless.py` for the recipes, `nonsense.py` for the values in them.
"""

import base64
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from federation.apimachinery.resources import Object
from tests.support.hostile.nonsense import to_json
from tests.support.hostile.world import HostileRequest

JSON = "application/json"
YAML = "application/yaml"
_SERVER_SET = ("managedFields", "resourceVersion", "uid", "creationTimestamp", "generation")


@dataclass(frozen=True)
class Victim:
    """One kept object and the path of its collection."""

    collection: str
    """`/apis/apps/v1/namespaces/kept/deployments`."""
    obj: Object
    subresources: frozenset[str]
    is_custom: bool = False

    @property
    def path(self) -> str:
        return f"{self.collection}/{self.obj['metadata']['name']}"

    def config(self) -> Object:
        """Return the object as a user would write it."""
        metadata = {key: value for key, value in self.obj["metadata"].items() if key not in _SERVER_SET}
        return {**self.obj, "metadata": metadata}


class Sender:
    """Builds requests against the victims from one random source."""

    def __init__(self, seed: int, victims: list[Victim]) -> None:
        self._rng = random.Random(seed)
        self._victims = victims
        self._by_subresource = {
            name: [victim for victim in victims if name in victim.subresources]
            for name in ("scale", "status", "eviction", "binding", "token")
        }

    def _victim(self, subresource: str = "") -> Victim:
        return self._rng.choice(self._by_subresource[subresource] if subresource else self._victims)

    def _write(
        self, method: str, target: str, body: Any, about: str, type_: str = JSON, query: Mapping[str, str] | None = None
    ) -> HostileRequest:
        content = body if isinstance(body, bytes) else to_json(body)
        headers = (("content-type", type_), ("accept", JSON))
        return HostileRequest(method, with_query(target, query), headers, content, about=about, must_fail=True)


def token(fields: Any) -> str:
    return base64.urlsafe_b64encode(to_json(fields)).decode().rstrip("=")


def with_query(target: str, query: Mapping[str, str] | None) -> str:
    return f"{target}?{urlencode(query, errors='replace')}" if query else target
