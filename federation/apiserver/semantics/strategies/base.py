"""The default behaviour of all kinds and the methods that a kind may override (kube-apiserver's rest strategies).

`verbs/preparation.py` calls on create: default, prepare_create, validate; on update: default, prepare_update,
has_spec_changed, validate_update. Methods may change `obj` or `new`, never `old`, and do no I/O. A kind whose method is
one function names it: `validate = staticmethod(validate_service)`. So arguments are positional.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar

from federation.apimachinery import nameformats
from federation.apimachinery.dotpaths import value_at
from federation.apimachinery.fielderrors import Causes, immutable
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.validation.fieldrules import Rule
from federation.apiserver.semantics.validation.kindwarnings import pod_name_warnings
from federation.apiserver.semantics.validation.podwarnings import pod_warnings

StatusFields = Mapping[str, Any]
USER_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")
"""The fields of the metadata that clients write."""


class Strategy:
    """The default: names are DNS subdomains, unconditional updates are allowed, every object is valid."""

    generate_length_max: ClassVar[int] = 63
    has_generation: ClassVar[bool] = False
    """True if metadata.generation counts changes outside metadata and status."""
    initial_generation: ClassVar[int] = 1
    """The generation of a new object, 0 for none."""
    allow_unconditional_update: ClassVar[bool] = True
    """True if an update without resourceVersion overwrites the live object."""
    allow_create_on_update: ClassVar[bool] = False
    """True if PUT of an absent object creates it."""
    keeps_status_on_create: ClassVar[bool] = False
    """True if create keeps the status although the kind has a status subresource."""
    status_always: ClassVar[StatusFields | None] = None
    """Status fields that Go writes even if they are empty (no omitempty); None for kinds without a status."""
    status_resets: ClassVar[Sequence[str]] = ()
    """The fields of the metadata that a write through the status subresource cannot change."""
    returns_deleted_object: ClassVar[bool] = False
    """True if DELETE answers with the object instead of a Status."""
    default_propagation: ClassVar[str] = "Background"
    initial_finalizers: ClassVar[tuple[str, ...]] = ()
    pod_spec: ClassVar[str] = ""
    """The path of the pod spec, "" for kinds without one."""
    records_requester: ClassVar[bool] = False
    """True if new objects name the user who created them."""
    records_every_creator: ClassVar[bool] = False
    """True if managed fields are also recorded for a creator that names no field manager, as Kubernetes does for every
    kind: they tell what a user wrote from what the server allocated."""
    knows_finalizers: ClassVar[bool] = True
    """True if a finalizer without a domain must be one of Kubernetes' own."""
    rules: ClassVar[Sequence[Rule]] = ()
    """Rules for single fields; `validate` checks rules across fields."""
    names_again: ClassVar[bool] = True
    """False if an update may set any generateName."""
    immutable_fields: ClassVar[Sequence[str]] = ()
    """Dotted paths of immutable fields."""

    def name_problems(self, name: str, /) -> list[str]:
        """Return the problems of a name."""
        return nameformats.dns1123_subdomain(name)

    def default(self, obj: Object, /) -> None:
        """Fill absent fields with their defaults, in place."""

    def prepare_create(self, obj: Object, /) -> None:
        """Set or remove the fields that clients may not set on create."""

    def record_requester(self, obj: Object, user: Mapping[str, Any]) -> None:
        """Write the requester (UserInfo) into a new object; called if `records_requester`."""

    def prepare_update(self, new: Object, old: Object, /) -> None:
        """Copy the fields that clients may not change from `old`."""

    def prepare_status_update(self, new: Object, old: Object) -> None:
        """Adjust a write through the status subresource."""

    def prepare_approval(self, new: Object, old: Object) -> None:
        """Adjust a write through the approval subresource."""

    def set_times(self, new: Object, old: Object | None, now: datetime) -> None:
        """Set absent times that default to now, before validation; `old` is None on create."""

    def complete_status(self, obj: Object) -> None:
        """Add the fields of `status_always` to the status, in place."""
        if self.status_always is not None:
            obj["status"] = {**self.status_always, **(obj.get("status") or {})}

    def validate(self, obj: Object, /) -> Causes:
        """Return the causes of an invalid object."""
        del obj
        return []

    def validate_update(self, new: Object, old: Object, /) -> Causes:
        """Return the causes of an invalid update: by default those of `validate` and of changed immutable fields."""
        causes = self.validate(new)
        for path in self.immutable_fields:
            causes += immutable(path, value_at(new, path), value_at(old, path))
        return causes

    def validate_status_update(self, new: Object, old: Object, /) -> Causes:
        """Return the causes of an invalid write through the status subresource."""
        del new, old
        return []

    def validate_approval(self, new: Object, old: Object) -> Causes:
        """Return the causes of an invalid write through the approval subresource."""
        del new, old
        return []

    def prepare_part(self, part: str, new: Object, old: Object, /) -> None:
        """Reset everything in `new` that a write through the subresource `part` does not change, in place."""

    def validate_part(self, part: str, new: Object, old: Object) -> Causes:
        """Return the causes of an invalid write through the subresource `part`."""
        del part, new, old
        return []

    def warnings(self, obj: Object, old: Object | None, /) -> Iterable[str]:
        """Return warnings for the client, for example about deprecated fields; `old` is None on create."""
        del old, obj
        return ()

    def has_spec_changed(self, new: Object, old: Object) -> bool:
        """Return True if a field outside metadata and status differs, so that the generation increases."""
        if new.keys() - old.keys() - _NOT_SPEC or old.keys() - new.keys() - _NOT_SPEC:
            return True
        return any(value != old.get(key) for key, value in new.items() if key not in _NOT_SPEC)

    def prepare_deletion(self, obj: Object) -> None:
        """Adjust an object that gets a deletionTimestamp."""

    def deletion_refusal(self, obj: Object) -> str:
        """Return the reason why the object must not be deleted, "" if it may be."""
        del obj
        return ""

    def is_removable(self, obj: Object) -> bool:
        """Return True if a terminating object without metadata.finalizers can be removed."""
        del obj
        return True

    def grace_period_s(self, obj: Object, wanted: int | None) -> int:
        """Return the grace period in seconds; 0 deletes at once."""
        del obj, wanted
        return 0


class GenerationStrategy(Strategy):
    """The default behaviour for kinds with metadata.generation."""

    has_generation = True


class PodOwnerStrategy(GenerationStrategy):
    """The default behaviour for kinds with a pod template."""

    pod_spec = "spec.template.spec"
    names_pods: ClassVar[bool] = True
    """True if an object's name becomes part of pods' names, so that a DNS label is recommended."""

    def warnings(self, obj: Object, old: Object | None) -> Iterable[str]:
        if old is None:
            if self.names_pods:
                yield from pod_name_warnings(obj["metadata"]["name"], is_pod=False)
        elif obj["metadata"].get("generation") == old["metadata"].get("generation"):
            return
        path = self.pod_spec.removesuffix(".spec")
        yield from pod_warnings(value_at(obj, path), path)


def has_changed(new: Object, old: Object, field: str) -> bool:
    """Return True if a map in the metadata differs; absent and empty are equal."""
    return (new["metadata"].get(field) or {}) != (old["metadata"].get(field) or {})


_NOT_SPEC = frozenset({"metadata", "status", "apiVersion", "kind"})
