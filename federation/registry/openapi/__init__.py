"""OpenAPI documents of the served kinds, as `kubectl explain`, `apply`, `diff` and client generators read them. Pure.

Definitions of built-in kinds are Kubernetes' own (`schema/builtin.json`), those of custom kinds are rendered from
their compiled schemas; `definitions.py` collects them, `paths.py` describes the URLs. Everything is built when it is
asked for; the caller keeps documents for as long as `Kinds.generation` stays.
"""

import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import orjson

from federation.registry.kinds import KindInfo
from federation.registry.openapi import definitions, paths
from federation.registry.schema import builtin
from federation.registry.schema.builtin import fingerprint

Document = dict[str, Any]


def openapi_v2(kinds: Iterable[KindInfo], *, version: str = "unversioned") -> Document:
    """Return the whole API as one Swagger 2.0 document; `version` is the server's."""
    served = list(kinds)
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": version},
        "paths": paths.paths_v2(served),
        "definitions": definitions.definitions_v2(served),
        "securityDefinitions": {
            "BearerToken": {
                "description": "Bearer Token authentication",
                "in": "header",
                "name": "authorization",
                "type": "apiKey",
            }
        },
        "security": [{"BearerToken": []}],
    }


class Review(NamedTuple):
    """A kind that is answered instead of stored."""

    plural: str
    kind: str
    is_namespaced: bool


def openapi_v3(
    group: str,
    version: str,
    kinds: Iterable[KindInfo],
    *,
    reviews: Iterable[Review] = (),
    server_version: str = "unversioned",
) -> Document:
    """Return the OpenAPI 3.0 document of one group version; `kinds` may hold others, which are left out."""
    asked = list(reviews)
    names = [builtin.definition_name(group, version, review.kind) for review in asked]
    review_paths = {
        path: item
        for review in asked
        for path, item in paths.review_paths_v3(
            group, version, review.plural, review.kind, is_namespaced=review.is_namespaced
        ).items()
    }
    served = [info for info in kinds if (info.resource.group, info.resource.version) == (group, version)]
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": server_version},
        "paths": paths.paths_v3(served) | review_paths,
        "components": {
            "schemas": definitions.definitions_v3(served, [name for name in names if name]),
            "securitySchemes": {
                "BearerToken": {
                    "description": "Bearer Token authentication",
                    "in": "header",
                    "name": "authorization",
                    "type": "apiKey",
                }
            },
        },
    }


def openapi_v3_index(kinds: Iterable[KindInfo], *, server_version: str = "unversioned") -> Document:
    """Return the answer of `/openapi/v3`: one URL per group version, with a hash that follows its document."""
    by_path: dict[str, list[KindInfo]] = {}
    for info in kinds:
        resource = info.resource
        path = f"apis/{resource.group}/{resource.version}" if resource.group else f"api/{resource.version}"
        by_path.setdefault(path, []).append(info)
    return {
        "paths": {
            path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={_hash(members, server_version)}"}
            for path, members in sorted(by_path.items())
        }
    }


def _hash(kinds: list[KindInfo], server_version: str) -> str:
    """Hash what the document of these kinds is made from, which is cheaper than making it."""
    facts: list[Any] = [server_version, fingerprint()]
    for info in kinds:
        resource = info.resource
        facts.append([resource.kind, resource.plural, resource.namespaced, sorted(info.subresources), info.verbs])
        if info.is_custom:
            facts.append(definitions.render(info.schema))
    return hashlib.sha512(orjson.dumps(facts)).hexdigest().upper()
