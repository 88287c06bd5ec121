"""The one error of this package: an override that cannot be computed or applied, and where it is written."""


class OverrideError(ValueError):
    """The policy or the patch is wrong for this object; the message names the field and the reason, in one line."""

    def within(self, field: str) -> "OverrideError":
        """Return the error with the field that holds the failing part in front."""
        separator = "" if str(self).startswith(("[", ".")) else ": "
        return OverrideError(f"{field}{separator}{self}")
