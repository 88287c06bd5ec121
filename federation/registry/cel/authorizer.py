"""The `authorizer` variable of admission expressions: who may do what, asked from inside CEL.

`authorizer.group("apps").resource("deployments").namespace("prod").check("create").allowed()` is a chain of mappings
that ends in a question. The one who answers is known only while a request is evaluated, so it is kept in a context
variable that `answering` sets around an evaluation. Roles are not known here; `server/authz.py` is who answers.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from federation.registry.validation import names

_KEY = "kubernetes.authz"
"""The entry that names the type of a value in the chain."""


class Question(NamedTuple):
    """May somebody do `verb` on a resource, or on a `path`? An `account` of ("", "") is who sent the request."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    account: tuple[str, str] = ("", "")


class Verdict(NamedTuple):
    """The answer; `error` says why there is none."""

    is_allowed: bool
    reason: str = ""
    error: str = ""


Judge = Callable[[Question], Verdict]

_judge: ContextVar[Judge | None] = ContextVar("judge", default=None)


@contextmanager
def answering(judge: Judge | None) -> Iterator[None]:
    """Let `judge` answer the questions of expressions that are evaluated in this context."""
    token = _judge.set(judge)
    try:
        yield
    finally:
        _judge.reset(token)


def authorizer(*, group: str, resource: str, subresource: str, namespace: str, name: str) -> dict[str, Any]:
    """Return the value of `authorizer`, with the request's own resource as `authorizer.requestResource`."""
    asked = {"group": group, "resource": resource, "subresource": subresource, "namespace": namespace, "name": name}
    return {_KEY: "Authorizer", "requestResource": {_KEY: "ResourceCheck", **asked}}


def declare(add: Callable[..., None], types: Any) -> None:
    """Declare the functions of the chain; `add` as in `functions.py`."""
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
    if names.dns1123_subdomain(name):
        raise ValueError("Invalid service account name")
    if names.dns1123_label(namespace):
        raise ValueError("Invalid service account namespace")
    return _next(value, "Authorizer", "Authorizer", account=[namespace, name])


def _check(value: Mapping[str, Any], verb: str) -> dict[str, Any]:
    if value.get(_KEY) not in {"PathCheck", "ResourceCheck"}:
        raise ValueError("no such overload")
    judge = _judge.get()
    if judge is None:
        verdict = Verdict(is_allowed=False, error="nobody decides about permissions here")
    else:
        asked = {field: value[field] for field in Question._fields if field in value and field != "account"}
        namespace, name = value.get("account", ("", ""))
        verdict = judge(Question(**{**asked, "verb": verb, "account": (namespace, name)}))
    return {_KEY: "Decision", "allowed": verdict.is_allowed, "reason": verdict.reason, "error": verdict.error}


def _decision(value: Mapping[str, Any]) -> Mapping[str, Any]:
    if value.get(_KEY) != "Decision":
        raise ValueError("no such overload")
    return value
