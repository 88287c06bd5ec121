"""The steps of `fedctl replay`: read records, decide again, print.

Exit codes: 0 if every decision came out as recorded, 1 if some did not, 2 for an error.
"""

import os
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer

from federation.admission.deviceselectors import selects
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import FederationError
from federation.apimachinery.memory import without_collector
from federation.cli.replay import sources
from federation.cli.replay.otherworldoptions import read_changes
from federation.cli.replay.output import print_verdict
from federation.cli.replay.worldoutput import print_comparison
from federation.features.catalogue import decision_chain
from federation.plans.recordfiles import write_records
from federation.plans.replays import Selection, compare
from federation.plans.unknownnames import check_namespace
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.replay.logentries import Chunk, from_us, read, to_us
from federation.scheduling.replay.otherworld import Changes
from federation.scheduling.replay.redecide import Verdict, redecide
from federation.terminal import flags
from federation.terminal.execution import execute, fail
from federation.terminal.kubeconfigcontext import KubeconfigContext
from federation.terminal.timearguments import parse_time

EQUAL, DIFFERENT = 0, 1
_DECISIONS_PER_PROCESS_MIN = 2_000
"""Below this number another process takes longer to start than it saves."""
_FOREVER_US = 2**62


def replay_command(
    since: Annotated[
        str,
        typer.Option(
            "--since",
            metavar="TIME",
            help="From 2026-01-01T12:00:00Z on, or from 3d ago [24h; all with --from].",
        ),
    ] = "",
    until: Annotated[str, typer.Option("--until", metavar="TIME", help="Until this time; now if not given.")] = "",
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="Read an exported file or a backup, not the host."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--export", metavar="FILE", help="Write the records to a file, and decide nothing.")
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Option("--filename", "-f", metavar="FILE", help="Policies, profiles and other objects of another world."),
    ] = None,
    profile: Annotated[str, typer.Option("--profile", help="The scheduling profile of all policies.")] = "",
    price_list: Annotated[
        Path | None, typer.Option("--price-list", metavar="FILE", help="Prices of clusters, as their source has them.")
    ] = None,
    without: Annotated[list[str] | None, typer.Option("--without-cluster", help="A cluster less.")] = None,
    like: Annotated[
        list[str] | None, typer.Option("--add-cluster", metavar="LIKE", help="One more, like another one and empty.")
    ] = None,
    namespace: Annotated[
        str,
        typer.Option("--namespace", "-n", metavar="NAME", help="Count its objects only, in both worlds."),
    ] = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    output: flags.OutputFormat = "table",
) -> None:
    """Decide recorded decisions again, also in another world.

    Writes nothing.

    Records have the clusters, policies and objects as they were, and the answers of plugins. A difference means that
    this version, or a plugin installed beside it, decides otherwise than what decided then.

    With -f, --profile, --price-list, --without-cluster or --add-cluster the placements of the other world are the
    present ones of its next decisions. Moves, missing replicas, use, cost, and hits of quotas and of the guard are
    printed for both worlds.

    Exit code: 0 all outcomes are equal, 1 some differ, 2 an error.

    \b
    fedctl replay --since 24h
    fedctl replay --since 7d --until 6d -o json
    fedctl replay --since 24h --export yesterday.records
    fedctl replay --from yesterday.records
    fedctl replay --since 24h -f new-policy.yaml
    fedctl replay --since 7d --without-cluster east --add-cluster west
    """  # noqa: D301  # the backspace keeps lines apart in the help
    try:
        now = SystemClock().now()
        period = Period(
            0 if source is not None and not since else to_us(parse_time(since or "24h", now, "--since")),
            to_us(parse_time(until, now, "--until")) if until else _FOREVER_US,
        )
        changes = read_changes(files or (), profile, price_list, without or (), like or ())
        execute(replay(KubeconfigContext(kubeconfig, context), period, source, out, output, changes, namespace))
    except FederationError as error:
        fail(str(error), code=2)


@dataclass(frozen=True, slots=True)
class Period:
    """The time of the decisions, in microseconds."""

    since_us: int
    until_us: int


async def replay(
    context: KubeconfigContext,
    period: Period,
    source: Path | None,
    out: Path | None,
    output: str,
    changes: Changes,
    namespace: str = "",
) -> int:
    """Read the records, and export them, or decide again and print; return the exit code."""
    if source is not None:
        chunks = await sources.from_file(source, period.since_us)
    else:
        async with context.client() as host:
            await check_namespace(host, namespace)
        chunks = await sources.from_host(context, from_us(period.since_us))
    if out is not None:
        write_records(chunks, out)
        print(f"{sum(chunk.decisions for chunk in chunks)} decisions written to {out}")
        return EQUAL
    started_s = time.perf_counter()
    if changes:
        selection = Selection(period.since_us, period.until_us, namespace)
        now_us = to_us(SystemClock().now())
        comparison = compare(chunks, changes, selection, now_us, load_plugins(selects=selects), decision_chain())
        print_comparison(comparison, output, time.perf_counter() - started_s)
        return DIFFERENT if comparison.different else EQUAL
    verdict = redecide_all(chunks, period)
    print_verdict(verdict, output, time.perf_counter() - started_s)
    return DIFFERENT if verdict.different else EQUAL


def redecide_all(chunks: Sequence[Chunk], period: Period) -> Verdict:
    """Decide again; segments at the same time in as many processes as there are processors."""
    segments = [list(found) for _, found in groupby(chunks, key=lambda chunk: chunk.segment)]
    work = partial(_redecide, period=period)
    total = sum(chunk.decisions for chunk in chunks)
    workers = min(os.cpu_count() or 1, len(segments), total // _DECISIONS_PER_PROCESS_MIN)
    verdict = Verdict()
    if workers > 1:
        with ProcessPoolExecutor(workers) as pool:
            for part in pool.map(work, segments):
                verdict.merge(part)
    else:
        for segment in segments:
            verdict.merge(work(segment))
    return verdict


def _redecide(segment: Sequence[Chunk], period: Period) -> Verdict:
    verdict = Verdict()
    with without_collector():  # a segment's records are bounded, and what is read from them has no cycles
        for again in redecide(
            read(segment), load_plugins(selects=selects), decision_chain(), period.since_us, period.until_us
        ):
            verdict.add(again)
    return verdict
