"""Validate the responses of plugins, which are untrusted.

`read_object` is for every payload version: a valid response is a JSON object with status 200. The rest is `v1beta1`:
the envelope must match the request, with exactly one entry per offered cluster. Texts are truncated and cleaned before
they are printed. An invalid response is a PluginError that names the field and the expected value.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from federation.apimachinery.amounts import first_of
from federation.apimachinery.errors import PluginError
from federation.scheduling.framework.types import PluginResponse

API_VERSION = "federation.kubeadmiral.io/v1beta1"
REQUEST_KIND = "PluginRequest"
RESPONSE_KIND = "PluginResponse"
QUOTED_MAX = 1000
"""Characters of an unexpected body that are quoted in reasons."""
REASONS_MAX = 5
"""Reasons per cluster; more are dropped."""
REASON_CHARS_MAX = 256
_NAMED_MAX = 5
"""Clusters that an error names."""

Entry = Mapping[str, Any]
"""A response's entry for one cluster."""


def read_object(response: PluginResponse) -> dict[str, Any]:
    """Return the response's JSON object; PluginError for any other response."""
    if response.status == 0:
        raise PluginError(f"request failed: {response.error[:QUOTED_MAX]}")
    if response.status != 200:
        quoted = printable(response.body[: 4 * QUOTED_MAX].decode(errors="replace")[:QUOTED_MAX])
        raise PluginError(f"unexpected status code: {response.status}, body: {quoted}")
    try:
        answer = orjson.loads(response.body)
    except orjson.JSONDecodeError as problem:
        raise PluginError(f"the response is not JSON: {problem}") from problem
    if not isinstance(answer, dict):
        raise PluginError("the response is not a JSON object")
    return answer


def read_entries(answer: Mapping[str, Any], uid: str, offered: Sequence[str]) -> dict[str, Entry]:
    """Return the entries of a `v1beta1` response by cluster, in their order."""
    for field, expected in (("apiVersion", API_VERSION), ("kind", RESPONSE_KIND), ("uid", uid)):
        if answer.get(field) != expected:
            raise PluginError(f"{field} is {_quote(answer.get(field))}, not {expected!r}")
    if answer.get("error"):
        raise PluginError(clean(quote(answer["error"])))
    listed = answer.get("clusters")
    if not isinstance(listed, list):
        raise PluginError("clusters is not a list")
    entries: dict[str, Entry] = {}
    known = frozenset(offered)
    for index, entry in enumerate(listed):
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str):
            raise PluginError(f"clusters[{index}] is not an object with a name")
        if name not in known:
            raise PluginError(f"clusters[{index}] is {_quote(name)}, which was not offered")
        if name in entries:
            raise PluginError(f"clusters[{index}] is {_quote(name)} for the second time")
        entries[name] = entry
    if len(entries) < len(known):
        raise PluginError(f"clusters says nothing about {_some(name for name in offered if name not in entries)}")
    return entries


def read_bool(entry: Entry, field: str) -> bool:
    """Return a boolean of an entry."""
    value = entry.get(field)
    if not isinstance(value, bool):
        raise PluginError(f"{field} of {entry['name']} is {_quote(value)}, not true or false")
    return value


def read_integer(entry: Mapping[str, Any], field: str, most: int, *, of: str = "") -> int:
    """Return an integer from 0 to `most`."""
    value = entry.get(field)
    if type(value) is not int or not 0 <= value <= most:
        whose = f"{field} of {of}" if of else field
        raise PluginError(f"{whose} is {_quote(value)}, not an integer from 0 to {most}")
    return value


def read_reasons(entry: Entry) -> tuple[str, ...]:
    """Return the reasons, safe to print; () for none."""
    reasons = entry.get("reasons")
    if reasons is None:
        return ()
    if not isinstance(reasons, list) or not all(isinstance(reason, str) for reason in reasons):
        raise PluginError(f"reasons of {entry['name']} is not a list of texts")
    return tuple(clean(reason) for reason in reasons[:REASONS_MAX] if reason.strip())


def clean(text: str) -> str:
    """Return the text in one line without control characters, at most REASON_CHARS_MAX of it."""
    return printable(text[:REASON_CHARS_MAX]).strip()


def printable(text: str) -> str:
    """Return the text with blanks for control characters, which a terminal would interpret."""
    return "".join(character if character.isprintable() else " " for character in text)


def quote(value: Any) -> str:
    """Return a text unchanged, other values in short; lists and objects, which may be deep, only by type."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "a list"
    return "an object" if isinstance(value, dict) else repr(value)


def _quote(value: Any) -> str:
    return clean(repr(value[:80]) if isinstance(value, str) else quote(value))


def _some(names: Iterable[str]) -> str:
    return first_of(list(names), _NAMED_MAX)
