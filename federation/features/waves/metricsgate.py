"""Measure objectives: query the administrator's sources of metrics, once per workload and interval.

An answer counts until the next interval. What was measured before a wave is kept as long as the wave. Whatever goes
wrong is a reason without data, which holds the rollout and never fails it.
"""

import asyncio
from collections.abc import Hashable, Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlencode

from federation.apimachinery.clock import Clock, to_rfc3339
from federation.apimachinery.connection import Connection
from federation.featureapi.surroundings import GateTransport
from federation.features.waves.rules.objectivegate import Judged, ObjectivesDue
from federation.features.waves.rules.objectives import Counts, Measured, judge_all, sum_of
from federation.features.waves.rules.promql import (
    Workload,
    build_queries,
    parse_vector,
    problem_of,
    to_counts,
)
from federation.features.waves.rules.waveplan import HTTP_INTERVAL_S
from federation.planning.waves.metricsources import MetricSource, Sources
from federation.planning.waves.waverules import Comparison, Objective

_TIMEOUT_S = 5.0
_HEADERS = {"User-Agent": "federation-rollout", "Content-Type": "application/x-www-form-urlencoded"}
_BEFORE_S_MIN, _WINDOW_S_MAX = 600, 21_600
_CREDENTIAL_BYTES_MAX = 1 << 20


class MetricsGate:
    """Sends the queries. It lives as long as the controller."""

    def __init__(self, transport: GateTransport, sources: Sources, clock: Clock) -> None:
        self._transport = transport
        self._sources = sources
        self._clock = clock
        self._answers: dict[Hashable, tuple[ObjectivesDue, float, Judged]] = {}
        self._before: dict[Hashable, tuple[ObjectivesDue, dict[str, Mapping[str, Counts]]]] = {}

    def forget(self, key: Hashable) -> None:
        """Discard the measurements of a workload."""
        self._answers.pop(key, None)
        self._before.pop(key, None)

    async def judge(
        self, key: Hashable, workloads: Sequence[Workload], due: ObjectivesDue, waiting: Sequence[Workload] = ()
    ) -> Judged:
        """Return the judgement about the current wave of workloads. Queries are sent once per interval.

        Those of a wave are compared with `waiting` ones, or with themselves in the clusters of `due.waiting`.
        """
        known, now_s = self._answers.get(key), self._clock.monotonic()
        if known is not None and known[0] == due and now_s < known[1] + HTTP_INTERVAL_S:
            return known[2]
        if key not in self._before or self._before[key][0] != due:
            self._before[key] = (due, {})
        measured = await asyncio.gather(*(self._measure(key, workloads, waiting, due, each) for each in due.objectives))
        names = [each.name for each in due.objectives]
        judged = Judged(due.wave, due.held_since, judge_all(due.objectives, dict(zip(names, measured, strict=True))))
        self._answers[key] = (due, now_s, judged)
        return judged

    async def _measure(
        self,
        key: Hashable,
        workloads: Sequence[Workload],
        waiting: Sequence[Workload],
        due: ObjectivesDue,
        objective: Objective,
    ) -> Measured:
        source = self._sources.get(objective.source)
        try:
            if source is None or not all(source.serves(each.namespace) for each in (*workloads, *waiting)):
                raise ValueError(f"the administrator lists no source of metrics {objective.source} for the namespace")
            window_s = int((self._clock.now() - due.held_since).total_seconds())
            if window_s < 2 * source.scrape_seconds:
                raise ValueError(f"measured after two scrapes, in {2 * source.scrape_seconds - window_s} s")
            now = await self._count(source, objective, workloads, min(window_s, _WINDOW_S_MAX), None)
            elsewhere: Mapping[str, Counts] = {cluster: now[cluster] for cluster in due.waiting if cluster in now}
            if waiting and Comparison.WAITING in objective.compare_with:
                elsewhere = await self._count(source, objective, waiting, min(window_s, _WINDOW_S_MAX), None)
            before: Mapping[str, Counts] = {}
            if Comparison.BEFORE in objective.compare_with:
                before = await self._count_before(key, source, objective, workloads, due)
        except ValueError as problem:
            return Measured({}, {}, {}, str(problem))
        clusters = due.clusters or tuple(now)
        new = {cluster: now.get(cluster, Counts()) for cluster in clusters}
        return Measured(new, {cluster: before[cluster] for cluster in clusters if cluster in before}, elsewhere)

    async def _count_before(
        self,
        key: Hashable,
        source: MetricSource,
        objective: Objective,
        workloads: Sequence[Workload],
        due: ObjectivesDue,
    ) -> Mapping[str, Counts]:
        kept = self._before[key][1]
        if objective.name not in kept:
            window_s = min(max(_BEFORE_S_MIN, int(due.soak_s)), _WINDOW_S_MAX)
            kept[objective.name] = await self._count(source, objective, workloads, window_s, due.started_at)
        return kept[objective.name]

    async def _count(
        self,
        source: MetricSource,
        objective: Objective,
        workloads: Sequence[Workload],
        window_s: int,
        at: datetime | None,
    ) -> Mapping[str, Counts]:
        """Return the counts by cluster of a window that ends at a time; ValueError says why there are none."""
        by_namespace: dict[str, list[Workload]] = {}
        for workload in workloads:
            by_namespace.setdefault(workload.namespace, []).append(workload)
        parts = [await self._count_in(source, objective, each, window_s, at) for each in by_namespace.values()]
        return {
            name: sum_of(part.get(name, Counts()) for part in parts) for name in {n for part in parts for n in part}
        }

    async def _count_in(
        self,
        source: MetricSource,
        objective: Objective,
        workloads: Sequence[Workload],
        window_s: int,
        at: datetime | None,
    ) -> Mapping[str, Counts]:
        queries = build_queries(objective, source, workloads, window_s)
        try:
            has_files = source.token_file or source.ca_file
            connection = await asyncio.to_thread(_connect, source) if has_files else _connect(source)
        except OSError as problem:
            raise ValueError("the source's credentials cannot be read") from problem
        total, part = await asyncio.gather(
            self._query(connection, source, queries.total, at), self._query(connection, source, queries.part, at)
        )
        return to_counts(queries, total, part)

    async def _query(
        self, connection: Connection, source: MetricSource, query: str, at: datetime | None
    ) -> Mapping[str, float]:
        form = {"query": query, "timeout": f"{_TIMEOUT_S:g}s"} | ({"time": to_rfc3339(at)} if at is not None else {})
        headers = {**_HEADERS, "Authorization": f"Bearer {connection.token}"} if connection.token else _HEADERS
        body = urlencode(form).encode()
        response = await self._transport.post(connection, body, headers, timeout_s=_TIMEOUT_S)
        if response.status == 0:
            # The reason may name an address that users do not have to know.
            raise ValueError("the metrics source does not answer")
        if response.status != HTTPStatus.OK:
            raise ValueError(problem_of(response.status, response.body))
        return parse_vector(response.body, source.cluster_label)


def _connect(source: MetricSource) -> Connection:
    """Return the connection for one query: credentials are replaced on disk."""
    token = _read(source.token_file).decode().strip() if source.token_file else ""
    authority = _read(source.ca_file) if source.ca_file else b""
    return Connection(f"{source.url.rstrip('/')}/api/v1/query", ca_data=authority, token=token)


def _read(path: str) -> bytes:
    with Path(path).expanduser().open("rb") as file:
        return file.read(_CREDENTIAL_BYTES_MAX)
