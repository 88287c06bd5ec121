"""Whether annotations on an object may override its policy, by namespace (docs/reference/scheduling.md).

In KubeAdmiral everyone who can write an object can choose its clusters, tolerations and mode, whatever its policy says.
An administrator can forbid that with a label on the namespace, which tenants cannot edit. Without the label, and for
objects without a namespace, a setting decides. Pure: the caller watches namespaces and calls `put` and `remove`.
"""

from collections.abc import Mapping
from typing import Any

from federation.scheduling import names
from federation.scheduling.annotationoverrides import ignored_annotations, without_overriding

ENABLED, DISABLED = "enabled", "disabled"
_MEANING = {ENABLED: True, DISABLED: False}


class AnnotationPolicy:
    """The default, and the namespaces with a label."""

    def __init__(self, *, is_allowed: bool = True) -> None:
        self._default = is_allowed
        self._labelled: dict[str, bool] = {}

    def put(self, namespace: Mapping[str, Any]) -> bool:
        """Add or update a Namespace; return whether the rule for it changes."""
        return self._set(namespace["metadata"]["name"], _MEANING.get(_label_of(namespace) or ""))

    def remove(self, name: str) -> bool:
        """Remove a deleted Namespace; return whether the rule for it changes."""
        return self._set(name, None)

    def allows(self, namespace: str) -> bool:
        """Return whether annotations may override policies in a namespace ("" for cluster-scoped objects)."""
        return self._labelled.get(namespace, self._default)

    def _set(self, name: str, is_allowed: bool | None) -> bool:  # None: the default
        before = self.allows(name)
        if is_allowed is None:
            self._labelled.pop(name, None)
        else:
            self._labelled[name] = is_allowed
        return self.allows(name) != before


def with_allowed_annotations(
    federated: Mapping[str, Any], annotation_policy: AnnotationPolicy
) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """Return the object without overriding annotations that have no effect, and the reasons by annotation."""
    metadata = federated["metadata"]
    namespace = str(metadata.get("namespace") or "")
    if annotation_policy.allows(namespace):
        return federated, ignored_annotations(metadata.get("annotations") or {})
    allowed, removed = without_overriding(federated)
    where = f"in namespace {namespace}" if namespace else "without a namespace"
    return allowed, dict.fromkeys(removed, f"objects {where} may not override their policy")


def problem_of(namespace: Mapping[str, Any]) -> str:
    """Return the problem of an invalid label, "" for none."""
    value = _label_of(namespace)
    if value is None or value in _MEANING:
        return ""
    return f"label {names.SCHEDULING_ANNOTATIONS}: {value!r} is neither {ENABLED} nor {DISABLED}; the setting holds"


def _label_of(namespace: Mapping[str, Any]) -> str | None:
    value: str | None = (namespace["metadata"].get("labels") or {}).get(names.SCHEDULING_ANNOTATIONS)
    return value
