"""The paths of OpenAPI documents: methods, kinds and parameters of each URL. Pure.

They contain the information that clients read: the kind of a URL (`kubectl explain`), whether writes support
`fieldValidation` and `dryRun` (`kubectl apply`, `diff`), and the patch types of a kind.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.semantics.openapi.definitions import GVK, REF_V3, name_of, subresource_kind
from federation.apiserver.semantics.schema import builtin

Item = dict[str, Any]

_METHODS: Final = {
    "list": "get",
    "create": "post",
    "deletecollection": "delete",
    "get": "get",
    "update": "put",
    "patch": "patch",
    "delete": "delete",
}
_ACTIONS: Final = {"create": "post", "update": "put"}
_COLLECTION: Final = ("list", "create", "deletecollection")
_OBJECT: Final = ("get", "update", "patch", "delete")
_STATUS: Final = ("get", "update", "patch")
_SELECTION: Final = (
    ("labelSelector", "string", "A selector to restrict the list of returned objects by their labels."),
    ("fieldSelector", "string", "A selector to restrict the list of returned objects by their fields."),
    ("limit", "integer", "The maximum number of responses to return for a list call."),
    ("continue", "string", "The continue token of the previous page."),
    ("resourceVersion", "string", "A constraint on what resource versions a request may be served from."),
    ("resourceVersionMatch", "string", "How resourceVersion is applied to list calls."),
    ("sendInitialEvents", "boolean", "Whether a watch begins with events of the existing objects."),
    ("allowWatchBookmarks", "boolean", "Whether a watch may send events of type BOOKMARK."),
    ("timeoutSeconds", "integer", "Timeout for the list or watch call."),
    ("watch", "boolean", "Watch for changes to the described resources."),
)
_DRY_RUN: Final = ("dryRun", "string", "When present, modifications are not persisted. The valid value is All.")
_FIELD_MANAGER: Final = ("fieldManager", "string", "The name of the actor or entity that is making these changes.")
_FIELD_VALIDATION: Final = (
    "fieldValidation",
    "string",
    "What happens to unknown or duplicate fields: Ignore, Warn or Strict.",
)
_FORCE: Final = ("force", "boolean", "Whether an apply request takes over fields of other managers.")
_WRITE: Final = (_DRY_RUN, _FIELD_MANAGER, _FIELD_VALIDATION)
_PARAMETERS: Final = {
    "list": _SELECTION,
    "create": _WRITE,
    "deletecollection": (*_SELECTION, _DRY_RUN),
    "get": (),
    "update": _WRITE,
    "patch": (*_WRITE, _FORCE),
    "delete": (
        _DRY_RUN,
        ("gracePeriodSeconds", "integer", "The duration in seconds before the object should be deleted."),
        ("propagationPolicy", "string", "Whether and how garbage collection will be performed."),
    ),
}
_PATCH_TYPES: Final = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
_STRATEGIC: Final = _PATCH_TYPES[2]


def paths_v2(kinds: Iterable[KindInfo]) -> dict[str, Item]:
    """Return the paths of these kinds for a Swagger 2.0 document."""
    return {path: item for info in kinds for path, item in _items(info, is_v3=False)}


def paths_v3(kinds: Iterable[KindInfo]) -> dict[str, Item]:
    """Return the paths of these kinds for an OpenAPI 3 document."""
    return {path: item for info in kinds for path, item in _items(info, is_v3=True)}


def review_paths_v3(group: str, version: str, plural: str, kind: str, *, is_namespaced: bool) -> dict[str, Item]:
    """Return the path of a kind that can only be created and is not stored."""
    scope = "namespaces/{namespace}/" if is_namespaced else ""
    definition = builtin.definition_name(group, version, kind)
    shared = {"tags": [f"{group}_{version}"], GVK: {"group": group, "kind": kind, "version": version}}
    parameters = [_parameter(*parameter, is_v3=True) for parameter in _WRITE]
    create: Item = {
        "description": f"create an object of kind {kind}",
        "operationId": f"create_{group.replace('.', '_')}_{version}_{plural}",
        "parameters": parameters,
        "responses": {"201": _response(definition, is_v3=True)},
        "x-kubernetes-action": "post",
        **shared,
    }
    _add_body(create, definition, ["application/json"], is_v3=True)
    # kubectl reads the parameters of the patch operation to learn which options writes support.
    patch: Item = {
        "description": "This kind cannot be patched.",
        "operationId": f"patch_{group.replace('.', '_')}_{version}_{plural}",
        "parameters": parameters,
        "responses": {"405": {"description": "Method Not Allowed"}},
        "x-kubernetes-action": "patch",
        **shared,
    }
    item: Item = {"post": create, "patch": patch}
    if is_namespaced:
        item["parameters"] = [_parameter("namespace", "string", "", is_v3=True, place="path")]
    return {f"/apis/{group}/{version}/{scope}{plural}": item}


def _items(info: KindInfo, *, is_v3: bool) -> Iterator[tuple[str, Item]]:
    resource = info.resource
    namespace = "{namespace}" if resource.namespaced else ""
    gvk = (resource.group, resource.version, resource.kind)
    collection = [verb for verb in _COLLECTION if verb in info.verbs]
    single = [verb for verb in _OBJECT if verb in info.verbs]
    if collection:
        yield resource.path(namespace), _item(info, collection, gvk, is_v3=is_v3)
    if resource.namespaced and "list" in info.verbs:
        yield resource.path(), _item(info, ["list"], gvk, is_v3=is_v3, all_namespaces=True)
    if single:
        yield resource.path(namespace, "{name}"), _item(info, single, gvk, is_v3=is_v3)
    for subresource in sorted(info.subresources):
        verbs = _STATUS if subresource in ("status", "scale", "ephemeralcontainers", "resize") else ("create",)
        verbs = ("update",) if subresource == "finalize" else verbs
        path = resource.path(namespace, "{name}", subresource)
        yield path, _item(info, verbs, subresource_kind(info, subresource), is_v3=is_v3, subresource=subresource)


def _item(
    info: KindInfo,
    verbs: Iterable[str],
    gvk: tuple[str, str, str],
    *,
    is_v3: bool,
    subresource: str = "",
    all_namespaces: bool = False,
) -> Item:
    item: Item = {}
    shared = []
    verbs = list(verbs)
    if info.resource.namespaced and not all_namespaces:
        shared.append("namespace")
    if subresource or not set(verbs) & set(_COLLECTION):
        shared.append("name")
    item["parameters"] = [_parameter(name, "string", "", is_v3=is_v3, place="path") for name in shared]
    for verb in verbs:
        item[_METHODS[verb]] = _operation(
            info, verb, gvk, is_v3=is_v3, suffix=subresource or ("all" if all_namespaces else "")
        )
    return item


def _operation(info: KindInfo, verb: str, gvk: tuple[str, str, str], *, is_v3: bool, suffix: str) -> Item:
    resource = info.resource
    group, version, kind = gvk
    own = (resource.group, resource.version, resource.kind)
    body = name_of(info) if gvk == own else builtin.definition_name(*gvk)
    response = body
    if verb == "list":
        response = f"{name_of(info)}List"
    elif verb in ("delete", "deletecollection"):
        response, body = f"{builtin.META}.Status", f"{builtin.META}.DeleteOptions"
    where = "_".join(filter(None, (resource.group.replace(".", "_") or "core", version, resource.plural, suffix)))
    parameters = [_parameter(*parameter, is_v3=is_v3) for parameter in _PARAMETERS[verb]]
    media_types = ["application/json"]
    if verb == "patch":
        media_types = [media for media in _PATCH_TYPES if not (info.is_custom and media == _STRATEGIC)]
        body = None
    operation: Item = {
        "description": f"{verb} {'objects' if verb in _COLLECTION[::2] else 'an object'} of kind {kind}",
        "operationId": f"{verb}_{where}",
        "tags": [f"{resource.group or 'core'}_{resource.version}"],
        "parameters": parameters,
        "responses": {"200": _response(response, is_v3=is_v3)},
        "x-kubernetes-action": _ACTIONS.get(verb, verb),
        GVK: {"group": group, "kind": kind, "version": version},
    }
    if verb in ("create", "update", "patch", "delete", "deletecollection"):
        _add_body(operation, body, media_types, is_v3=is_v3)
    return operation


def _add_body(operation: Item, body: str | None, media_types: list[str], *, is_v3: bool) -> None:
    if is_v3:
        schema = {"$ref": REF_V3 + body} if body else {"type": "object"}
        operation["requestBody"] = {"content": {media: {"schema": schema} for media in media_types}}
        return
    schema = {"$ref": builtin.REF + body} if body else {"type": "object"}
    operation["consumes"] = media_types
    operation["produces"] = ["application/json"]
    operation["parameters"].append({"name": "body", "in": "body", "schema": schema})


def _response(definition: str | None, *, is_v3: bool) -> Item:
    if not definition:
        return {"description": "OK"}
    if is_v3:
        return {
            "description": "OK",
            "content": {"application/json": {"schema": {"$ref": REF_V3 + definition}}},
        }
    return {"description": "OK", "schema": {"$ref": builtin.REF + definition}}


def _parameter(name: str, type_: str, text: str, *, is_v3: bool, place: str = "query") -> Item:
    parameter: Item = {"name": name, "in": place}
    if text:
        parameter["description"] = text
    if place == "path":
        parameter["required"] = True
    if is_v3:
        parameter["schema"] = {"type": type_, "uniqueItems": True}
    else:
        parameter |= {"type": type_, "uniqueItems": True}
    return parameter
