"""The behaviour that all kinds share, and the points at which one may differ (kube-apiserver's rest strategies).

Called by `registry/writes.py` in this order: create = default, prepare_create, validate; update = default,
prepare_update, generation, validate_update. Methods may change `obj`/`new`, never `old`, and do no I/O.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from federation.api.resources import Object
from federation.registry.validation import names
from federation.registry.validation.fields import Causes, immutable

StatusFields = Mapping[str, Any]


class Strategy:
    """An ordinary kind: any DNS subdomain as name, unconditional updates allowed, nothing of its own to check."""

    generate_length_max: ClassVar[int] = 63
    has_generation: ClassVar[bool] = False
    """Whether metadata.generation counts changes outside metadata and status."""
    allow_unconditional_update: ClassVar[bool] = True
    """Whether an update without resourceVersion overwrites whatever is there."""
    allow_create_on_update: ClassVar[bool] = False
    """Whether PUT of an absent object creates it."""
    keeps_status_on_create: ClassVar[bool] = False
    """Whether the creator may report a status at once, although the kind has a status subresource."""
    status_always: ClassVar[StatusFields | None] = None
    """The fields of the status that Kubernetes writes even when nobody has reported any (those that its Go types do not
    omit when they are empty); None for kinds without a status. Read-only."""
    returns_deleted_object: ClassVar[bool] = False
    """Whether DELETE answers with the object instead of a Status."""
    default_propagation: ClassVar[str] = "Background"
    initial_finalizers: ClassVar[tuple[str, ...]] = ()
    immutable_fields: ClassVar[Sequence[str]] = ()
    """Dotted paths that never change after creation."""

    def name_problems(self, name: str) -> list[str]:
        """Return what is wrong with a name."""
        return names.dns1123_subdomain(name)

    def default(self, obj: Object) -> None:
        """Fill the fields that Kubernetes fills when they are absent, in place."""

    def prepare_create(self, obj: Object) -> None:
        """Set or drop what a client does not decide, before the first write."""

    def prepare_update(self, new: Object, old: Object) -> None:
        """Carry over from `old` what a client does not decide."""

    def prepare_status_update(self, new: Object, old: Object) -> None:
        """Adjust a write through the status subresource."""

    def complete_status(self, obj: Object) -> None:
        """Fill the part of the status that is always there, in place."""
        if self.status_always is not None:
            obj["status"] = {**self.status_always, **(obj.get("status") or {})}

    def validate(self, obj: Object) -> Causes:
        """List what is wrong with the object as a whole."""
        del obj
        return []

    def validate_update(self, new: Object, old: Object) -> Causes:
        """List what is wrong with the change; the default is the check of the whole and of immutable fields."""
        causes = self.validate(new)
        for path in self.immutable_fields:
            causes += immutable(path, dig(new, path), dig(old, path))
        return causes

    def validate_status_update(self, new: Object, old: Object) -> Causes:
        """List what is wrong with a write through the status subresource."""
        del new, old
        return []

    def warnings(self, obj: Object) -> list[str]:
        """Return texts that the writer should read, e.g. about deprecated fields."""
        del obj
        return []

    def spec_changed(self, new: Object, old: Object) -> bool:
        """Tell whether the generation has to grow: anything but metadata and status differs."""
        if new.keys() - old.keys() - _NOT_SPEC or old.keys() - new.keys() - _NOT_SPEC:
            return True
        return any(value != old.get(key) for key, value in new.items() if key not in _NOT_SPEC)

    def prepare_deletion(self, obj: Object) -> None:
        """Adjust an object that is being marked as terminating."""

    def deletion_refusal(self, obj: Object) -> str:
        """Return why the object may not be deleted at all, "" when it may."""
        del obj
        return ""

    def may_go(self, obj: Object) -> bool:
        """Tell whether a terminating object without finalizers may be removed."""
        del obj
        return True

    def grace_period_s(self, obj: Object, wanted: int | None) -> int:
        """Return how long deletion waits for the object's own agent; 0 deletes at once."""
        del obj, wanted
        return 0


_NOT_SPEC = frozenset({"metadata", "status", "apiVersion", "kind"})


def dig(obj: Object, path: str) -> object:
    """Return the value at a dotted path, None when a step is missing."""
    value: object = obj
    for step in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value
