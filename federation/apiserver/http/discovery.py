"""Discovery over HTTP: content negotiation, ETags, and documents cached as bytes until what is served changes.

`registry/discovery.py` builds the documents.
"""

import hashlib
from typing import Any

import orjson

from federation.apiserver.http.asgi import JSON_TYPE, Header, Request, serialize
from federation.apiserver.http.negotiation import Shape, negotiate
from federation.apiserver.registry.apiservices import APIServices
from federation.apiserver.registry.discovery import aggregated_document, classic_document
from federation.apiserver.semantics.kinds.kinds import Kinds


class Discovery:
    """Answers discovery requests for one registry."""

    def __init__(self, kinds: Kinds, apis: APIServices) -> None:
        self._kinds = kinds
        self._apis = apis
        self._generation = (-1, -1)
        self._documents: dict[tuple[str, str], tuple[Any, bytes, bytes]] = {}

    async def respond(self, request: Request) -> None:
        """Answer a discovery path; NotFound for a group or version that is not served."""
        path = request.path.rstrip("/")
        is_root = path in {"/api", "/apis"}
        answer = negotiate(request.headers.get(b"accept", b""), is_discovery=True)
        aggregated_version = answer.version if answer.shape is Shape.DISCOVERY and is_root else ""
        value, body, etag = self._document(path, aggregated_version)
        headers: list[Header] = [(b"vary", b"Accept")]
        if aggregated_version:
            headers.append((b"etag", etag))
            if request.headers.get(b"if-none-match") == etag:
                await request.respond(304, b"", content_type=answer.content_type, headers=headers)
                return
        content_type = answer.content_type if aggregated_version or answer.is_yaml else JSON_TYPE
        if answer.is_yaml:
            body = serialize(value, content_type)
        await request.respond(200, body, content_type=content_type, headers=headers)

    def _document(self, path: str, aggregated_version: str) -> tuple[Any, bytes, bytes]:
        """Return a document with its JSON and ETag."""
        generation = (self._kinds.generation, self._apis.generation)
        if self._generation != generation:
            self._documents.clear()
            self._generation = generation
        key = (path, aggregated_version)
        found = self._documents.get(key)
        if found is None:
            if aggregated_version:
                value = aggregated_document(self._kinds, path, aggregated_version, self._apis)
            else:
                value = classic_document(self._kinds, path, self._apis)
            body = orjson.dumps(value)
            etag = b'"' + hashlib.sha256(body).hexdigest().upper().encode() + b'"'
            found = self._documents[key] = (value, body, etag)
        return found
