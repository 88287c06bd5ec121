"""Whether an object that existed in a member before the federation may be adopted (docs/reference/sync.md).

Adoption needs two annotations: conflict-resolution "adopt" or "adopt-if-equal", and clusters-to-adopt that names the
cluster. The internal
variants, which controllers set, win over the public ones. Pure; `operations.py` calls it when a create finds an object.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import orjson
import re2

from federation.api import names
from federation.apimachinery.errors import InvalidInput
from federation.apimachinery.textcache import cache_short

_QUIET = re2.Options()
"""Errors are raised and not also written to stderr."""
_QUIET.log_errors = False
_QUIET.max_mem = 64 * 1024  # annotations of tenants fill the cache
_ADOPT_IF_EQUAL = "adopt-if-equal"
_ADOPTING = ("adopt", _ADOPT_IF_EQUAL)
_REGEXP_CHARS_MAX = 1024


class Pattern(Protocol):
    """A compiled expression of RE2, which takes linear time: tenants write the annotation."""

    def search(self, text: str) -> object | None:
        """Return a match anywhere in the text, None without one."""
        ...


class AdoptionError(InvalidInput):
    """The clusters-to-adopt annotation is not a JSON object, or its regexp does not compile."""


def is_adoption_allowed(annotations: Mapping[str, str], cluster: str) -> bool:
    """Return True if an existing object in this cluster may be adopted; AdoptionError for a malformed annotation."""
    return _resolution(annotations) in _ADOPTING and is_cluster_to_adopt(annotations, cluster)


def takes_only_equal(annotations: Mapping[str, str]) -> bool:
    """Return True if an existing object may be adopted only where nothing but its metadata changes."""
    return _resolution(annotations) == _ADOPT_IF_EQUAL


def adoption_terms(annotations: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Return the values of the two annotations that count."""
    return _resolution(annotations), _clusters_to_adopt(annotations)


def _clusters_to_adopt(annotations: Mapping[str, str]) -> str | None:
    return annotations.get(names.INTERNAL_CLUSTERS_TO_ADOPT) or annotations.get(names.CLUSTERS_TO_ADOPT)


def _resolution(annotations: Mapping[str, str]) -> str | None:
    return annotations.get(names.INTERNAL_CONFLICT_RESOLUTION) or annotations.get(names.CONFLICT_RESOLUTION)


def is_cluster_to_adopt(annotations: Mapping[str, str], cluster: str) -> bool:
    """Return True if clusters-to-adopt names the cluster, in its list or by its unanchored regexp."""
    text = _clusters_to_adopt(annotations)
    if not text:
        return False
    clusters, pattern = _parse(text)
    return cluster in clusters or (pattern is not None and pattern.search(cluster) is not None)


@cache_short(256)
def _parse(text: str) -> tuple[frozenset[str], Pattern | None]:
    try:
        value: Any = orjson.loads(text)
        if not isinstance(value, dict):
            raise AdoptionError(f"{names.CLUSTERS_TO_ADOPT}: {text!r} is not a JSON object")  # bad data
        regexp = value.get("regexp") or ""
        clusters = value.get("clusters") or []
        if not isinstance(regexp, str) or not isinstance(clusters, list):
            raise AdoptionError(f"{names.CLUSTERS_TO_ADOPT}: clusters is a list of names and regexp a text")
        if len(regexp) > _REGEXP_CHARS_MAX:
            raise AdoptionError(f"{names.CLUSTERS_TO_ADOPT}: regexp may have {_REGEXP_CHARS_MAX} characters")
        return frozenset(map(str, clusters)), re2.compile(regexp, _QUIET) if regexp else None
    except (orjson.JSONDecodeError, re2.error) as error:
        raise AdoptionError(f"{names.CLUSTERS_TO_ADOPT}: {error}") from error
