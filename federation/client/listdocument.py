"""List documents whose items are parsed when they are read.

A page of 500 pods is some megabytes of text. Parsed at once, it is several times as large and holds the event loop for
tens of milliseconds, and with many members such pages wait for their turn at the same time. Finding where its items
begin and end takes a fifteenth of that, and small parts are parsed twice as fast as a whole page.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

import msgspec

from federation.apimachinery.resources import Object

Text = bytes | memoryview
Parse = Callable[[Text], Any]


class Items(Sequence[Any]):
    """The items of a list, or a part of them. Each is parsed whenever it is read, so the reader owns it; ClusterError.

    A reader that lets each go before the next one finds the memory of both in the processor's cache.
    """

    def __init__(self, texts: Sequence[Text], parse: Parse) -> None:
        self._texts = texts
        self._parse = parse

    def __len__(self) -> int:
        return len(self._texts)

    @overload
    def __getitem__(self, index: int) -> Any: ...

    @overload
    def __getitem__(self, index: slice) -> "Items": ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return Items(self._texts[index], self._parse)
        return self._parse(self._texts[index])

    def __iter__(self) -> Iterator[Any]:
        return map(self._parse, self._texts)


class _Document(msgspec.Struct):
    metadata: dict[str, Any] | None = None
    items: list[msgspec.Raw] | None = None


_decoder = msgspec.json.Decoder(_Document)


def split_list(text: bytes, parse: Parse) -> Object | None:
    """Return the list document of the text, None for text that must be looked at more closely.

    That is malformed text, and text that is nested too deeply or is no list. The text stays in memory with the items.
    """
    try:
        found = _decoder.decode(text)
    except (ValueError, RecursionError):
        return None
    return {"metadata": found.metadata, "items": Items([memoryview(item) for item in found.items or ()], parse)}
