"""From stored bytes of a custom resource to an object of the version that a request speaks, and back to storage.

An object is stored in the version that was the storage version when it was written. Bytes that are of the wanted
version, and were written under the definition as it is now, are sent as they are. Others are parsed, filled with the
defaults of their stored version, converted (a new `apiVersion`, or what the definition's webhook makes of them) and
pruned to the schema of the wanted version, as kube-apiserver does. What a webhook answers is checked as if it were
hostile: it may change everything but an object's identity. `client/webhook.py` is the real `WebhookCaller`.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from federation.api.resources import Object
from federation.base.errors import InternalError
from federation.registry import encoding
from federation.registry.admission.webhooks import WebhookCaller, WebhookFailed
from federation.registry.entropy import Entropy
from federation.registry.schema.defaulting import apply_defaults, prune
from federation.registry.schema.model import Schema
from federation.registry.validation.metadata import validate_labels
from federation.store.interface import Body

_TIMEOUT_S: Final = 30.0
"""How long a webhook may take, as in kube-apiserver."""
_REVIEW_BYTES_MAX: Final = 1024 * 1024
"""Larger collections are converted in several reviews, so that no answer exceeds what a caller reads."""
_YIELD_EVERY: Final = 100
"""Objects that are brought up to date before other requests get their turn."""
_GROUP: Final = "apiextensions.k8s.io"
_IDENTITY: Final = (("kind", ("kind",)), ("name", ("metadata", "name")), ("namespace", ("metadata", "namespace")))


@dataclass(slots=True)
class Conversion:
    """How the objects of one definition get from version to version; made anew with every change of the definition."""

    group: str
    kind: str
    storage_version: str
    sources: Mapping[str, Callable[[], Schema]]
    """How to get the schema of every version, served or not."""
    current_since: int = 0
    """Objects that were written before this revision may lack defaults of a newer schema, or hold fields it dropped."""
    webhook: Mapping[str, Any] | None = None
    """`spec.conversion.webhook` of the definition, None for strategy None."""
    _schemas: dict[str, Schema] = field(default_factory=dict)

    def is_current(self, head: bytes, value: bytes) -> bool:
        """Tell whether stored bytes are what a reader of the version with this head should see."""
        if not value.startswith(head):
            return False
        return not self.current_since or int(value[len(head) : value.index(b'"', len(head))]) >= self.current_since

    async def to_version(self, values: Sequence[bytes], version: str, converter: "Converter") -> list[bytes]:
        """Return stored bytes as objects of `version`; InternalError when the webhook fails."""
        head = self.head(version)
        found = list(values)
        places = [place for place, value in enumerate(found) if not self.is_current(head, value)]
        objects = []
        for count, place in enumerate(places, 1):
            obj = encoding.decode(found[place])
            stored = obj["apiVersion"].rpartition("/")[2]
            if stored in self.sources:
                apply_defaults(self.schema(stored), obj)
            objects.append(obj)
            if not count % _YIELD_EVERY:
                await asyncio.sleep(0)
        converted = await self._convert(objects, version, converter)
        for place, obj in zip(places, converted, strict=True):
            prune(self.schema(version), obj)
            revision = int(encoding.position(found[place]).resource_version)
            found[place] = encoding.join(encoding.encode(head, obj), revision)
        return found

    async def to_storage(self, obj: Object, converter: "Converter") -> Body:
        """Return an object of another version as it is stored; InternalError when the webhook fails."""
        # What is stored must not share parts with what the caller still looks at.
        (converted,) = await self._convert([orjson.loads(orjson.dumps(obj))], self.storage_version, converter)
        prune(self.schema(self.storage_version), converted)
        return encoding.encode(self.head(self.storage_version), converted)

    def head(self, version: str) -> bytes:
        """Return the bytes before the revision of an object of a version."""
        return encoding.head(f"{self.group}/{version}", self.kind)

    def schema(self, version: str) -> Schema:
        """Return the compiled schema of a version, made at first use."""
        if version not in self._schemas:
            self._schemas[version] = self.sources[version]()
        return self._schemas[version]

    async def _convert(self, objects: list[Object], version: str, converter: "Converter") -> list[Object]:
        wanted = f"{self.group}/{version}"
        others = [place for place, obj in enumerate(objects) if obj["apiVersion"] != wanted]
        if self.webhook is None or not others:
            return [{**obj, "apiVersion": wanted} for obj in objects]
        found = list(objects)
        answers = await converter.convert(self, [objects[place] for place in others], wanted)
        for place, answer in zip(others, answers, strict=True):
            found[place] = answer
        return found


class Converter:
    """Asks conversion webhooks, for one registry."""

    def __init__(self, caller: WebhookCaller | None, entropy: Entropy) -> None:
        self._caller = caller
        self._entropy = entropy

    async def convert(self, conversion: Conversion, objects: Sequence[Object], wanted: str) -> list[Object]:
        """Return the objects as the webhook converts them to the apiVersion `wanted`, in their order; InternalError."""
        assert conversion.webhook is not None
        found: list[Object] = []
        for part in _parts(objects):
            try:
                answers = await self._ask(conversion.webhook, part, wanted)
                found += [_checked(before, after, wanted) for before, after in zip(part, answers, strict=True)]
            except WebhookFailed as error:
                kind = f"{part[0]['apiVersion']}, Kind={conversion.kind}"
                raise InternalError(f"conversion webhook for {kind} failed: {error}") from error
        return found

    async def _ask(self, webhook: Mapping[str, Any], objects: Sequence[Object], wanted: str) -> list[Any]:
        if self._caller is None:
            raise WebhookFailed("this API server was started without a way to call webhooks")
        spoken = next((name for name in webhook["conversionReviewVersions"] if name in ("v1", "v1beta1")), None)
        if spoken is None:
            raise WebhookFailed("no supported conversion review versions")
        api_version, uid = f"{_GROUP}/{spoken}", self._entropy.uid()
        request = {"uid": uid, "desiredAPIVersion": wanted, "objects": list(objects)}
        review = {"apiVersion": api_version, "kind": "ConversionReview", "request": request}
        answer = await self._caller.call(webhook["clientConfig"], review, timeout_s=_TIMEOUT_S)
        response = answer.get("response") if isinstance(answer, dict) else None
        if not isinstance(answer, dict) or not isinstance(response, dict):
            raise WebhookFailed("no response provided")
        if (answer.get("kind"), answer.get("apiVersion")) != ("ConversionReview", api_version):
            given = f"{answer.get('apiVersion')}, Kind={answer.get('kind')}"
            raise WebhookFailed(f"expected webhook response of {api_version}, Kind=ConversionReview, got {given}")
        if response.get("uid") != uid:
            raise WebhookFailed(f'expected response.uid="{uid}", got "{response.get("uid")}"')
        result = response.get("result")
        status = result.get("status") if isinstance(result, dict) else None
        if not isinstance(result, dict) or status != "Success":
            text = result.get("message") if isinstance(result, dict) else ""
            raise WebhookFailed(str(text or f"response.result.status was '{status or ''}', not 'Success'"))
        converted = response.get("convertedObjects")
        if not isinstance(converted, list) or len(converted) != len(objects):
            count = len(converted) if isinstance(converted, list) else 0
            raise WebhookFailed(f"returned {count} objects, expected {len(objects)}")
        return converted


def _parts(objects: Sequence[Object]) -> list[list[Object]]:
    """Return the objects in portions of about the size that one review may have."""
    parts: list[list[Object]] = [[]]
    size = 0
    for obj in objects:
        length = len(orjson.dumps(obj))
        if parts[-1] and size + length > _REVIEW_BYTES_MAX:
            parts.append([])
            size = 0
        parts[-1].append(obj)
        size += length
    return parts


def _checked(before: Object, after: Any, wanted: str) -> Object:
    """Return a webhook's object with the metadata that it may not change; WebhookFailed for what is no conversion."""
    text = "returned invalid converted object"
    if not isinstance(after, dict) or not isinstance(after.get("metadata"), dict):
        raise WebhookFailed(f"{text}: missing metadata in converted object")
    if after.get("apiVersion") != wanted:
        given = after.get("apiVersion")
        raise WebhookFailed(f"{text}: invalid groupVersion (expected {wanted}, received {given})")
    for name, path in (*_IDENTITY, ("UID", ("metadata", "uid"))):
        old, new = _dig(before, path), _dig(after, path)
        if old != new:
            raise WebhookFailed(f"{text}: must have the same {name}: {old} != {new}")
    metadata = dict(before["metadata"])
    for name in ("labels", "annotations"):
        given = after["metadata"].get(name)
        metadata.pop(name, None)
        if given is None:
            continue
        if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
            raise WebhookFailed(f"{text}: metadata.{name} must be texts by name")
        if name == "labels" and (wrong := validate_labels(given, "metadata.labels")):
            raise WebhookFailed(f"{text}: {wrong[0]['field']}: {wrong[0]['message']}")
        metadata[name] = given
    return {**after, "metadata": metadata}


def _dig(obj: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        obj = obj.get(step)
    return obj or ""
