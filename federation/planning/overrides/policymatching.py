"""Find the override policies of an object: by label, or by the policy's `resourceSelectors`.

At each level (cluster-wide, then the object's namespace) a label takes precedence: only the policy that it names
applies, and it must exist. Without a label every policy of the level that selects the object applies, in the order of
their names. `Bindings` keeps all policies compiled, so that a match costs a few look-ups. It lives as long as its
controller.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from federation.api import names
from federation.api.selectors import ResourceSelectors, compile_resource_selectors
from federation.apimachinery.selectors import Labels, SelectorError
from federation.planning.overrides.errors import OverrideError
from federation.planning.overrides.policies import Policy, PolicyReference, compile_policy, labelled_policies

_RBAC = "rbac.authorization.k8s.io/"
_QUOTAS = frozenset((("v1", "ResourceQuota"), ("v1", "LimitRange")))
_GUARDED = "{kind} is overridden by a ClusterOverridePolicy only"


@dataclass(frozen=True, slots=True)
class Subject:
    """The properties of an object that policies match; `namespace` is "" for cluster-scoped objects."""

    api_version: str
    kind: str
    namespace: str
    name: str
    labels: Labels
    """The object's labels, including policy labels."""


class PolicyNotFoundError(OverrideError):
    """A policy label with the name of a missing policy."""


@dataclass(frozen=True, slots=True)
class _Bound:
    policy: Policy
    selectors: ResourceSelectors


class Bindings:
    """All override policies, and the match with objects."""

    def __init__(self) -> None:
        self._policies: dict[PolicyReference, _Bound] = {}
        self._selecting: dict[str, dict[PolicyReference, ResourceSelectors]] = {}

    def put(self, policy: Mapping[str, Any]) -> str:
        """Add or update the policy. Return the error of its selectors, "" when they are valid.

        A policy with malformed selectors selects nothing, but labels may still name it.
        """
        reference = _reference(policy)
        error = ""
        try:
            selectors = compile_resource_selectors((policy.get("spec") or {}).get("resourceSelectors"))
        except SelectorError as failure:
            selectors, error = ResourceSelectors(), f"spec.resourceSelectors: {failure}"
        self.drop(policy)
        self._policies[reference] = _Bound(compile_policy(policy), selectors)
        if reference.namespace and not error:
            error = _guarded_selectors(policy)
        if selectors.entries:
            self._selecting.setdefault(reference.namespace, {})[reference] = selectors
        return error

    def drop(self, policy: Mapping[str, Any]) -> None:
        """Remove the policy."""
        reference = _reference(policy)
        self._policies.pop(reference, None)
        self._selecting.get(reference.namespace, {}).pop(reference, None)

    def resolve(self, subject: Subject) -> list[Policy]:
        """Return the policies for the object, cluster-wide ones first.

        OverrideError when a policy label is empty, PolicyNotFoundError when it names no policy.
        """
        return [self._get(reference) for reference in self.references(subject)]

    def references(self, subject: Subject) -> list[PolicyReference]:
        """Return the references of the policies for the object, existing or not; OverrideError for an empty label."""
        cluster_wide, namespaced = labelled_policies(subject.labels, subject.namespace)
        references = [cluster_wide] if cluster_wide else self._selected("", subject)
        if subject.namespace and _is_guarded(subject.api_version, subject.kind):
            if namespaced:
                raise OverrideError(f"{namespaced.display}: {_GUARDED.format(kind=subject.kind)}")
        elif subject.namespace:
            references += [namespaced] if namespaced else self._selected(subject.namespace, subject)
        return references

    def may_apply(self, subject: Subject) -> bool:
        """Return True if a policy applies to the object, or its labels are invalid."""
        try:
            return bool(self.resolve(subject))
        except OverrideError:
            return True

    def _selected(self, namespace: str, subject: Subject) -> list[PolicyReference]:
        selecting = self._selecting.get(namespace)
        if not selecting:
            return []
        return sorted(
            (
                reference
                for reference, selectors in selecting.items()
                if selectors.matches(subject.api_version, subject.kind, subject.name, subject.labels)
            ),
            key=lambda reference: reference.name,
        )

    def _get(self, reference: PolicyReference) -> Policy:
        bound = self._policies.get(reference)
        if bound is None:
            raise PolicyNotFoundError(f"{reference.display} does not exist")
        return bound.policy


def _reference(policy: Mapping[str, Any]) -> PolicyReference:
    metadata = policy["metadata"]
    return PolicyReference(metadata.get("namespace", ""), metadata["name"])


def _is_guarded(api_version: str, kind: str) -> bool:
    """Return whether only cluster-wide policies override the kind.

    The role `edit` writes OverridePolicies, but neither RBAC objects nor quotas. Overriding them would give a user
    rights and capacity in members that the host refuses.
    """
    return api_version.startswith(_RBAC) or (api_version, kind) in _QUOTAS


def _guarded_selectors(policy: Mapping[str, Any]) -> str:
    """Return what is wrong with the selectors of a namespaced policy that name kinds it cannot override."""
    for index, entry in enumerate((policy.get("spec") or {}).get("resourceSelectors") or ()):
        kind = str(entry.get("kind", ""))
        if _is_guarded(str(entry.get("apiVersion", "")), kind):
            return f"spec.resourceSelectors[{index}].kind: {_GUARDED.format(kind=kind)}"
    return ""


def subject_of_source(source: Mapping[str, Any]) -> Subject:
    """Return the subject of a source object."""
    metadata = source["metadata"]
    return Subject(
        source.get("apiVersion", ""),
        source.get("kind", ""),
        metadata.get("namespace", ""),
        metadata["name"],
        metadata.get("labels") or {},
    )


def subject_of_federated(federated: Mapping[str, Any]) -> Subject:
    """Return the subject of a federated object's source."""
    metadata = federated["metadata"]
    template = (federated.get("spec") or {}).get("template") or {}
    inner = template.get("metadata") or {}
    return Subject(
        template.get("apiVersion", ""),
        template.get("kind", ""),
        metadata.get("namespace", ""),
        inner.get("name", ""),
        {**(inner.get("labels") or {}), **(metadata.get("labels") or {})},
    )


def idle_controllers(
    bindings: Bindings, source: Mapping[str, Any], federated: Mapping[str, Any] | None = None
) -> tuple[str, ...]:
    """Return the pipeline controllers without work for the source: override, when no policy applies.

    It has work while the federated object has stored overrides, because these must be removed.
    """
    stored = ((federated or {}).get("spec") or {}).get("overrides") or ()
    has_overrides = any(entry.get("controller") == names.OVERRIDE_CONTROLLER for entry in stored)
    return () if has_overrides or bindings.may_apply(subject_of_source(source)) else (names.OVERRIDE_CONTROLLER,)


def selected_types(policies: Iterable[Mapping[str, Any] | None]) -> set[tuple[str, str]]:
    """Return apiVersion and kind of all resource selectors of the policies."""
    return {
        (str(entry.get("apiVersion", "")), str(entry.get("kind", "")))
        for policy in policies
        if policy is not None
        for entry in (policy.get("spec") or {}).get("resourceSelectors") or ()
    }
