"""Query parameters and DeleteOptions bodies as the verbs' options, with Kubernetes' error messages. Pure."""

import re
from collections.abc import Mapping
from typing import Any

from federation.apimachinery import errors
from federation.apimachinery.errors import BadRequest
from federation.apimachinery.fielderrors import forbidden, required
from federation.apimachinery.objectmeta import validate_manager
from federation.apiserver.http.asgi import is_asked
from federation.apiserver.verbs.deleteoptions import check_dry_run, read_delete_options, unsupported
from federation.apiserver.verbs.requestoptions import DeleteOptions, ListOptions, Requester, WriteOptions

_AMOUNT = re.compile(r"(\d*)(?:\.(\d*))?([^\d.]*)", re.ASCII)
_UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION_CHARS_MAX = 64
_DURATION_S_MAX = (2**63 - 1) / 1e9
"""A Go duration counts nanoseconds in 64 bits."""
_FIELD_VALIDATIONS = ("Ignore", "Strict", "Warn")


def to_list_options(query: Mapping[str, str]) -> ListOptions:
    """Return the options of a list or watch; BadRequest for malformed numbers. The verbs validate the rest."""
    return ListOptions(
        label_selector=query.get("labelSelector", ""),
        field_selector=query.get("fieldSelector", ""),
        limit=max(to_int(query, "limit"), 0),
        continue_token=query.get("continue", ""),
        resource_version=query.get("resourceVersion", ""),
        resource_version_match=query.get("resourceVersionMatch", ""),
        allow_watch_bookmarks=is_asked(query, "allowWatchBookmarks"),
        send_initial_events=is_asked(query, "sendInitialEvents") if "sendInitialEvents" in query else None,
        timeout_s=to_int(query, "timeoutSeconds"),
    )


def to_write_options(
    query: Mapping[str, str],
    user_agent: str,
    warnings: list[str],
    kind: str,
    user: Requester | None = None,
    annotations: dict[str, str] | None = None,
    *,
    is_apply: bool = False,
) -> WriteOptions:
    """Return the options of a create, update or patch; `kind` names the options in errors (CreateOptions, …)."""
    annotations = {} if annotations is None else annotations
    if not query and not is_apply:
        return WriteOptions(
            user_agent=user_agent,
            warnings=warnings,
            user=user,
            audit_annotations=annotations,
            is_patch=kind == "PatchOptions",
        )
    field_validation = query.get("fieldValidation") or "Warn"
    manager = query.get("fieldManager", "")
    causes = []
    if is_apply and not manager:
        causes.append(required("fieldManager", "is required for apply patch"))
    elif not is_apply and kind == "PatchOptions" and "force" in query:
        causes.append(forbidden("force", "may not be specified for non-apply patch"))
    causes += validate_manager("fieldManager", manager)
    if "dryRun" in query:
        causes += check_dry_run([query["dryRun"]])
    if field_validation not in _FIELD_VALIDATIONS:
        causes.append(unsupported("fieldValidation", field_validation, ("", *_FIELD_VALIDATIONS)))
    if causes:
        raise errors.invalid(kind, "meta.k8s.io", "", causes)
    return WriteOptions(
        field_manager=manager,
        force=is_asked(query, "force"),
        dry_run="dryRun" in query,
        field_validation=field_validation,
        is_patch=kind == "PatchOptions",
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
    """Return the options of a delete. As in kube-apiserver, a DeleteOptions body replaces the query parameters."""
    options: dict[str, Any] = dict(body) if body else _delete_options_of_query(query)
    if body and body.get("kind") not in (None, "", "DeleteOptions"):
        raise BadRequest(f"the object provided is unrecognized (must be of type DeleteOptions): {body.get('kind')!s}")
    if body and not isinstance(body.get("apiVersion"), str | None):
        raise BadRequest("couldn't get version/kind; json parse error: apiVersion must be a string")
    return read_delete_options(options, warnings, user, annotations)


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


def _delete_options_of_query(query: Mapping[str, str]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if query.get("propagationPolicy"):
        options["propagationPolicy"] = query["propagationPolicy"]
    if query.get("gracePeriodSeconds"):
        options["gracePeriodSeconds"] = to_int(query, "gracePeriodSeconds")
    if query.get("orphanDependents"):
        options["orphanDependents"] = is_asked(query, "orphanDependents")
    if "dryRun" in query:
        options["dryRun"] = [query["dryRun"]]
    return options


def timeout_s(text: str, default_s: float) -> float:
    """Return the seconds of the parameter `timeout`, at most `default_s`; BadRequest for anything but a Go duration.

    As in kube-apiserver, a duration that is not positive means the default.
    """
    try:
        given_s = duration_s(text)
    except ValueError as error:
        raise BadRequest(f"invalid timeout specified in the request URL - {error}") from error
    return min(given_s, default_s) if given_s > 0 else default_s


def duration_s(text: str) -> float:
    """Return a Go duration ("1m30s", "-500ms", "0") in seconds; ValueError with the text of time.ParseDuration."""
    shown = text[:_DURATION_CHARS_MAX]
    invalid = ValueError(f'time: invalid duration "{shown}"')
    sign, unsigned = (-1, text[1:]) if text[:1] == "-" else (1, text.removeprefix("+"))
    if unsigned == "0":
        return 0.0
    # The limit keeps a long text from being scanned for every digit.
    if not unsigned or len(text) > _DURATION_CHARS_MAX:
        raise invalid
    total_s, at = 0.0, 0
    while at < len(unsigned):
        found = _AMOUNT.match(unsigned, at)
        if found is None or not (found[1] or found[2]):
            raise invalid
        unit = found[3]
        if not unit:
            raise ValueError(f'time: missing unit in duration "{shown}"')
        if unit not in _UNITS_S:
            raise ValueError(f'time: unknown unit "{unit}" in duration "{shown}"')
        total_s += float(f"{found[1] or 0}.{found[2] or 0}") * _UNITS_S[unit]
        at = found.end()
    if total_s > _DURATION_S_MAX:
        raise invalid
    return sign * total_s
