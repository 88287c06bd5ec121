"""The audit policy (`audit.k8s.io/v1` Policy): which requests are recorded, and at which level. Pure but for `load`.

The first matching rule decides; without one nothing is recorded. Matching is kube-apiserver's, including `*/status` and
`pods/*`. Unknown fields and values are errors, because a misread rule would record too little.
"""

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.yamltext import load_yaml
from federation.apiserver.auth.identity import Attributes, User
from federation.apiserver.auth.policyrules import path_matches

API_VERSION = "audit.k8s.io/v1"
Texts = frozenset[str]


class Level(IntEnum):
    """How much is recorded; the wire form is `name`."""

    None_ = 0
    Metadata = 1
    Request = 2
    RequestResponse = 3


class Stage(StrEnum):
    """Stages of a request that produce an event."""

    RECEIVED = "RequestReceived"
    STARTED = "ResponseStarted"
    COMPLETE = "ResponseComplete"
    PANIC = "Panic"


class Decision(NamedTuple):
    """How to record one request."""

    level: Level
    omitted: frozenset[str] = frozenset()
    includes_managed_fields: bool = True


NOTHING = Decision(Level.None_)


class GroupResources(NamedTuple):
    """A `resources` entry of a rule; empty sets match everything."""

    group: str
    resources: Texts
    names: Texts

    def matches(self, attributes: Attributes) -> bool:
        """Return whether the request is for one of these resources."""
        if attributes.group != self.group or (self.resources and self.names and attributes.name not in self.names):
            return False
        if not self.resources or "*" in self.resources:
            return True
        if not attributes.subresource:
            return attributes.resource in self.resources or f"{attributes.resource}/*" in self.resources
        accepted = (
            f"{attributes.resource}/{attributes.subresource}",
            f"*/{attributes.subresource}",
            f"{attributes.resource}/*",
        )
        return not self.resources.isdisjoint(accepted)


class Rule(NamedTuple):
    """One rule; empty sets match everything."""

    decision: Decision
    users: Texts
    groups: Texts
    verbs: Texts
    namespaces: Texts
    resources: tuple[GroupResources, ...]
    paths: tuple[str, ...]

    def matches(self, user: User, attributes: Attributes) -> bool:
        """Return whether the rule matches this request."""
        if self.users and user.name not in self.users:
            return False
        if self.groups and self.groups.isdisjoint(user.groups):
            return False
        if self.verbs and attributes.verb not in self.verbs:
            return False
        if self.namespaces or self.resources:
            return self._matches_resource(attributes)
        return not self.paths or (bool(attributes.path) and path_matches(self.paths, attributes.path))

    def _matches_resource(self, attributes: Attributes) -> bool:
        if attributes.path or (self.namespaces and attributes.namespace not in self.namespaces):
            return False
        return not self.resources or any(entry.matches(attributes) for entry in self.resources)


class Policy(NamedTuple):
    """Rules in order of precedence."""

    rules: tuple[Rule, ...]

    def decide(self, user: User, attributes: Attributes) -> Decision:
        """Return how to record a request."""
        for rule in self.rules:
            if rule.matches(user, attributes):
                return rule.decision
        return NOTHING


def load(path: Path) -> Policy:
    """Return the policy in a YAML or JSON file; ConfigurationError names an invalid field and the reason."""
    try:
        value = load_yaml(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"audit-policy-file {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"audit-policy-file {path}: not YAML: {error}") from error
    try:
        return to_policy(value)
    except ConfigurationError as error:
        raise ConfigurationError(f"audit-policy-file {path}: {error}") from error


def to_policy(value: Any) -> Policy:
    """Return the policy of a manifest; ConfigurationError names an invalid field and the reason."""
    if not isinstance(value, dict) or value.get("apiVersion") != API_VERSION or value.get("kind") != "Policy":
        raise ConfigurationError(f"not a Policy: give apiVersion: {API_VERSION} and kind: Policy")
    _check_fields(value, "", "apiVersion", "kind", "metadata", "rules", "omitStages", "omitManagedFields")
    rules = value.get("rules")
    if not isinstance(rules, list) or not rules:
        raise ConfigurationError("rules: give at least one")
    stages = _stages(value, "")
    omits_managed_fields = _flag(value, "", default=False)
    return Policy(
        tuple(_to_rule(rule, f"rules[{index}]", stages, omits_managed_fields) for index, rule in enumerate(rules))
    )


def _to_rule(value: Any, at: str, stages: frozenset[str], omits_managed_fields: bool) -> Rule:
    if not isinstance(value, dict):
        raise ConfigurationError(f"{at}: must be an object")
    known = ("level", "users", "userGroups", "verbs", "resources", "namespaces", "nonResourceURLs")
    _check_fields(value, f"{at}.", *known, "omitStages", "omitManagedFields")
    levels = {level.name.rstrip("_"): level for level in Level}
    if value.get("level") not in levels:
        raise ConfigurationError(f"{at}.level {value.get('level')!r}: choose {', '.join(levels)}")
    paths = tuple(sorted(_texts(value, "nonResourceURLs", at)))
    for path in paths:
        if path != "*" and (not path.startswith("/") or "*" in path[:-1]):
            raise ConfigurationError(f"{at}.nonResourceURLs {path!r}: must begin with / and may end in *")
    resources = value.get("resources") or []
    if not isinstance(resources, list):
        raise ConfigurationError(f"{at}.resources: must be a list")
    if paths and (resources or value.get("namespaces")):
        raise ConfigurationError(f"{at}: resources and namespaces exclude nonResourceURLs; make two rules of it")
    omits_managed_fields = _flag(value, f"{at}.", default=omits_managed_fields)
    return Rule(
        Decision(levels[value["level"]], stages | _stages(value, f"{at}."), not omits_managed_fields),
        _texts(value, "users", at),
        _texts(value, "userGroups", at),
        _texts(value, "verbs", at),
        _texts(value, "namespaces", at),
        tuple(_to_resources(entry, f"{at}.resources[{index}]") for index, entry in enumerate(resources)),
        paths,
    )


def _to_resources(value: Any, at: str) -> GroupResources:
    if not isinstance(value, dict):
        raise ConfigurationError(f"{at}: must be an object")
    _check_fields(value, f"{at}.", "group", "resources", "resourceNames")
    group, resources, names = value.get("group") or "", _texts(value, "resources", at), value.get("resourceNames")
    if not isinstance(group, str):
        raise ConfigurationError(f"{at}.group: must be a text")
    if names and not resources:
        raise ConfigurationError(f"{at}.resourceNames: needs resources")
    return GroupResources(group, resources, _texts(value, "resourceNames", at))


def _check_fields(value: Mapping[str, Any], at: str, *known: str) -> None:
    for name in value:
        if name not in known:
            raise ConfigurationError(f"{at}{name}: unknown field; known are {', '.join(known)}")


def _texts(value: Mapping[str, Any], name: str, at: str) -> Texts:
    texts = value.get(name) or []
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ConfigurationError(f"{at}.{name}: must be a list of texts")
    return frozenset(texts)


def _stages(value: Mapping[str, Any], at: str) -> frozenset[str]:
    stages = _texts(value, "omitStages", at.rstrip("."))
    if unknown := stages - frozenset(Stage):
        raise ConfigurationError(f"{at}omitStages {sorted(unknown)}: choose {', '.join(Stage)}")
    return stages


def _flag(value: Mapping[str, Any], at: str, *, default: bool) -> bool:
    flag = value.get("omitManagedFields")
    if flag is not None and not isinstance(flag, bool):
        raise ConfigurationError(f"{at}omitManagedFields: must be true or false")
    return default if flag is None else flag
