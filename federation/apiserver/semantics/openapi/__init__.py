"""OpenAPI documents of the served kinds for `kubectl explain`, `apply`, `diff` and client generators. Pure.

`definitions.py` collects the definitions: Kubernetes' own for built-in kinds (`schema/builtin.json`), and those
rendered from the compiled schemas of custom kinds. `paths.py` describes the URLs. Documents are built per call; the
caller caches them by `Kinds.generation`.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.semantics.openapi import definitions, paths
from federation.apiserver.semantics.schema import builtin

Document = dict[str, Any]

_VERSION: Final = "unversioned"
_SECURITY_SCHEMES: Final = {
    "BearerToken": {
        "description": "Bearer Token authentication",
        "in": "header",
        "name": "authorization",
        "type": "apiKey",
    }
}


def openapi_v2(kinds: Iterable[KindInfo]) -> Document:
    """Return the whole API as one Swagger 2.0 document."""
    served = list(kinds)
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": _VERSION},
        "paths": paths.paths_v2(served),
        "definitions": definitions.definitions_v2(served),
        "securityDefinitions": _SECURITY_SCHEMES,
        "security": [{"BearerToken": []}],
    }


class Review(NamedTuple):
    """A kind that is answered and not stored, for example SubjectAccessReview."""

    plural: str
    kind: str
    is_namespaced: bool


def openapi_v3(group: str, version: str, kinds: Iterable[KindInfo], *, reviews: Iterable[Review] = ()) -> Document:
    """Return the OpenAPI 3.0 document of one group version; `kinds` of other group versions are ignored."""
    reviews = list(reviews)
    names = [builtin.definition_name(group, version, review.kind) for review in reviews]
    review_paths = {
        path: item
        for review in reviews
        for path, item in paths.review_paths_v3(
            group, version, review.plural, review.kind, is_namespaced=review.is_namespaced
        ).items()
    }
    served = [info for info in kinds if (info.resource.group, info.resource.version) == (group, version)]
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": _VERSION},
        "paths": paths.paths_v3(served) | review_paths,
        "components": {
            "schemas": definitions.definitions_v3(served, [name for name in names if name]),
            "securitySchemes": _SECURITY_SCHEMES,
        },
    }
