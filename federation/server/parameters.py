"""Query parameters and DeleteOptions bodies as the registry's options, refused in Kubernetes' words. Pure."""

from collections.abc import Mapping
from typing import Any

from federation.base import errors
from federation.base.errors import BadRequest
from federation.registry.deleteoptions import check_dry_run, read_delete_options, unsupported
from federation.registry.options import DeleteOptions, ListOptions, Requester, WriteOptions
from federation.server.asgi import is_true

_FIELD_VALIDATIONS = ("Ignore", "Strict", "Warn")
_RESOURCE_VERSION_MATCHES = ("Exact", "NotOlderThan")
_FIELD_MANAGER_LENGTH_MAX = 128
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False", ""})


def to_list_options(query: Mapping[str, str]) -> ListOptions:
    """Return the options of a list or watch; BadRequest for malformed numbers, Invalid for values out of range."""
    match = query.get("resourceVersionMatch", "")
    send_initial = to_bool(query, "sendInitialEvents") if "sendInitialEvents" in query else None
    check = _check_watch if is_true(query.get("watch", "")) else _check_list
    causes = check(match, query, send_initial)
    if causes:
        raise errors.invalid("ListOptions", "meta.k8s.io", "", causes)
    return ListOptions(
        label_selector=query.get("labelSelector", ""),
        field_selector=query.get("fieldSelector", ""),
        limit=max(to_int(query, "limit"), 0),
        continue_token=query.get("continue", ""),
        resource_version=query.get("resourceVersion", ""),
        resource_version_match=match,
        allow_watch_bookmarks=to_bool(query, "allowWatchBookmarks"),
        send_initial_events=send_initial,
        timeout_s=max(to_int(query, "timeoutSeconds"), 0),
    )


def _check_list(match: str, query: Mapping[str, str], send_initial: bool | None) -> list[dict[str, str]]:
    field, causes = "resourceVersionMatch", []
    if match and not query.get("resourceVersion"):
        causes.append(_forbidden(field, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
    if match and query.get("continue"):
        causes.append(_forbidden(field, "resourceVersionMatch is forbidden when continue is provided"))
    if match and match not in _RESOURCE_VERSION_MATCHES:
        causes.append(unsupported(field, match, (*_RESOURCE_VERSION_MATCHES, "")))
    if match == "Exact" and query.get("resourceVersion") == "0":
        causes.append(_forbidden(field, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if send_initial is not None:
        causes.append(_forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return causes


def _check_watch(match: str, query: Mapping[str, str], send_initial: bool | None) -> list[dict[str, str]]:
    field, causes = "resourceVersionMatch", []
    if send_initial is not None and match != "NotOlderThan":
        causes.append(_forbidden(field, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
    if match and send_initial is None:
        text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        causes.append(_forbidden(field, text))
    if match and match != "NotOlderThan":
        causes.append(unsupported(field, match, ("NotOlderThan",)))
    if match and query.get("continue"):
        causes.append(_forbidden(field, "resourceVersionMatch is forbidden when continue is provided"))
    return causes


def to_write_options(
    query: Mapping[str, str],
    user_agent: str,
    warnings: list[str],
    kind: str,
    user: Requester | None = None,
    annotations: dict[str, str] | None = None,
) -> WriteOptions:
    """Return the options of a create, update or patch; `kind` is CreateOptions, … for the error's text."""
    annotations = {} if annotations is None else annotations
    if not query:
        return WriteOptions(user_agent=user_agent, warnings=warnings, user=user, audit_annotations=annotations)
    field_validation = query.get("fieldValidation") or "Warn"
    manager = query.get("fieldManager", "")
    causes = check_dry_run(query.get("dryRun", ""))
    if field_validation not in _FIELD_VALIDATIONS:
        causes.append(unsupported("fieldValidation", field_validation, ("", *_FIELD_VALIDATIONS)))
    if len(manager) > _FIELD_MANAGER_LENGTH_MAX:
        causes.append(
            errors.cause(
                "FieldValueTooLong",
                f"Too long: may not be more than {_FIELD_MANAGER_LENGTH_MAX} bytes",
                "fieldManager",
            )
        )
    elif not manager.isprintable():
        causes.append(
            errors.cause(
                "FieldValueInvalid",
                f'Invalid value: "{manager!a}": should only contain printable characters',
                "fieldManager",
            )
        )
    if causes:
        raise errors.invalid(kind, "meta.k8s.io", "", causes)
    return WriteOptions(
        field_manager=manager,
        force=to_bool(query, "force"),
        dry_run=bool(query.get("dryRun")),
        field_validation=field_validation,
        user_agent=user_agent,
        warnings=warnings,
        user=user,
        audit_annotations=annotations,
    )


def to_delete_options(
    query: Mapping[str, str],
    body: Mapping[str, Any] | None,
    warnings: list[str] | None = None,
    user: Requester | None = None,
    annotations: dict[str, str] | None = None,
) -> DeleteOptions:
    """Return the options of a delete: a body (DeleteOptions) wins over query parameters, as in kube-apiserver."""
    given: dict[str, Any] = dict(body) if body else _from_query(query)
    if body and body.get("kind") not in (None, "", "DeleteOptions"):
        raise BadRequest(f"the object provided is unrecognized (must be of type DeleteOptions): {body.get('kind')!s}")
    return read_delete_options(given, warnings, user, annotations)


def to_int(query: Mapping[str, str], name: str) -> int:
    """Return an integer parameter (0 when missing); BadRequest when it is not one."""
    text = query.get(name, "")
    if not text:
        return 0
    try:
        value = int(text) if text.lstrip("+-").isdigit() and text.isascii() and len(text) < 20 else None
    except ValueError:
        value = None
    if value is None:
        raise BadRequest(f'strconv.ParseInt: parsing "{text[:64]}": invalid syntax')
    return value


def to_bool(query: Mapping[str, str], name: str) -> bool:
    """Return a boolean parameter as Kubernetes reads it: anything but a false word is true."""
    text = query.get(name)
    return text is not None and text not in _FALSE


def _from_query(query: Mapping[str, str]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if query.get("propagationPolicy"):
        given["propagationPolicy"] = query["propagationPolicy"]
    if query.get("gracePeriodSeconds"):
        given["gracePeriodSeconds"] = to_int(query, "gracePeriodSeconds")
    if query.get("orphanDependents"):
        given["orphanDependents"] = to_bool(query, "orphanDependents")
    if query.get("dryRun"):
        given["dryRun"] = [query["dryRun"]]
    return given


def _forbidden(field: str, text: str) -> dict[str, str]:
    return errors.cause("FieldValueForbidden", f"Forbidden: {text}", field)
