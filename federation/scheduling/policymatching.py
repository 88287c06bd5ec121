"""Find the policy of an object (docs/reference/scheduling.md).

A label takes precedence: a PropagationPolicy in the object's namespace, then a ClusterPropagationPolicy. Without a
label, policies with `spec.resourceSelectors` (an extension of this project) are matched: those of the namespace first,
then cluster-wide ones, each by priority and name. A policy with `preemption: Never` leaves an object to the policy of
its last decision. An object with a label costs one look-up. Pure.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from federation.api import names
from federation.apimachinery.jsonobject import parse_object
from federation.scheduling.policyspec import Policy, PolicyRef


class PolicyIndex:
    """All compiled policies, and those with resource selectors in the order of precedence."""

    def __init__(self) -> None:
        self._policies: dict[PolicyRef, Policy] = {}
        self._selecting: dict[str, list[Policy]] = {}

    def get(self, ref: PolicyRef) -> Policy | None:
        """Return the policy, None when it does not exist."""
        return self._policies.get(ref)

    def put(self, policy: Policy) -> None:
        """Add or replace a policy."""
        self.remove(policy.ref)
        self._policies[policy.ref] = policy
        for version in policy.versions:
            if version.selectors:
                selecting = self._selecting.setdefault(policy.ref.namespace, [])
                selecting.append(version)
                selecting.sort(key=lambda entry: (-entry.precedence, entry.ref.name))

    def remove(self, ref: PolicyRef) -> None:
        """Remove a policy."""
        old = self._policies.pop(ref, None)
        for version in old.versions if old is not None else ():
            if version.selectors:
                self._selecting[ref.namespace].remove(version)

    @property
    def has_workload_rules(self) -> bool:
        """Whether any policy has a rule about other workloads."""
        return any(version.workload_rules for policy in self._policies.values() for version in policy.versions)

    def match(self, federated: Mapping[str, Any]) -> PolicyRef | None:
        """Return the object's policy, None for none. A label may name a policy that does not exist (see `get`)."""
        metadata = federated["metadata"]
        namespace = str(metadata.get("namespace") or "")
        labelled = labelled_policy(namespace, metadata.get("labels") or {})
        if labelled is not None:
            return labelled
        selecting = self._selecting_policies(namespace, federated)
        first = next(selecting, None)
        if first is None or first.preempts or not (holder := _holder(federated)):
            return None if first is None else first.ref
        others = [first, *selecting]
        if all(policy.ref.name != holder for policy in others):
            return first.ref
        return next(policy.ref for policy in others if policy.preempts or policy.ref.name == holder)

    def policy_of(self, federated: Mapping[str, Any], ref: PolicyRef | None = None) -> Policy | None:
        """Return the object's policy in the version that it has, None for none; `ref` is its reference, if known."""
        ref = ref or self.match(federated)
        policy = self._policies.get(ref) if ref is not None else None
        if policy is None or policy.earlier is None:
            return policy
        metadata = federated["metadata"]
        labelled = labelled_policy(str(metadata.get("namespace") or ""), metadata.get("labels") or {})
        return policy.version_of(federated, is_labelled=labelled is not None)

    def selecting_policy(self, namespace: str, template: Mapping[str, Any]) -> PolicyRef | None:
        """Return the first policy whose resource selectors match an object without a decision."""
        draft = {"metadata": {"namespace": namespace}, "spec": {"template": template}}
        first = next(self._selecting_policies(namespace, draft), None)
        return None if first is None else first.ref

    def _selecting_policies(self, namespace: str, federated: Mapping[str, Any]) -> Iterator[Policy]:
        """Yield the policies whose resource selectors match the object, in the order of precedence.

        Of a policy with two versions, only the one that the object has.
        """
        template = federated["spec"]["template"]
        for scope in dict.fromkeys((namespace, "")):
            for policy in self._selecting.get(scope, ()):
                if policy.selects(template) and self._is_version_of(policy, federated):
                    yield policy

    def _is_version_of(self, policy: Policy, federated: Mapping[str, Any]) -> bool:
        present = self._policies[policy.ref]
        return present.earlier is None or present.version_of(federated, is_labelled=False) is policy


def _holder(federated: Mapping[str, Any]) -> str:
    """Return the name of the policy that the object's last decision followed, "" without one."""
    text = (federated["metadata"].get("annotations") or {}).get(names.SCHEDULING_TRIGGERS)
    return str((parse_object(text) or {}).get("policyName") or "") if text else ""


def labelled_policy(namespace: str, labels: Mapping[str, str]) -> PolicyRef | None:
    """Return the policy named by the labels; only a namespaced object can have a namespaced policy."""
    if namespace and (name := labels.get(names.PROPAGATION_POLICY_LABEL)):
        return PolicyRef(namespace, name)
    if name := labels.get(names.CLUSTER_PROPAGATION_POLICY_LABEL):
        return PolicyRef("", name)
    return None
