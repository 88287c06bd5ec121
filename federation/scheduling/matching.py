"""Which policy is an object's? (spec §5.2)

By label first: a PropagationPolicy in the object's own namespace, then a ClusterPropagationPolicy. Without a label, a
policy that selects the object by itself (`spec.resourceSelectors`, ours): one of its namespace before a cluster-wide
one, then by name. The index holds compiled policies; only those with selectors are ever asked, so an object with a
label costs one lookup. Pure: the schedule controller feeds it.
"""

from collections.abc import Mapping
from typing import Any

from federation.api import names
from federation.scheduling.policy import Policy, PolicyRef


class PolicyIndex:
    """All policies, compiled, and those of them that select objects by themselves, in the order of precedence."""

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
        if policy.selectors:
            selecting = self._selecting.setdefault(policy.ref.namespace, [])
            selecting.append(policy)
            selecting.sort(key=lambda entry: entry.ref.name)

    def remove(self, ref: PolicyRef) -> None:
        """Forget a policy."""
        old = self._policies.pop(ref, None)
        if old is not None and old.selectors:
            self._selecting[ref.namespace].remove(old)

    def match(self, fed_object: Mapping[str, Any]) -> PolicyRef | None:
        """Return which policy applies, None for none. A label may name one that does not exist (see `get`)."""
        metadata = fed_object["metadata"]
        namespace = str(metadata.get("namespace") or "")
        labelled = labelled_policy(namespace, metadata.get("labels") or {})
        return labelled if labelled is not None else self.selecting_policy(namespace, fed_object["spec"]["template"])

    def selecting_policy(self, namespace: str, template: Mapping[str, Any]) -> PolicyRef | None:
        """Return the first policy that selects the object by itself."""
        for scope in dict.fromkeys((namespace, "")):
            for policy in self._selecting.get(scope, ()):
                if any(selector.matches(template) for selector in policy.selectors):
                    return policy.ref
        return None


def labelled_policy(namespace: str, labels: Mapping[str, str]) -> PolicyRef | None:
    """Return the policy that the labels name: only a namespaced object can have a namespaced policy."""
    if namespace and (name := labels.get(names.PROPAGATION_POLICY_LABEL)):
        return PolicyRef(namespace, name)
    if name := labels.get(names.CLUSTER_PROPAGATION_POLICY_LABEL):
        return PolicyRef("", name)
    return None
