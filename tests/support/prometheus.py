"""Requests of simulated clusters, as a source of metrics counts them, on a virtual clock.

It answers the queries that `features/waves/rules/promql.py` makes about a counter, and nothing else. Real Prometheus
answers the same queries in tests/kubernetes/test_prometheus.py.
"""

import json
import random
import re
from collections.abc import Callable, Mapping
from urllib.parse import parse_qs

from federation.apimachinery.clock import Clock, from_rfc3339
from federation.apimachinery.connection import Connection
from federation.apimachinery.webhookclient import WebhookResponse

_QUERY = re.compile(r"sum by \(cluster\) \(increase\((\w+)\{(.*)\}\[(\d+)s\]\)\)")
_STEP_S = 10


class CountedRequests:
    """A `GateTransport`. `rate_of` returns the share of bad requests of a cluster now."""

    def __init__(
        self, clock: Clock, rate_of: Mapping[str, Callable[[], float]], *, seed: int = 1, per_second: float = 100
    ) -> None:
        self._clock = clock
        self._rate_of = rate_of
        self._random = random.Random(seed)
        self._per_step = per_second * _STEP_S
        self._steps: list[tuple[float, dict[str, tuple[float, float]]]] = []
        self.queries: list[tuple[str, str]] = []
        """Address and query of each request."""
        self.status = 200

    def advance(self, ago_s: float = 0) -> None:
        """Count the requests of ten seconds, now or earlier, with noise of their number and of the share of bad ones."""
        now = self._clock.now().timestamp() - ago_s
        counted = {}
        for cluster, rate in self._rate_of.items():
            total = self._random.gauss(self._per_step, self._per_step**0.5)
            share = rate() * self._random.lognormvariate(0, 0.2)
            bad = self._random.gauss(total * share, (total * share) ** 0.5)
            counted[cluster] = (max(total, 0.0), max(bad, 0.0))
        self._steps.append((now, counted))

    async def get(self, connection: Connection, headers: Mapping[str, str], *, timeout_s: float) -> WebhookResponse:
        """Refuse it: queries are posted."""
        raise AssertionError((connection, headers, timeout_s))

    async def post(
        self, connection: Connection, body: bytes, headers: Mapping[str, str], *, timeout_s: float
    ) -> WebhookResponse:
        """Answer an instant query."""
        del headers, timeout_s
        form = {key: values[0] for key, values in parse_qs(body.decode()).items()}
        self.queries.append((connection.server, form["query"]))
        if self.status != 200:
            return WebhookResponse(self.status)
        found = _QUERY.fullmatch(form["query"])
        assert found is not None, form["query"]
        matchers, window_s = found[2], int(found[3])
        at = from_rfc3339(form["time"]).timestamp() if "time" in form else self._clock.now().timestamp()
        is_bad = "code=~" in matchers
        sums: dict[str, float] = {}
        for moment, counted in self._steps:
            if at - window_s < moment <= at:
                for cluster, (total, bad) in counted.items():
                    sums[cluster] = sums.get(cluster, 0.0) + (bad if is_bad else total)
        result = [{"metric": {"cluster": name}, "value": [at, str(value)]} for name, value in sums.items()]
        answer = {"status": "success", "data": {"resultType": "vector", "result": result}}
        return WebhookResponse(200, json.dumps(answer).encode())
