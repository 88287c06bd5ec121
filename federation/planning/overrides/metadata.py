"""Override annotations and labels (docs/reference/overrides.md): one `replace` of the complete map per field."""

from collections.abc import Mapping, Sequence
from typing import Any

from federation.planning.overrides.errors import OverrideError


def compute_metadata_patches(
    template: Mapping[str, Any], overriders: Sequence[Mapping[str, Any]], field: str
) -> list[dict[str, Any]]:
    """Return the patch of the overriders, none when there are none; `field` is "annotations" or "labels"."""
    if not overriders:
        return []
    entries: dict[str, str] = dict((template.get("metadata") or {}).get(field) or {})
    for index, overrider in enumerate(overriders):
        try:
            entries = _change(entries, overrider)
        except OverrideError as error:
            raise error.within(f"{field}[{index}]") from error
    return [{"op": "replace", "path": f"/metadata/{field}", "value": entries}]


def _change(entries: dict[str, str], overrider: Mapping[str, Any]) -> dict[str, str]:
    value: Mapping[str, str] = overrider.get("value") or {}
    match overrider.get("operator") or "overwrite":
        case "addIfAbsent":
            if not value:
                raise OverrideError("addIfAbsent operation needs value")
            if existing := sorted(entries.keys() & value.keys()):
                raise OverrideError(f"the key {existing[0]!r} already exists")
            return {**entries, **value}
        case "overwrite":
            return {key: value.get(key, old) for key, old in entries.items()}
        case "delete":
            return {key: old for key, old in entries.items() if key not in value}
        case _:
            return entries
