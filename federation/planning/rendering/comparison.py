"""The member's values of the fields that the federation owns, for `fedctl render` and `fedctl diff`. Pure.

`owned_part` reduces a live object to the fields of an applied configuration: defaults, allocated values and fields of
other owners are left out. A field that is written differently and means the same takes the configuration's spelling.
"""

from collections.abc import Mapping
from typing import Any

from federation.api import names
from federation.apimachinery.resources import Object
from federation.planning.rendering.drift import find_item, is_subset

_BOOKKEEPING = (names.TEMPLATE_HASH, names.SOURCE_GENERATION)


def owned_part(wanted: Any, live: Any, *, field: str = "") -> Any:
    """Return what `live` has of the fields in `wanted`; `field` is the name of the field that holds both."""
    if is_subset(wanted, live, field=field):
        return wanted
    if isinstance(wanted, Mapping) and isinstance(live, Mapping):
        return {key: owned_part(wanted[key], live[key], field=key) for key in wanted if key in live}
    if isinstance(wanted, list) and isinstance(live, list):
        found = [find_item(item, live, field) for item in wanted]
        if any(item is not None for item in found):
            return [owned_part(item, held) for item, held in zip(wanted, found, strict=True) if held is not None]
    return live


def without_bookkeeping(manifest: Mapping[str, Any]) -> Object:
    """Return the manifest without the annotations that change with every version; they are no difference to show."""
    metadata = manifest.get("metadata") or {}
    annotations = {key: value for key, value in (metadata.get("annotations") or {}).items() if key not in _BOOKKEEPING}
    kept = {key: value for key, value in metadata.items() if key != "annotations"}
    return {**manifest, "metadata": {**kept, **({"annotations": annotations} if annotations else {})}}
