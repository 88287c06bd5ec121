"""Continue tokens of paged lists: the next key and the list's revision as opaque text.

The token is URL-safe base64 of JSON, as in Kubernetes. Revision -1 stands for the newest revision; the token inside a
410 answer has it. A token of another collection is refused.
"""

import base64
import binascii
from typing import Any, NamedTuple

import orjson

from federation.apimachinery.errors import BadRequest, Expired

_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


class Continuation(NamedTuple):
    """The revision of the list (-1: the newest) and the first key of the next page."""

    revision: int
    key: str


class ContinuationExpired(Expired):
    """The 410 of a paged list; its Status carries a token for an inconsistent continuation."""

    def __init__(self, continue_token: str) -> None:
        super().__init__(_TOO_OLD)
        self.continue_token = continue_token

    def to_status(self) -> dict[str, Any]:
        return {**super().to_status(), "metadata": {"continue": self.continue_token}}


def encode_token(continuation: Continuation) -> str:
    """Return the value of `metadata.continue`."""
    fields = {"v": "meta.k8s.io/v1", "rv": continuation.revision, "start": continuation.key}
    return base64.urlsafe_b64encode(orjson.dumps(fields)).decode().rstrip("=")


def decode_token(text: str, prefix: str) -> Continuation:
    """Decode a token of the collection stored under `prefix`; BadRequest when it is not one."""
    try:
        fields = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        continuation = Continuation(int(fields["rv"]), str(fields["start"]))
    except (binascii.Error, ValueError, KeyError, TypeError) as error:
        raise BadRequest("continue key is not valid: unknown or broken token") from error
    if not continuation.key.startswith(prefix):
        raise BadRequest("continue key is not valid: it belongs to another list")
    return continuation


def expired(continuation: Continuation) -> ContinuationExpired:
    """Return the error for a token whose revision is compacted."""
    return ContinuationExpired(encode_token(Continuation(-1, continuation.key)))
