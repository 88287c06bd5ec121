"""Records that the control plane keeps as JSON in annotations: one type each, read and written in one place. Pure.

A text that is too large, is no JSON or has another form than the type counts as no record: only the control plane
writes it, and its next write replaces it. What users write in annotations is read beside the rules for it, with
messages for them.

Decision: docs/decisions/0099-a-record-in-an-annotation-is-a-type.md
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec

CHARACTERS_MAX = 256 * 1024
"""The size of all annotations of an object together: what an API server stores is never too large."""

Count = Annotated[int, msgspec.Meta(ge=0)]
Time = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time with a zone; `to_time` makes one."""
T = TypeVar("T")


class AnnotationRecord(Generic[T]):
    """The form of one annotation: any type that msgspec decodes.

    The keys of maps are written in order. Those of a Struct are, too, unless `order` is "deterministic": then they are
    written as they are declared, which a format that others read may demand.
    """

    __slots__ = ("_characters_max", "_decoder", "_encoder", "name")

    def __init__(
        self,
        name: str,
        form: type[T],
        *,
        order: Literal["sorted", "deterministic"] = "sorted",
        characters_max: int = CHARACTERS_MAX,
    ) -> None:
        self.name = name
        self._decoder = msgspec.json.Decoder(form)
        self._encoder = msgspec.json.Encoder(order=order)
        self._characters_max = characters_max

    def of(self, obj: Mapping[str, Any]) -> T | None:
        """Return the record of an object, None without one and for a malformed one."""
        text = ((obj.get("metadata") or {}).get("annotations") or {}).get(self.name)
        return self.read(text) if text else None

    def read(self, text: str | None) -> T | None:
        """Return the record in the annotation's value, None without one and for a malformed one."""
        if not text or len(text) > self._characters_max:
            return None
        try:
            return self._decoder.decode(text)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            return None

    def text(self, record: T) -> str:
        """Return the annotation's value."""
        return self._encoder.encode(record).decode()

    def entry(self, record: T | None) -> dict[str, str | None]:
        """Return the annotation for a merge patch, which removes it if the record is None or empty."""
        return {self.name: self.text(record) if record else None}


def to_time(moment: datetime) -> datetime:
    """Return the time as Kubernetes writes it: in UTC and whole seconds."""
    return moment.astimezone(UTC).replace(microsecond=0)
