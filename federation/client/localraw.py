"""`Client.raw` of the in-process client: GET of health, version, discovery, objects and collections by path.

The documents are those of the API server, so controllers see the same discovery in process as over the network.
"""

from collections.abc import Mapping

import orjson

from federation.apimachinery.errors import MethodNotAllowed
from federation.apimachinery.paths import ResourcePath, parse
from federation.apiserver.registry.discovery import classic_document, version_info
from federation.apiserver.registry.registry import Registry
from federation.apiserver.verbs.requestoptions import ListOptions


async def get_raw(registry: Registry, method: str, path: str, query: Mapping[str, str]) -> bytes:
    """Return the body of a successful GET; raise NotFound, MethodNotAllowed or what the registry raises."""
    if method.upper() != "GET":
        raise MethodNotAllowed(f"{method} {path}: only GET is answered in process")
    resource_path = parse(path)
    if resource_path is not None:
        return await _read(registry, resource_path, query)
    match path.lstrip("/").partition("/")[0]:
        case "healthz" | "livez" | "readyz":
            await registry.revision()  # a store that does not answer makes the server unhealthy
            return b"ok"
        case "version":
            return orjson.dumps(version_info())
        case _:
            return orjson.dumps(classic_document(registry.kinds, path))


async def _read(registry: Registry, path: ResourcePath, query: Mapping[str, str]) -> bytes:
    info = registry.kinds.lookup(path.group, path.version, path.plural)
    if path.name:
        return await registry.get(info, path.namespace, path.name, subresource=path.subresource)
    options = ListOptions(
        label_selector=query.get("labelSelector", ""),
        field_selector=query.get("fieldSelector", ""),
        limit=int(query.get("limit") or 0),
        continue_token=query.get("continue", ""),
    )
    page = await registry.list(info, path.namespace, options)
    metadata = {"resourceVersion": str(page.resource_version), "continue": page.continue_token}
    head = {"kind": info.list_kind, "apiVersion": info.resource.api_version, "metadata": metadata}
    return orjson.dumps(head)[:-1] + b',"items":[' + b",".join(page.items) + b"]}"
