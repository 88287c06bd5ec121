"""The annotation of ChangeFreezes."""

FREEZE_EXCEPTIONS = "federation.kubeadmiral.io/freeze-exceptions"
"""Comma list of namespace/name or namespace/* of objects that the freeze does not hold."""
