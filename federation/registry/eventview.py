"""Events under their second name: what is stored as v1 Event is served as events.k8s.io/v1 Event too, field by field.

The two differ in the names of their fields only, so the way there and back is one table. Objects are always stored as
v1; revisions, names and managed fields are the same in both. `EventView` stands where a custom resource has its
`Conversion` (`conversion.py`); what may be written through which name is in `strategies/events.py`.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from federation.api.resources import EVENTS, Object
from federation.registry import encoding
from federation.registry.conversion import Converter
from federation.store.interface import Body

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
_HEAD: Final = encoding.head(_API_VERSION, EVENTS.kind)
_STORED_HEAD: Final = encoding.head(EVENTS.api_version, EVENTS.kind)


def to_core(event: Object) -> Object:
    """Return an events.k8s.io/v1 Event as v1; the values are shared."""
    return {_OLD_NAMES.get(name, name): value for name, value in event.items()} | {"apiVersion": EVENTS.api_version}


def from_core(event: Object) -> Object:
    """Return a v1 Event as events.k8s.io/v1; the values are shared."""
    return {_NEW_NAMES.get(name, name): value for name, value in event.items()} | {"apiVersion": _API_VERSION}


class EventView:
    """How stored Events become objects of the second group, and back; without state."""

    storage_version: Final = ""

    def is_current(self, head: bytes, value: bytes) -> bool:
        """Tell whether stored bytes are of this form, which none are."""
        return value.startswith(head)

    async def to_version(self, values: Sequence[bytes], version: str, converter: Converter) -> list[bytes]:
        """Return stored bytes as events.k8s.io/v1."""
        del version, converter
        return [
            encoding.join(encoding.encode(_HEAD, from_core(event)), int(event["metadata"]["resourceVersion"]))
            for event in map(encoding.decode, values)
        ]

    async def to_storage(self, obj: Object, converter: Converter) -> Body:
        """Return an events.k8s.io/v1 Event as it is stored."""
        del converter
        return encoding.encode(_STORED_HEAD, to_core(obj))
