"""Metrics of HTTP requests: counts and durations by verb, resource and code; watches are counted but not timed.

Label values are served resources, never arbitrary path segments, so that clients cannot create new time series.
"""

from prometheus_client import Counter, Histogram

from federation.apimachinery.metrics import LATENCY_BUCKETS_S
from federation.apimachinery.paths import ResourcePath
from federation.apiserver.http.asgi import Request
from federation.apiserver.http.nonresource import SERVER
from federation.apiserver.registry.discovery import REVIEWS
from federation.apiserver.semantics.kinds.kinds import Kinds

_requests = Counter(
    "federation_server_requests_total", "Requests by verb, resource and HTTP status", ["verb", "resource", "code"]
)
_durations = Histogram(
    "federation_server_request_duration_seconds",
    "Time from the request's head to the end of its answer, watches left out",
    ["verb"],
    buckets=LATENCY_BUCKETS_S,
)
_REVIEWS = {entry.plural for served in REVIEWS.values() for entry in served}
_counters: dict[tuple[str, str, int], Counter] = {}
_histograms: dict[str, Histogram] = {}


def observe(kinds: Kinds, request: Request, path: ResourcePath | None, verb: str, duration_s: float) -> None:
    """Count one finished request."""
    plural = "" if path is None else path.plural
    key = (verb, plural, request.status)
    # `labels()` costs more than the rest of this function, so the children are cached.
    counter = _counters.get(key)
    if counter is None:
        if path is not None and plural not in _REVIEWS and kinds.find(path.group, plural) is None:
            counter = _requests.labels(verb or "other", "unknown", str(request.status))
        else:
            label = "path" if path is None else verb or "other"
            counter = _counters[key] = _requests.labels(label, plural, str(request.status))
    counter.inc()
    # Pages of an app with a log-in of its own may be streams; the requests behind them are observed one by one.
    if verb != "watch" and SERVER not in request.scope:
        histogram = _histograms.get(verb)
        if histogram is None:
            histogram = _histograms[verb] = _durations.labels(verb or "path")
        histogram.observe(duration_s)
