"""The error of this package: an override that cannot be computed or applied, with its position in the policy."""

from federation.api import names
from federation.apimachinery.annotationrecords import AnnotationRecord
from federation.apimachinery.errors import InvalidInput


class OverrideError(InvalidInput):
    """A policy or patch that does not fit the object; the message is the field and the reason."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.reason = reason
        self.path = path

    def within(self, field: str) -> "OverrideError":
        """Return the error with `field` in front of its path."""
        return OverrideError(self.reason, f"{field}.{self.path}" if self.path else field)

    def of(self, policy: str) -> "OverrideError":
        """Return the error with the policy in front of its path."""
        return OverrideError(self.reason, f"{policy}: {self.path}" if self.path else policy)


FAILED_OVERRIDES = AnnotationRecord(names.FAILED_OVERRIDES, dict[str, str])
"""The errors by cluster that the override controller records on a federated object."""
