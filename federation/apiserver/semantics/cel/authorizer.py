"""The `authorizer` variable of admission expressions.

`authorizer.group("apps").resource("deployments").namespace("prod").check("create").allowed()` builds a chain of
mappings and ends in an access check. The function that decides depends on the request, so `authorize_with` keeps it in
a context variable during an evaluation. `auth/rbac.py` decides; this module knows no roles.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from federation.apimachinery import nameformats

_KEY = "kubernetes.authz"
"""The key of the type name of a value in the chain."""


class AccessCheck(NamedTuple):
    """A check for `verb` on a resource or on a `path`; `service_account` ("", "") means the user of the request."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    service_account: tuple[str, str] = ("", "")
    """Namespace and name."""


class AccessDecision(NamedTuple):
    """The result of a check; `error` is set if it failed."""

    is_allowed: bool
    reason: str = ""
    error: str = ""


Decide = Callable[[AccessCheck], AccessDecision]

_decide: ContextVar[Decide | None] = ContextVar("decide", default=None)


@contextmanager
def authorize_with(decide: Decide | None) -> Iterator[None]:
    """Use `decide` for the access checks of expressions that are evaluated in this context."""
    token = _decide.set(decide)
    try:
        yield
    finally:
        _decide.reset(token)


def authorizer(*, group: str, resource: str, subresource: str, namespace: str, name: str) -> dict[str, Any]:
    """Return the value of `authorizer`, with the request's own resource as `authorizer.requestResource`."""
    target = {"group": group, "resource": resource, "subresource": subresource, "namespace": namespace, "name": name}
    return {_KEY: "Authorizer", "requestResource": {_KEY: "ResourceCheck", **target}}


def declare(add: Callable[..., None], types: Any) -> None:
    """Declare the functions of the chain with `add` of `functions.py`."""
    text, boolean = types.STRING, types.BOOL
    own = types.Map(text, types.DYN)
    add("path", own, [own, text], _path)
    add("group", own, [own, text], lambda value, group: _next(value, "Authorizer", "GroupCheck", group=group))
    add("serviceAccount", own, [own, text, text], _service_account)
    add("resource", own, [own, text], _resource)
    for field in ("subresource", "namespace", "name"):
        add(field, own, [own, text], _narrowing(field))
    for selector in ("fieldSelector", "labelSelector"):
        add(selector, own, [own, text], lambda value, _: _next(value, "ResourceCheck", "ResourceCheck"))
    add("check", own, [own, text], _check)
    add("allowed", boolean, [own], lambda value: _decision(value)["allowed"])
    add("reason", text, [own], lambda value: _decision(value)["reason"])
    add("errored", boolean, [own], lambda value: bool(_decision(value)["error"]))
    add("error", text, [own], lambda value: _decision(value)["error"])


def _next(value: Mapping[str, Any], expected: str, becomes: str, **fields: Any) -> dict[str, Any]:
    if value.get(_KEY) != expected:
        raise ValueError("no such overload")
    kept = {key: field for key, field in value.items() if key != "requestResource"}
    return {**kept, **fields, _KEY: becomes}


def _narrowing(field: str) -> Callable[[Mapping[str, Any], str], dict[str, Any]]:
    return lambda value, text: _next(value, "ResourceCheck", "ResourceCheck", **{field: text})


def _path(value: Mapping[str, Any], path: str) -> dict[str, Any]:
    if not path.strip():
        raise ValueError("path must not be empty")
    return _next(value, "Authorizer", "PathCheck", path=path)


def _resource(value: Mapping[str, Any], resource: str) -> dict[str, Any]:
    if not resource.strip():
        raise ValueError("resource must not be empty")
    return _next(value, "GroupCheck", "ResourceCheck", resource=resource)


def _service_account(value: Mapping[str, Any], namespace: str, name: str) -> dict[str, Any]:
    if nameformats.dns1123_subdomain(name):
        raise ValueError("Invalid service account name")
    if nameformats.dns1123_label(namespace):
        raise ValueError("Invalid service account namespace")
    return _next(value, "Authorizer", "Authorizer", service_account=[namespace, name])


def _check(value: Mapping[str, Any], verb: str) -> dict[str, Any]:
    if value.get(_KEY) not in {"PathCheck", "ResourceCheck"}:
        raise ValueError("no such overload")
    decide = _decide.get()
    if decide is None:
        decision = AccessDecision(is_allowed=False, error="no authorizer is available")
    else:
        fields = {field: value[field] for field in AccessCheck._fields if field in value}
        namespace, name = value.get("service_account", ("", ""))
        decision = decide(AccessCheck(**{**fields, "verb": verb, "service_account": (namespace, name)}))
    return {_KEY: "Decision", "allowed": decision.is_allowed, "reason": decision.reason, "error": decision.error}


def _decision(value: Mapping[str, Any]) -> Mapping[str, Any]:
    if value.get(_KEY) != "Decision":
        raise ValueError("no such overload")
    return value
