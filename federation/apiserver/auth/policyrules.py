"""RBAC policy rules: matching a request, and comparing rules for the escalation check. Pure.

A rule allows verbs on resources of API groups, optionally of named objects only, or verbs on URL paths. `*` matches
everything, `*/status` a subresource of every resource, and a path may end in `*`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from federation.apiserver.auth.identity import Attributes


class PolicyRule(NamedTuple):
    """One rule of a role; hashable, so that duplicates can be dropped."""

    verbs: frozenset[str]
    groups: frozenset[str]
    resources: frozenset[str]
    names: frozenset[str]
    paths: tuple[str, ...]

    @classmethod
    def all_resources(cls) -> "PolicyRule":
        """Return the rule that allows every verb on every resource."""
        star = frozenset("*")
        return cls(star, star, star, frozenset(), ())

    @classmethod
    def all_paths(cls) -> "PolicyRule":
        """Return the rule that allows every verb on every path."""
        return cls(frozenset("*"), frozenset(), frozenset(), frozenset(), ("*",))

    def allows(self, attributes: Attributes) -> bool:
        """Return whether the rule covers the request."""
        if attributes.verb not in self.verbs and "*" not in self.verbs:
            return False
        if attributes.path:
            return path_matches(self.paths, attributes.path)
        if attributes.group not in self.groups and "*" not in self.groups:
            return False
        if not self._covers_resource(attributes.resource, attributes.subresource):
            return False
        return not self.names or attributes.name in self.names

    def covers(self, other: "PolicyRule") -> bool:
        """Return whether this rule allows everything that `other` allows. `other` has been split: see `split`."""
        verb = next(iter(other.verbs))
        if verb not in self.verbs and "*" not in self.verbs:
            return False
        if other.paths:
            return path_matches(self.paths, other.paths[0])
        group, resource = next(iter(other.groups)), next(iter(other.resources))
        if group not in self.groups and "*" not in self.groups:
            return False
        plain, _, subresource = resource.partition("/")
        if not self._covers_resource(plain, subresource):
            return False
        return not self.names or bool(other.names and other.names <= self.names)

    @property
    def size(self) -> int:
        """How many rules `split` returns."""
        return len(self.verbs) * (len(self.paths) + len(self.groups) * len(self.resources) * max(1, len(self.names)))

    def split(self) -> list["PolicyRule"]:
        """Return equivalent rules with one verb, group, resource (or path) and name each."""
        empty: frozenset[str] = frozenset()
        parts = [
            PolicyRule(frozenset({verb}), empty, empty, empty, (path,)) for verb in self.verbs for path in self.paths
        ]
        for verb in self.verbs:
            for group in self.groups:
                for resource in self.resources:
                    for name in self.names or ("",):
                        names = frozenset({name}) if name else empty
                        parts.append(
                            PolicyRule(frozenset({verb}), frozenset({group}), frozenset({resource}), names, ())
                        )
        return parts

    def to_object(self) -> dict[str, Any]:
        """Return the rule in its wire form."""
        if self.paths:
            return {"verbs": sorted(self.verbs), "nonResourceURLs": list(self.paths)}
        shown: dict[str, Any] = {
            "verbs": sorted(self.verbs),
            "apiGroups": sorted(self.groups),
            "resources": sorted(self.resources),
        }
        if self.names:
            shown["resourceNames"] = sorted(self.names)
        return shown

    def _covers_resource(self, resource: str, subresource: str) -> bool:
        if "*" in self.resources:
            return True
        if not subresource:
            return resource in self.resources
        return f"{resource}/{subresource}" in self.resources or f"*/{subresource}" in self.resources


def to_rules(rules: Any) -> tuple[PolicyRule, ...]:
    """Return a role's rules. One with both resources and paths becomes two; values of a wrong type are ignored."""
    found: list[PolicyRule] = []
    for rule in rules if isinstance(rules, list) else ():
        if not isinstance(rule, dict):
            continue
        verbs, resources = _texts(rule, "verbs"), _texts(rule, "resources")
        if paths := _texts(rule, "nonResourceURLs"):
            found.append(PolicyRule(verbs, frozenset(), frozenset(), frozenset(), tuple(sorted(paths))))
        if resources:
            found.append(PolicyRule(verbs, _texts(rule, "apiGroups"), resources, _texts(rule, "resourceNames"), ()))
    return tuple(found)


def path_matches(patterns: Iterable[str], path: str) -> bool:
    """Return whether a URL path equals one of the patterns, or starts with one that ends in `*`."""
    return any(path == held or (held.endswith("*") and path.startswith(held[:-1])) for held in patterns)


def aggregate_matches(selectors: Sequence[Mapping[str, Any]], labels: Mapping[str, str]) -> bool:
    """Return whether a ClusterRole's labels satisfy one of an aggregation rule's label selectors."""
    return any(_selects(selector, labels) for selector in selectors)


def _texts(rule: Mapping[str, Any], name: str) -> frozenset[str]:
    values = rule.get(name)
    return frozenset(value for value in values if isinstance(value, str)) if isinstance(values, list) else frozenset()


def _selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    for term in selector.get("matchExpressions") or ():
        value, wanted = labels.get(str(term.get("key"))), term.get("values") or ()
        matched = {
            "In": value in wanted,
            "NotIn": value not in wanted,
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }.get(str(term.get("operator")), False)
        if not matched:
            return False
    return True
