"""Convert Events between v1, the stored version, and events.k8s.io/v1.

The two versions differ only in the names of their fields, so one table describes both directions. `EventConverter`
has the methods of `CRConverter` (`conversion.py`). `strategies/events.py` validates writes through either group.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from federation.apimachinery.resources import EVENTS, Object
from federation.apiserver.semantics.conversion.conversion import WebhookConverter
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.store.interface import Body

GROUP: Final = "events.k8s.io"
_API_VERSION: Final = f"{GROUP}/v1"
_NEW_NAMES: Final[Mapping[str, str]] = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_OLD_NAMES: Final[Mapping[str, str]] = {new: old for old, new in _NEW_NAMES.items()}
_HEAD: Final = encoding.encode_head(_API_VERSION, EVENTS.kind)
_STORED_HEAD: Final = encoding.encode_head(EVENTS.api_version, EVENTS.kind)


def to_core(event: Object) -> Object:
    """Return an events.k8s.io/v1 Event as v1; the result shares its values."""
    return {_OLD_NAMES.get(name, name): value for name, value in event.items()} | {"apiVersion": EVENTS.api_version}


def from_core(event: Object) -> Object:
    """Return a v1 Event as events.k8s.io/v1; the result shares its values."""
    return {_NEW_NAMES.get(name, name): value for name, value in event.items()} | {"apiVersion": _API_VERSION}


class EventConverter:
    """Converts stored Events to events.k8s.io/v1 and back; it has no state."""

    storage_version: Final = ""

    def is_current(self, head: bytes, value: bytes) -> bool:
        """Return True if stored bytes are in events.k8s.io/v1, which does not happen."""
        return value.startswith(head)

    async def to_version(self, values: Sequence[bytes], version: str, converter: WebhookConverter) -> list[bytes]:
        """Return stored bytes as events.k8s.io/v1."""
        del version, converter
        return [
            encoding.to_bytes(encoding.encode(_HEAD, from_core(event)), int(event["metadata"]["resourceVersion"]))
            for event in map(encoding.decode, values)
        ]

    async def to_storage(self, obj: Object, converter: WebhookConverter) -> Body:
        """Return an events.k8s.io/v1 Event in its stored form."""
        del converter
        return encoding.encode(_STORED_HEAD, to_core(obj))
