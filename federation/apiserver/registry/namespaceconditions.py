"""The conditions of a terminating namespace, with the texts of kube-controller-manager. Pure.

Discovery and version parsing cannot fail here, because the kinds are known in process; their two conditions are always
False, as tools expect all five. `namespaces.py` deletes the content and writes the conditions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from federation.apiserver.semantics.kinds.kinds import KindInfo

_State = tuple[str, str, str]
_DISCOVERED: _State = ("False", "ResourcesDiscovered", "All resources successfully discovered")
_PARSED: _State = ("False", "ParsedGroupVersions", "All legacy kube types successfully parsed")
_DELETED: _State = (
    "False",
    "ContentDeleted",
    "All content successfully deleted, may be waiting on finalization",
)
_REMOVED: _State = ("False", "ContentRemoved", "All content successfully removed")
_FINALIZED: _State = ("False", "ContentHasNoFinalizers", "All content-preserving finalizers finished")


@dataclass(slots=True)
class RemainingContent:
    """Content left after one round of deletion: objects by resource, their finalizers, and failed deletions."""

    objects: dict[str, int] = field(default_factory=dict)
    finalizers: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    @property
    def is_waiting(self) -> bool:
        """Whether the namespace still has content."""
        return bool(self.objects or self.failures)

    def add(self, info: KindInfo, kept: Sequence[Mapping[str, Any]]) -> None:
        """Count the objects of a kind by their metadata."""
        if kept:
            self.objects[f"{info.resource.plural}.{info.resource.group}"] = len(kept)
        for metadata in kept:
            for name in metadata.get("finalizers") or ():
                self.finalizers[name] = self.finalizers.get(name, 0) + 1

    def to_conditions(self, before: Sequence[Mapping[str, Any]], now: str) -> list[dict[str, Any]]:
        """Return the namespace's conditions; lastTransitionTime is `now` for those that changed."""
        known = {condition.get("type"): condition for condition in before}
        states = {
            "NamespaceDeletionDiscoveryFailure": _DISCOVERED,
            "NamespaceDeletionGroupVersionParsingFailure": _PARSED,
            "NamespaceDeletionContentFailure": self._failed(),
            "NamespaceContentRemaining": self._remaining(),
            "NamespaceFinalizersRemaining": self._unfinalized(),
        }
        conditions = [dict(condition) for name, condition in known.items() if name not in states]
        for name, (status, reason, message) in states.items():
            old = known.get(name, {})
            is_same = (old.get("status"), old.get("reason"), old.get("message")) == (status, reason, message)
            conditions.append(
                {
                    "type": name,
                    "status": status,
                    "lastTransitionTime": (old.get("lastTransitionTime") if is_same else None) or now,
                    "reason": reason,
                    "message": message,
                }
            )
        return conditions

    def _failed(self) -> _State:
        if not self.failures:
            return _DELETED
        listed = ", ".join(sorted(self.failures))
        text = f"Failed to delete all resource types, {len(self.failures)} remaining: {listed}"
        return "True", "ContentDeletionFailed", text

    def _remaining(self) -> _State:
        if not self.objects:
            return _REMOVED
        listed = ", ".join(f"{kind} has {count} resource instances" for kind, count in sorted(self.objects.items()))
        return "True", "SomeResourcesRemain", f"Some resources are remaining: {listed}"

    def _unfinalized(self) -> _State:
        if not self.finalizers:
            return _FINALIZED
        listed = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(self.finalizers.items()))
        text = f"Some content in the namespace has finalizers remaining: {listed}"
        return "True", "SomeFinalizersRemain", text
