"""FlowSchemas and PriorityLevelConfigurations in the form in which requests are classified. Pure.

`to_configuration` compiles the objects; `Configuration.classify` returns the first matching schema by precedence.
Schemas without their priority level are left out. `flowcontrol.py` caches the result for each kind of request.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from federation.apimachinery.resources import Object
from federation.apiserver.auth.identity import SERVICE_ACCOUNT_PREFIX, Attributes, User
from federation.apiserver.semantics.validation.flowcontrolvalidation import CATCH_ALL, MANDATORY

_ALL: Final = "*"
Rule = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PriorityLevel:
    """A priority level. Requests of an exempt one need no seat."""

    name: str
    uid: str
    is_exempt: bool
    shares: int
    """Its part of all seats, relative to the parts of other levels."""
    queues: bool
    """Whether a request without a seat queues. Otherwise it is rejected."""


@dataclass(frozen=True, slots=True)
class FlowSchema:
    """A flow schema whose priority level exists."""

    name: str
    uid: str
    level: PriorityLevel
    distinguisher: str
    """`ByUser`, `ByNamespace`, or "" when all requests of the schema are one flow."""
    rules: Sequence[Rule]

    def matches(self, user: User, attributes: Attributes) -> bool:
        """Return whether one of the rules matches the request."""
        return any(
            any(_is_subject(subject, user) for subject in rule.get("subjects") or ()) and _covers(rule, attributes)
            for rule in self.rules
        )

    def flow_of(self, user: User, attributes: Attributes) -> str:
        """Return which of the schema's flows the request belongs to."""
        match self.distinguisher:
            case "ByUser":
                return user.name
            case "ByNamespace":
                return attributes.namespace
            case _:
                return ""


@dataclass(frozen=True, slots=True)
class Configuration:
    """All levels by name, and all schemas in the order in which they are tried."""

    levels: Mapping[str, PriorityLevel]
    schemas: Sequence[FlowSchema]

    def classify(self, user: User, attributes: Attributes) -> FlowSchema:
        """Return the first schema that matches; the last one is `catch-all`, for whatever no schema matches."""
        return next((schema for schema in self.schemas if schema.matches(user, attributes)), self.schemas[-1])


def to_configuration(schemas: Iterable[Object], levels: Iterable[Object]) -> Configuration:
    """Return what the objects configure. Mandatory objects that are missing are added."""
    compiled = {level.name: level for level in map(_to_level, _completed("PriorityLevelConfiguration", levels))}
    ordered = sorted(_completed("FlowSchema", schemas), key=_order)
    found = [(obj, compiled.get(obj["spec"]["priorityLevelConfiguration"]["name"])) for obj in ordered]
    return Configuration(compiled, [_to_schema(obj, level) for obj, level in found if level is not None])


def _completed(kind: str, objects: Iterable[Object]) -> list[Object]:
    found = list(objects)
    names = {obj["metadata"]["name"] for obj in found}
    missing = [(name, spec) for name, spec in MANDATORY[kind].items() if name not in names]
    return [*found, *({"metadata": {"name": name}, "spec": spec} for name, spec in missing)]


def _order(obj: Object) -> tuple[bool, int, str]:
    name = obj["metadata"]["name"]
    return name == CATCH_ALL, obj["spec"]["matchingPrecedence"], name


def _to_level(obj: Object) -> PriorityLevel:
    metadata, spec = obj["metadata"], obj["spec"]
    limited = spec.get("limited") or {}
    response = (limited.get("limitResponse") or {}).get("type")
    shares = limited.get("nominalConcurrencyShares") or 0
    return PriorityLevel(
        metadata["name"], metadata.get("uid", ""), spec["type"] == "Exempt", shares, response == "Queue"
    )


def _to_schema(obj: Object, level: PriorityLevel) -> FlowSchema:
    metadata, spec = obj["metadata"], obj["spec"]
    method = (spec.get("distinguisherMethod") or {}).get("type") or ""
    return FlowSchema(metadata["name"], metadata.get("uid", ""), level, method, tuple(spec.get("rules") or ()))


def _is_subject(subject: Mapping[str, Any], user: User) -> bool:
    match subject["kind"]:
        case "User":
            return subject["user"]["name"] in (_ALL, user.name)
        case "Group":
            name = subject["group"]["name"]
            return name == _ALL or name in user.groups
        case _:
            account = subject["serviceAccount"]
            prefix = f"{SERVICE_ACCOUNT_PREFIX}{account['namespace']}:"
            return user.name.startswith(prefix) if account["name"] == _ALL else user.name == prefix + account["name"]


def _covers(rule: Rule, attributes: Attributes) -> bool:
    if attributes.resource:
        return any(_covers_resource(entry, attributes) for entry in rule.get("resourceRules") or ())
    return any(
        _has(entry["verbs"], attributes.verb)
        and any(_covers_path(url, attributes.path) for url in entry["nonResourceURLs"])
        for entry in rule.get("nonResourceRules") or ()
    )


def _covers_resource(entry: Rule, attributes: Attributes) -> bool:
    resource = f"{attributes.resource}/{attributes.subresource}" if attributes.subresource else attributes.resource
    if not (
        _has(entry["verbs"], attributes.verb)
        and _has(entry["resources"], resource)
        and _has(entry["apiGroups"], attributes.group)
    ):
        return False
    if not attributes.namespace:
        return bool(entry.get("clusterScope"))
    return _has(entry.get("namespaces") or (), attributes.namespace)


def _covers_path(url: str, path: str) -> bool:
    if url in (_ALL, path):
        return True
    prefix = url.removesuffix("*")
    return path.startswith(prefix if prefix.endswith("/") else f"{prefix}/")


def _has(listed: Sequence[str], value: str) -> bool:
    return _ALL in listed or value in listed
