"""The verb of a resource request, as kube-apiserver's request info derives it from method, path and query. Pure."""

from collections.abc import Mapping

from federation.apimachinery.errors import BadRequest
from federation.apimachinery.paths import ResourcePath
from federation.apiserver.http.asgi import Request, is_asked


def to_verb(request: Request, path: ResourcePath) -> str:
    """Return the verb, "" for a method that has none; a GET of a collection or object may be a watch."""
    verb = path.verb(request.method)
    if verb in ("list", "get") and not path.subresource and request.scope["query_string"] and _has_watch(request):
        return "watch"
    return "watch" if path.is_watch and verb in ("list", "get") else verb


def _has_watch(request: Request) -> bool:
    try:
        query: Mapping[str, str] = request.query
    except BadRequest:
        return False  # the handler parses the query again and refuses it, when the request may be answered
    return is_asked(query, "watch")
