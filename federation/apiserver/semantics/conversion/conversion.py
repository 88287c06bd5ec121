"""Convert custom resources between the stored version and the requested version.

An object is stored in the version that was the storage version when it was written. Bytes of the requested version
that were written after the last schema change are sent unchanged. Others are parsed, defaulted in their stored
version, converted (by a new `apiVersion` or by the CRD's conversion webhook) and pruned to the schema of the requested
version, as in kube-apiserver. A webhook is not trusted: it may change everything except the identity of an object.
`apimachinery/webhooks.py` implements `WebhookCaller`.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from federation.apimachinery.dotpaths import value_at
from federation.apimachinery.entropy import Entropy
from federation.apimachinery.errors import BadRequest, InternalError, WebhookFailed
from federation.apimachinery.objectmeta import validate_labels
from federation.apimachinery.resources import Object
from federation.apimachinery.webhooks import WebhookCaller
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.semantics.schema.defaulting import apply_defaults, prune
from federation.apiserver.semantics.schema.model import Schema
from federation.apiserver.store.interface import Body

_TIMEOUT_S: Final = 30.0
"""Timeout of one webhook call, as in kube-apiserver."""
_REVIEW_BYTES_MAX: Final = 1024 * 1024
"""Larger lists are converted in several reviews, so that no response exceeds the caller's limit."""
_YIELD_EVERY: Final = 100
"""Number of objects that are defaulted before the event loop runs other requests."""
_GROUP: Final = "apiextensions.k8s.io"
_IDENTITY: Final = (("kind", "kind"), ("name", "metadata.name"), ("namespace", "metadata.namespace"))


@dataclass(slots=True)
class CRConverter:
    """The converter of one CRD; replaced when the CRD changes."""

    group: str
    kind: str
    storage_version: str
    schema_sources: Mapping[str, Callable[[], Schema]]
    """A function that compiles the schema, per version, served or not."""
    schema_revision: int = 0
    """Objects written before this revision may lack newer defaults or hold fields that the schema no longer has."""
    webhook: Mapping[str, Any] | None = None
    """`spec.conversion.webhook` of the CRD, None for strategy None, or if this server does not call it."""
    is_elsewhere: bool = False
    """Whether other servers convert objects, and this one stores only what it can store without conversion."""
    _schemas: dict[str, Schema] = field(default_factory=dict)

    def is_current(self, head: bytes, value: bytes) -> bool:
        """Return True if stored bytes can be sent unchanged to a client of the version with this head."""
        if not value.startswith(head):
            return False
        return not self.schema_revision or int(value[len(head) : value.index(b'"', len(head))]) >= self.schema_revision

    async def to_version(self, values: Sequence[bytes], version: str, converter: "WebhookConverter") -> list[bytes]:
        """Return stored bytes as objects of `version`; InternalError when the webhook fails."""
        head = self.head(version)
        found = list(values)
        outdated = [index for index, value in enumerate(found) if not self.is_current(head, value)]
        objects = []
        for count, index in enumerate(outdated, 1):
            obj = encoding.decode(found[index])
            stored = obj["apiVersion"].rpartition("/")[2]
            if stored in self.schema_sources:
                apply_defaults(self.schema(stored), obj)
            objects.append(obj)
            if not count % _YIELD_EVERY:
                await asyncio.sleep(0)
        converted = await self._convert(objects, version, converter)
        for index, obj in zip(outdated, converted, strict=True):
            prune(self.schema(version), obj)
            revision = int(encoding.read_revision_and_uid(found[index]).resource_version)
            found[index] = encoding.to_bytes(encoding.encode(head, obj), revision)
        return found

    async def to_storage(self, obj: Object, converter: "WebhookConverter") -> Body:
        """Return an object of another version in its stored form; InternalError when the webhook fails."""
        # The caller still reads `obj`, and pruning changes its argument.
        (converted,) = await self._convert([orjson.loads(orjson.dumps(obj))], self.storage_version, converter)
        before = orjson.dumps(converted) if self.is_elsewhere else b""
        prune(self.schema(self.storage_version), converted)
        if before and orjson.dumps(converted) != before:
            raise BadRequest(
                f"{self.kind} {obj['metadata'].get('name', '')} has fields that only {obj['apiVersion']} knows, and the"
                f" conversion webhook of {self.kind} runs in members: write it in {self.group}/{self.storage_version},"
                " the version that is stored here"
            )
        return encoding.encode(self.head(self.storage_version), converted)

    def head(self, version: str) -> bytes:
        """Return the head of objects of a version."""
        return encoding.encode_head(f"{self.group}/{version}", self.kind)

    def schema(self, version: str) -> Schema:
        """Return the schema of a version, compiled at the first call."""
        if version not in self._schemas:
            self._schemas[version] = self.schema_sources[version]()
        return self._schemas[version]

    async def _convert(self, objects: list[Object], version: str, converter: "WebhookConverter") -> list[Object]:
        wanted = f"{self.group}/{version}"
        pending = [index for index, obj in enumerate(objects) if obj["apiVersion"] != wanted]
        if self.webhook is None or not pending:
            return [{**obj, "apiVersion": wanted} for obj in objects]
        found = list(objects)
        converted = await converter.convert(self, [objects[index] for index in pending], wanted)
        for index, obj in zip(pending, converted, strict=True):
            found[index] = obj
        return found


class WebhookConverter:
    """Calls conversion webhooks with ConversionReviews."""

    def __init__(self, caller: WebhookCaller | None, entropy: Entropy) -> None:
        self._caller = caller
        self._entropy = entropy

    async def convert(self, conversion: CRConverter, objects: Sequence[Object], wanted: str) -> list[Object]:
        """Return the objects in the apiVersion `wanted`, in the same order; InternalError when the webhook fails."""
        assert conversion.webhook is not None
        found: list[Object] = []
        for part in _split_into_reviews(objects):
            try:
                converted = await self._review(conversion.webhook, part, wanted)
                found += [_validate_converted(*pair, wanted) for pair in zip(part, converted, strict=True)]
            except WebhookFailed as error:
                kind = f"{part[0]['apiVersion']}, Kind={conversion.kind}"
                raise InternalError(f"conversion webhook for {kind} failed: {error}") from error
        return found

    async def _review(self, webhook: Mapping[str, Any], objects: Sequence[Object], wanted: str) -> list[Any]:
        """Send one ConversionReview and return its converted objects; WebhookFailed."""
        if self._caller is None:
            raise WebhookFailed("this API server was started without a way to call webhooks")
        review_version = next((name for name in webhook["conversionReviewVersions"] if name in ("v1", "v1beta1")), None)
        if review_version is None:
            raise WebhookFailed("no supported conversion review versions")
        api_version, uid = f"{_GROUP}/{review_version}", self._entropy.uid()
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


def _split_into_reviews(objects: Sequence[Object]) -> list[list[Object]]:
    """Split the objects into lists of at most about `_REVIEW_BYTES_MAX`."""
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


def _validate_converted(before: Object, after: Any, wanted: str) -> Object:
    """Return the converted object with the metadata that a webhook may not change; WebhookFailed if it is invalid."""
    text = "returned invalid converted object"
    if not isinstance(after, dict) or not isinstance(after.get("metadata"), dict):
        raise WebhookFailed(f"{text}: missing metadata in converted object")
    if after.get("apiVersion") != wanted:
        given = after.get("apiVersion")
        raise WebhookFailed(f"{text}: invalid groupVersion (expected {wanted}, received {given})")
    for name, path in (*_IDENTITY, ("UID", "metadata.uid")):
        old, new = value_at(before, path) or "", value_at(after, path) or ""
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
