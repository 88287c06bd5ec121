"""Which override policies apply to an object: by label, or by the policy's own `resourceSelectors`.

Per level (cluster-wide, then the object's namespace) a label wins: the policy that it names applies alone, and it must
exist. Without a label every policy of that level that selects the object applies, in the order of their names.
An instance follows the policies through `put` and `drop`; it keeps each compiled, so that binding an object costs a few
look-ups. Lives as long as the controller that feeds it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from federation.api import names
from federation.api.selectors import Labels, ResourceSelectors, SelectorError, compile_resource_selectors
from federation.planning.overrides.errors import OverrideError
from federation.planning.overrides.policies import Policy, PolicyReference, compile_policy, labelled_policies


@dataclass(frozen=True, slots=True)
class Subject:
    """What binding may ask of an object; `namespace` is "" for cluster-scoped objects."""

    api_version: str
    kind: str
    namespace: str
    name: str
    labels: Labels
    """The object's own labels, the policy labels among them."""


class PolicyNotFoundError(OverrideError):
    """A label names a policy that does not exist."""


@dataclass(frozen=True, slots=True)
class _Bound:
    policy: Policy
    selectors: ResourceSelectors


class Bindings:
    """The override policies that exist, and which of them apply to an object."""

    def __init__(self) -> None:
        self._policies: dict[PolicyReference, _Bound] = {}
        self._selecting: dict[str, dict[PolicyReference, ResourceSelectors]] = {}

    def put(self, policy: Mapping[str, Any]) -> str:
        """Take the policy in, or its new version. Return what is wrong with its selectors ("": nothing).

        A policy with malformed selectors selects nothing and still serves the objects that name it.
        """
        reference = _reference(policy)
        error = ""
        try:
            selectors = compile_resource_selectors((policy.get("spec") or {}).get("resourceSelectors"))
        except SelectorError as failure:
            selectors, error = ResourceSelectors(), f"spec.resourceSelectors: {failure}"
        self.drop(policy)
        self._policies[reference] = _Bound(compile_policy(policy), selectors)
        if selectors.entries:
            self._selecting.setdefault(reference.namespace, {})[reference] = selectors
        return error

    def drop(self, policy: Mapping[str, Any]) -> None:
        """Forget the policy."""
        reference = _reference(policy)
        self._policies.pop(reference, None)
        self._selecting.get(reference.namespace, {}).pop(reference, None)

    def resolve(self, subject: Subject) -> list[Policy]:
        """Return the policies for the object, cluster-wide ones first.

        OverrideError when a policy label is empty, PolicyNotFoundError when it names no policy.
        """
        return [self._get(reference) for reference in self.references(subject)]

    def references(self, subject: Subject) -> list[PolicyReference]:
        """Return which policies apply to the object, whether they exist or not; OverrideError for an empty label."""
        cluster_wide, namespaced = labelled_policies(subject.labels, subject.namespace)
        references = [cluster_wide] if cluster_wide else self._selected("", subject)
        if subject.namespace:
            references += [namespaced] if namespaced else self._selected(subject.namespace, subject)
        return references

    def may_apply(self, subject: Subject) -> bool:
        """Say whether any policy may apply to the object, one that a label names but does not exist included."""
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


def subject_of_source(source: Mapping[str, Any]) -> Subject:
    """Return a source object as a subject."""
    metadata = source["metadata"]
    return Subject(
        source.get("apiVersion", ""),
        source.get("kind", ""),
        metadata.get("namespace", ""),
        metadata["name"],
        metadata.get("labels") or {},
    )


def subject_of_federated(federated: Mapping[str, Any]) -> Subject:
    """Return the object that a federated object stands for as a subject."""
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
    """Return the pipeline controllers that have nothing to do for the source: override, when no policy applies.

    Stored overrides have to be looked at again, also when no policy wants them any more.
    """
    stored = ((federated or {}).get("spec") or {}).get("overrides") or ()
    has_overrides = any(entry.get("controller") == names.OVERRIDE_CONTROLLER for entry in stored)
    return () if has_overrides or bindings.may_apply(subject_of_source(source)) else (names.OVERRIDE_CONTROLLER,)


def selected_types(policies: Iterable[Mapping[str, Any] | None]) -> set[tuple[str, str]]:
    """Return apiVersion and kind of everything that the policies' selectors speak of."""
    return {
        (str(entry.get("apiVersion", "")), str(entry.get("kind", "")))
        for policy in policies
        if policy is not None
        for entry in (policy.get("spec") or {}).get("resourceSelectors") or ()
    }
