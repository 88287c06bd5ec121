"""The one error of this package: an override that cannot be computed or applied, and where it is written."""


class OverrideError(ValueError):
    """The policy or the patch is wrong for this object; one line: the field, then the reason."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.reason = reason
        self.path = path

    def within(self, field: str) -> "OverrideError":
        """Return the error with the field that holds the failing part in front of its path."""
        return OverrideError(self.reason, f"{field}.{self.path}" if self.path else field)

    def of(self, policy: str) -> "OverrideError":
        """Return the error with the policy that it is in."""
        return OverrideError(self.reason, f"{policy}: {self.path}" if self.path else policy)
