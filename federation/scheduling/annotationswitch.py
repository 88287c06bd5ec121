"""Whether annotations on an object may override its policy, namespace by namespace (spec §5.4).

KubeAdmiral lets whoever may write an object choose its clusters, tolerations and mode, whatever its policy says. An
administrator can forbid that with a label on the namespace, which its tenants may not edit; what holds without one is a
setting. Objects without a namespace follow the setting. Pure: whoever watches namespaces calls `put` and `remove`.
"""

from collections.abc import Mapping
from typing import Any

from federation.api import names

ENABLED, DISABLED = "enabled", "disabled"
_MEANING = {ENABLED: True, DISABLED: False}


class AnnotationSwitch:
    """Which namespaces differ from the default."""

    def __init__(self, *, is_allowed: bool = True) -> None:
        self._default = is_allowed
        self._labelled: dict[str, bool] = {}

    def put(self, namespace: Mapping[str, Any]) -> bool:
        """Take in a Namespace; say whether what holds in it changes."""
        return self._set(namespace["metadata"]["name"], _MEANING.get(_label_of(namespace) or ""))

    def remove(self, name: str) -> bool:
        """Forget a Namespace that is gone; say whether what holds in it changes."""
        return self._set(name, None)

    def allows(self, namespace: str) -> bool:
        """Say whether annotations of objects there ("" for those without a namespace) count."""
        return self._labelled.get(namespace, self._default)

    def _set(self, name: str, is_allowed: bool | None) -> bool:  # None: as the setting says
        before = self.allows(name)
        if is_allowed is None:
            self._labelled.pop(name, None)
        else:
            self._labelled[name] = is_allowed
        return self.allows(name) != before


def problem_of(namespace: Mapping[str, Any]) -> str:
    """Return what is wrong with the label of a Namespace, "" when nothing is."""
    value = _label_of(namespace)
    if value is None or value in _MEANING:
        return ""
    return f"label {names.SCHEDULING_ANNOTATIONS}: {value!r} is neither {ENABLED} nor {DISABLED}; the setting holds"


def _label_of(namespace: Mapping[str, Any]) -> str | None:
    value: str | None = (namespace["metadata"].get("labels") or {}).get(names.SCHEDULING_ANNOTATIONS)
    return value
