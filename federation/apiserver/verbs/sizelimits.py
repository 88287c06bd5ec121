"""The answer to an object that is too large: 413 with a Status that names the limit, and a metric.

`apimachinery/jsonsize.py` counts values. `http/decoding.py` checks bodies before anything else walks them, and
`writes.py` the results of patches and the bytes to store.
"""

from prometheus_client import Counter

from federation.apimachinery.errors import RequestEntityTooLarge
from federation.apimachinery.jsonsize import find_excess, without_managed_fields
from federation.apimachinery.resources import Object

_refused = Counter("federation_server_objects_too_large_total", "Requests refused because of the size of their object")


def check_size(obj: Object, values_max: int) -> None:
    """Raise RequestEntityTooLarge when an object besides its managed fields exceeds a limit of `jsonsize.py`."""
    if excess := find_excess(without_managed_fields(obj), values_max=values_max):
        raise too_large(excess)


def check_bytes(size: int, size_before: int, bytes_max: int) -> None:
    """Raise RequestEntityTooLarge when a write grows an object beyond its bytes; shrinking it is always possible."""
    if size > bytes_max and size > size_before:
        raise too_large(f"{size} bytes with its managed fields, and the limit is {bytes_max}")


def too_large(excess: str) -> RequestEntityTooLarge:
    """Return the 413 of an object that exceeds a limit, and count it; `excess` comes from `find_excess`."""
    _refused.inc()
    return RequestEntityTooLarge(f"the object is too large: it has {excess}; split it into several objects")
