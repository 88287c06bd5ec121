"""RBAC policy rules and how they match a request. Pure.

A rule allows verbs on resources of API groups, optionally on named objects only, or verbs on URL paths. `*` stands for
everything; `*/status` for a subresource of every resource; a path may end in `*`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from federation.server.identity import Attributes


class Rule(NamedTuple):
    """One PolicyRule; hashable, so that equal rules can be shown once."""

    verbs: frozenset[str]
    groups: frozenset[str]
    resources: frozenset[str]
    names: frozenset[str]
    paths: tuple[str, ...]

    @classmethod
    def everything(cls) -> "Rule":
        """Return the rule that allows every verb on every resource."""
        star = frozenset("*")
        return cls(star, star, star, frozenset(), ())

    @classmethod
    def everywhere(cls) -> "Rule":
        """Return the rule that allows every verb on every path."""
        return cls(frozenset("*"), frozenset(), frozenset(), frozenset(), ("*",))

    def allows(self, attributes: Attributes) -> bool:
        """Return whether the rule covers the request."""
        if attributes.verb not in self.verbs and "*" not in self.verbs:
            return False
        if attributes.path:
            return self._covers_path(attributes.path)
        if attributes.group not in self.groups and "*" not in self.groups:
            return False
        if not self._covers_resource(attributes.resource, attributes.subresource):
            return False
        return not self.names or attributes.name in self.names

    def covers(self, other: "Rule") -> bool:
        """Return whether everything that `other` allows is allowed by this rule (privilege escalation check).

        Asked for rules broken down to one verb, group, resource, name or path each: see `split`.
        """
        verb = next(iter(other.verbs))
        if verb not in self.verbs and "*" not in self.verbs:
            return False
        if other.paths:
            return self._covers_path(other.paths[0])
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

    def split(self) -> list["Rule"]:
        """Return the rule as rules of one verb, group, resource (or path) and name each."""
        none: frozenset[str] = frozenset()
        parts = [Rule(frozenset({verb}), none, none, none, (path,)) for verb in self.verbs for path in self.paths]
        for verb in self.verbs:
            for group in self.groups:
                for resource in self.resources:
                    for name in self.names or ("",):
                        names = frozenset({name}) if name else none
                        parts.append(Rule(frozenset({verb}), frozenset({group}), frozenset({resource}), names, ()))
        return parts

    def to_object(self) -> dict[str, Any]:
        """Return the rule as Kubernetes writes it."""
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

    def _covers_path(self, path: str) -> bool:
        return any(path == held or (held.endswith("*") and path.startswith(held[:-1])) for held in self.paths)

    def _covers_resource(self, resource: str, subresource: str) -> bool:
        if "*" in self.resources:
            return True
        if not subresource:
            return resource in self.resources
        return f"{resource}/{subresource}" in self.resources or f"*/{subresource}" in self.resources


def to_rules(rules: Any) -> tuple[Rule, ...]:
    """Return a role's rules; a rule with both resources and paths becomes two. What has the wrong type is left out."""
    found: list[Rule] = []
    for rule in rules if isinstance(rules, list) else ():
        if not isinstance(rule, dict):
            continue
        verbs, resources = _texts(rule, "verbs"), _texts(rule, "resources")
        if paths := _texts(rule, "nonResourceURLs"):
            found.append(Rule(verbs, frozenset(), frozenset(), frozenset(), tuple(sorted(paths))))
        if resources:
            found.append(Rule(verbs, _texts(rule, "apiGroups"), resources, _texts(rule, "resourceNames"), ()))
    return tuple(found)


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
