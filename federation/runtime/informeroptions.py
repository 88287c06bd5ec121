"""The options of one informer (`informer.py`)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InformerOptions:
    """Limits of one informer."""

    page_size: int = 500
    """Objects per list request."""
    list_pages_max: int = 0
    """Pages of one list; 0 for no limit, as for the host."""
    list_objects_max: int = 0
    """Objects of one list, and in the cache; 0 for no limit, as for the host."""
    backoff_s_min: float = 0.1
    """The first pause after a failed list or watch; it doubles with each further failure."""
    backoff_s_max: float = 30.0
    watch_timeout_s: int = 0
    """Ask the server to end each watch after this many seconds; 0 leaves it to the client."""
    gather_s: float = 0.0
    """The pause after changes were applied. What arrives meanwhile is applied together (`gathering.py`)."""


MEMBERS = InformerOptions(list_pages_max=2_000, list_objects_max=200_000, gather_s=0.03)
"""Those of the members' informers."""
