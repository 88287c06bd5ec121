"""Find the override policies of an object: by label, or by the policy's `resourceSelectors`.

At each level (cluster-wide, then the object's namespace) a label takes precedence: only the policy that it names
applies, and it must exist. Without a label every policy of the level that selects the object applies, in the order of
their names. `Bindings` keeps all policies compiled, so that a match costs a few look-ups. It lives as long as its
controller.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from federation.api import names
from federation.api.selectors import ResourceSelectors, compile_resource_selectors
from federation.apimachinery.resources import LIMIT_RANGES, RESOURCE_QUOTAS, GroupKind, group_kind_of
from federation.apimachinery.selectors import Labels, SelectorError
from federation.planning.overrides.errors import OverrideError
from federation.planning.overrides.policies import Policy, PolicyReference, compile_policy, labelled_policies
from federation.planning.waves.policychanges import Reach, identity_of, versions_of

_RBAC = "rbac.authorization.k8s.io"
_QUOTAS = frozenset((RESOURCE_QUOTAS.group_kind, LIMIT_RANGES.group_kind))
_GUARDED = "{kind} is overridden by a ClusterOverridePolicy only"


@dataclass(frozen=True, slots=True)
class Subject:
    """The properties of an object that policies match; `namespace` is "" for cluster-scoped objects."""

    kind: GroupKind
    namespace: str
    name: str
    labels: Labels
    """The object's labels, including policy labels."""
    identity: str = field(default="", compare=False)
    own_labels: Labels = field(default_factory=dict, compare=False)
    created: str = field(default="", compare=False)
    """The federated object, its user's labels and its time, by which it has one of two versions of a policy."""


class PolicyNotFoundError(OverrideError):
    """A policy label with the name of a missing policy."""


@dataclass(frozen=True, slots=True)
class _Bound:
    """A version of a policy; the one before a change that has not reached all objects is its `earlier`."""

    policy: Policy
    selectors: ResourceSelectors
    earlier: "_Bound | None" = None
    reach: Reach | None = None

    def selects(self, subject: Subject) -> bool:
        return self.selectors.matches(subject.kind, subject.name, subject.labels)

    def version_of(self, subject: Subject, *, is_labelled: bool) -> "_Bound":
        """Return the version that an object has, as of a propagation policy (`scheduling/policyspec.py`)."""
        if self.earlier is None or self.reach is None or self.reach.is_wide:
            return self
        if not is_labelled and not self.earlier.selects(subject):
            return self.earlier
        is_reached = self.reach.includes(subject.identity, subject.own_labels, subject.created)
        return self if is_reached else self.earlier


class Bindings:
    """All override policies, and the match with objects."""

    def __init__(self) -> None:
        self._policies: dict[PolicyReference, _Bound] = {}
        self._selecting: dict[str, dict[PolicyReference, _Bound]] = {}

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
        found, earlier = versions_of(policy), None
        if found.earlier is not None:
            before = ResourceSelectors()
            with suppress(SelectorError):
                before = compile_resource_selectors(found.earlier["spec"].get("resourceSelectors"))
            earlier = _Bound(compile_policy(found.earlier), before)
        bound = _Bound(compile_policy(policy), selectors, earlier, found.reach)
        self._policies[reference] = bound
        if reference.namespace and not error:
            error = guarded_selectors(policy)
        if selectors.entries or (earlier is not None and earlier.selectors.entries):
            self._selecting.setdefault(reference.namespace, {})[reference] = bound
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
        labelled = labelled_policies(subject.labels, subject.namespace)
        return [
            self._get(reference, subject, is_labelled=reference in labelled) for reference in self.references(subject)
        ]

    def references(self, subject: Subject) -> list[PolicyReference]:
        """Return the references of the policies for the object, existing or not; OverrideError for an empty label."""
        cluster_wide, namespaced = labelled_policies(subject.labels, subject.namespace)
        references = [cluster_wide] if cluster_wide else self._selected("", subject)
        if subject.namespace and _is_guarded(subject.kind):
            if namespaced:
                raise OverrideError(f"{namespaced.display}: {_GUARDED.format(kind=subject.kind.kind)}")
        elif subject.namespace:
            references += [namespaced] if namespaced else self._selected(subject.namespace, subject)
        return references

    def may_apply(self, subject: Subject) -> bool:
        """Return True if a version of a policy may apply to the object, or its labels are invalid."""
        for scope in {"", subject.namespace}:
            for bound in self._selecting.get(scope, {}).values():
                if bound.earlier is not None and (bound.selects(subject) or bound.earlier.selects(subject)):
                    return True
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
                for reference, bound in selecting.items()
                if bound.version_of(subject, is_labelled=False).selects(subject)
            ),
            key=lambda reference: reference.name,
        )

    def _get(self, reference: PolicyReference, subject: Subject, *, is_labelled: bool) -> Policy:
        bound = self._policies.get(reference)
        if bound is None:
            raise PolicyNotFoundError(f"{reference.display} does not exist")
        return bound.version_of(subject, is_labelled=is_labelled).policy


def _reference(policy: Mapping[str, Any]) -> PolicyReference:
    metadata = policy["metadata"]
    return PolicyReference(metadata.get("namespace", ""), metadata["name"])


def _is_guarded(kind: GroupKind) -> bool:
    """Return whether only cluster-wide policies override the kind.

    The role `edit` writes OverridePolicies, but neither RBAC objects nor quotas. Overriding them would give a user
    rights and capacity in members that the host refuses.
    """
    return kind.group == _RBAC or kind in _QUOTAS


def guarded_selectors(policy: Mapping[str, Any]) -> str:
    """Return what is wrong with the selectors of a namespaced policy that name kinds it cannot override."""
    for index, entry in enumerate((policy.get("spec") or {}).get("resourceSelectors") or ()):
        if _is_guarded(kind := group_kind_of(entry)):
            return f"spec.resourceSelectors[{index}].kind: {_GUARDED.format(kind=kind.kind)}"
    return ""


def subject_of_source(source: Mapping[str, Any]) -> Subject:
    """Return the subject of a source object."""
    metadata = source["metadata"]
    return Subject(
        group_kind_of(source),
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
        group_kind_of(template),
        metadata.get("namespace", ""),
        inner.get("name", ""),
        {**(inner.get("labels") or {}), **(metadata.get("labels") or {})},
        identity_of(federated),
        inner.get("labels") or {},
        metadata.get("creationTimestamp") or "",
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


def selected_types(policies: Iterable[Mapping[str, Any] | None]) -> set[GroupKind]:
    """Return the kinds of all resource selectors of the policies, and of their earlier versions."""
    present = [policy for policy in policies if policy is not None]
    earlier = [found for policy in present if (found := versions_of(policy).earlier) is not None]
    return {
        group_kind_of(entry)
        for policy in (*present, *earlier)
        for entry in (policy.get("spec") or {}).get("resourceSelectors") or ()
    }
