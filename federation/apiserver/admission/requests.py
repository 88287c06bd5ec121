"""The admission request of one write, and the rules that match requests. Pure.

An `AdmissionRequest` is built once per write, only while admission is configured. A `Rule` is one entry of `rules` or
`matchConstraints.resourceRules`. Objects are read, never changed. Read `webhooks.py` next.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from federation.apimachinery.resources import Object, Resource

CREATE, UPDATE, DELETE, CONNECT = "CREATE", "UPDATE", "DELETE", "CONNECT"


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """User, operation and object; `obj` is None for a deletion, `old` for a creation."""

    uid: str
    operation: str
    resource: Resource
    versions: tuple[str, ...]
    """All served versions of the resource, the request's own first."""
    subresource: str
    namespace: str
    name: str
    user: Mapping[str, Any]
    dry_run: bool
    obj: Object | None
    old: Object | None
    namespace_labels: Mapping[str, str] | None
    """Labels of the object's namespace (its own for a Namespace); None for other cluster-scoped objects."""
    namespace_object: bytes = b""
    """The stored bytes of the object's namespace; empty for cluster-scoped objects."""
    kind: tuple[str, str, str] | None = None
    """Group, version and kind of an object of another kind than the resource, for example a Scale or an Eviction."""
    warnings: list[str] = field(default_factory=list, compare=False)
    """The Warning headers of the response; a plugin may add some."""
    convert: Callable[[Object, str], Object] | None = None
    """Converts an object to a version of its kind; None if versions differ only in apiVersion."""

    @property
    def shown_name(self) -> str:
        """The object's name in errors, or what it is generated from."""
        metadata = (self.obj or self.old or {}).get("metadata") or {}
        return self.name or metadata.get("name") or metadata.get("generateName") or "Unknown"

    @property
    def changes_spec(self) -> bool:
        """Whether it creates the object itself, or updates its spec."""
        obj, old = self.obj or {}, self.old
        is_write = not self.subresource and self.operation in (CREATE, UPDATE)
        return is_write and (old is None or old.get("spec") != obj.get("spec"))

    def to_version(self, version: str) -> Object | None:
        """Return the object in a version of its resource."""
        return self._in_version(self.obj, version)

    def to_review(self, version: str) -> Object:
        """Return the `request` of an admission.k8s.io/v1 AdmissionReview, with objects in `version`."""
        resource = self.resource
        kind = {"group": resource.group, "version": version, "kind": resource.kind}
        plural = {"group": resource.group, "version": version, "resource": resource.plural}
        request: Object = {
            "uid": self.uid,
            "kind": self._own_kind() or kind,
            "resource": plural,
            "requestKind": self._own_kind() or {**kind, "version": resource.version},
            "requestResource": {**plural, "version": resource.version},
            "name": self.name,
            "operation": self.operation,
            "userInfo": dict(self.user),
            "object": self._in_version(self.obj, version),
            "oldObject": self._in_version(self.old, version),
            "dryRun": self.dry_run,
            "options": {"kind": f"{self.operation.capitalize()}Options", "apiVersion": "meta.k8s.io/v1"},
        }
        if self.operation == CONNECT:
            request["options"] = None
        elif self.dry_run:
            request["options"]["dryRun"] = ["All"]
        if self.subresource:
            request["subResource"] = request["requestSubResource"] = self.subresource
        if self.namespace:
            request["namespace"] = self.namespace
        return request

    def _own_kind(self) -> dict[str, str]:
        return dict(zip(("group", "version", "kind"), self.kind, strict=True)) if self.kind else {}

    def from_version(self, obj: Object, version: str) -> Object:
        """Return an object that was shown in `version` in the version of the request."""
        return self._converted(obj, version, self.resource.version)

    def _in_version(self, obj: Object | None, version: str) -> Object | None:
        return None if obj is None else self._converted(obj, self.resource.version, version)

    def _converted(self, obj: Object, version: str, wanted: str) -> Object:
        if self.kind:
            return obj
        if version != wanted and self.convert is not None:
            return self.convert(obj, wanted)
        group = self.resource.group
        api_version = f"{group}/{wanted}" if group else wanted
        return obj if obj.get("apiVersion") == api_version else {**obj, "apiVersion": api_version}


@dataclass(frozen=True, slots=True)
class Rule:
    """Operations on resources. "*" stands for all; resources are `pods`, `pods/status`, `pods/*`, `*/scale`, `*/*`."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: frozenset[str]
    scope: str = "*"
    names: frozenset[str] = frozenset()

    def matched_version(self, request: AdmissionRequest, *, is_exact: bool) -> str:
        """Return the version that the rule matches the request in, "" when it does not match."""
        resource = request.resource
        if not _has(self.operations, request.operation) or not _has(self.groups, resource.group):
            return ""
        if self.scope != "*" and (self.scope == "Namespaced") is not resource.namespaced:
            return ""
        if not self._has_resource(resource.plural, request.subresource):
            return ""
        if self.names and request.name not in self.names:
            return ""
        versions = request.versions[:1] if is_exact else request.versions
        return next((version for version in versions if _has(self.versions, version)), "")

    def _has_resource(self, plural: str, subresource: str) -> bool:
        if not subresource:
            return bool(self.resources & {"*", "*/*", plural})
        return bool(self.resources & {"*/*", f"{plural}/*", f"*/{subresource}", f"{plural}/{subresource}"})


def is_object(patched: Any, before: Mapping[str, Any]) -> bool:
    """Return whether a patch left an object. The options of a connection have no metadata."""
    return isinstance(patched, dict) and ("metadata" not in before or isinstance(patched.get("metadata"), dict))


def parse_rules(raw: Iterable[Mapping[str, Any]] | None) -> tuple[Rule, ...]:
    """Return the rules of a configuration object."""
    return tuple(
        Rule(
            frozenset(rule.get("operations") or ()),
            frozenset(rule.get("apiGroups") or ()),
            frozenset(rule.get("apiVersions") or ()),
            frozenset(rule.get("resources") or ()),
            rule.get("scope") or "*",
            frozenset(rule.get("resourceNames") or ()),
        )
        for rule in raw or ()
    )


def find_version(rules: Sequence[Rule], request: AdmissionRequest, *, is_exact: bool) -> str:
    """Return the version of the first rule that matches the request, "" when none does."""
    for rule in rules:
        if version := rule.matched_version(request, is_exact=is_exact):
            return version
    return ""


def _has(listed: frozenset[str], value: str) -> bool:
    return "*" in listed or value in listed
