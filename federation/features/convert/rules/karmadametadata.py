"""Labels, annotations and finalizers of objects that Karmada has or had. Pure.

Users set a few keys of Karmada on their objects: these are converted or noted. All others are bookkeeping of its
controllers, and left out, as are the fields that an API server fills.
"""

from collections.abc import Mapping
from typing import Any

from federation.api import names
from federation.apimachinery import wellknown
from federation.apimachinery.resources import Object
from federation.features.convert.rules.fieldreader import FieldReader, to_title
from federation.features.convert.rules.model import Note
from federation.planning.federatedobject.previoushosts import KARMADA_DOMAIN, in_domain

_SYSTEM_FIELDS = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink")
_ANNOTATIONS = {
    ("resourcetemplate.karmada.io/retain-replicas", "true"): names.RETAIN_REPLICAS,
    ("namespace.karmada.io/skip-auto-propagation", "true"): names.NO_AUTO_PROPAGATION,
}
"""Keys and values of Karmada that are annotations with the value "true" here."""
_NOTED = {
    "resourcetemplate.karmada.io/deletion-protected": "objects are not protected; the guard holds large deletions",
    "work.karmada.io/conflict-resolution": "take over objects that exist in members with: fedctl adopt KIND/NAME",
}


def to_metadata(metadata: FieldReader) -> Object:
    """Return the metadata of a policy: name, namespace, and its own labels and annotations."""
    for key in _SYSTEM_FIELDS:
        metadata.any(key)
    kept: Object = {"name": metadata.text("name"), "namespace": metadata.text("namespace")}
    if not kept["name"]:
        raise metadata.refuse("name", "is required; add it to the manifest")
    for field in ("labels", "annotations"):
        entries = metadata.text_map(field)
        kept[field] = _without_own(entries)
        for key in sorted(_NOTED.keys() & entries.keys()):
            metadata.note(f"{field}.{key}", _NOTED[key])
    if others := [name for name in metadata.texts("finalizers") if not _is_own(name)]:
        metadata.note("finalizers", f"{', '.join(others)}: left out, its controller may not run here")
    return {key: value for key, value in kept.items() if value}


def to_plain(manifest: Object, notes: list[Note]) -> Object:
    """Return an object of another kind without what Karmada and its API server added, if Karmada had it."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or not _has_own(metadata):
        return manifest
    kept = {key: value for key, value in metadata.items() if key not in _SYSTEM_FIELDS}
    converted: dict[str, str] = {}
    for field in ("labels", "annotations"):
        entries = kept.get(field) or {}
        kept[field] = _without_own(entries)
        converted |= {_ANNOTATIONS[entry]: "true" for entry in entries.items() if entry in _ANNOTATIONS}
        notes += [Note(to_title(manifest), f"metadata.{field}.{key}", _NOTED[key]) for key in entries if key in _NOTED]
    kept["annotations"] |= converted
    kept["finalizers"] = [name for name in kept.get("finalizers") or () if not _is_own(name)]
    cleaned = {key: value for key, value in manifest.items() if key != "status"}
    return {**cleaned, "metadata": {key: value for key, value in kept.items() if value}}


def _has_own(metadata: Mapping[str, Any]) -> bool:
    keys = [key for field in ("labels", "annotations", "finalizers") for key in metadata.get(field) or ()]
    return any(map(_is_own, keys))


def _without_own(entries: Mapping[str, str]) -> dict[str, str]:
    own = wellknown.LAST_APPLIED_CONFIGURATION
    return {key: value for key, value in entries.items() if key != own and not _is_own(key)}


def _is_own(key: str) -> bool:
    return in_domain(key, KARMADA_DOMAIN)
