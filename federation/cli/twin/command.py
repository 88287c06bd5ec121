"""The steps of `fedctl twin`: copy the fleet, run the rehearsal, print what happened.

Exit codes: 0 if every expectation held, 1 if some did not, 2 for an error.
"""

import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from federation.apimachinery import logs
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import ConfigurationError, FederationError
from federation.cli.replay import sources
from federation.cli.twin.rehearsaloutput import Outcome, print_outcome
from federation.scheduling.replay.logentries import Chunk, to_us
from federation.settings import Settings, from_environment
from federation.terminal import flags
from federation.terminal.execution import execute, fail
from federation.terminal.kubeconfigcontext import KubeconfigContext
from federation.terminal.timearguments import parse_time
from federation.twin.arrivals import arrivals_of
from federation.twin.fleetcopy import Fleet, from_backup, from_host
from federation.twin.script import Script, parse_script, read_script
from federation.twin.steps import Rehearsal
from federation.twin.twin import Twin, problems_of

AS_EXPECTED, UNEXPECTED = 0, 1
_TIMES_MAX = 1_000


def twin_command(
    script: Annotated[
        Path | None, typer.Option("--script", "-f", metavar="FILE", help="What happens when, and what is expected.")
    ] = None,
    backup: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Copy the fleet in a backup, not the running one.")
    ] = None,
    end: Annotated[str, typer.Option("--for", metavar="DURATION", help="How long, in the twin's time.")] = "",
    arrivals: Annotated[
        str, typer.Option("--arrivals-since", metavar="TIME", help="Apply what users applied since then, from 1h ago.")
    ] = "",
    times: Annotated[int, typer.Option("--times", help="Each of these arrivals so many times.")] = 1,
    seed: Annotated[int, typer.Option("--seed", help="Of everything random in the twin.")] = 1,
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    output: flags.OutputFormat = "table",
) -> None:
    """Rehearse on a copy of the fleet, in this process and on a virtual clock.

    Writes nothing into the fleet.

    The copy has the objects of the host, and simulated members with the nodes, the free room and the workloads of the
    real ones. The control plane of this version runs on it. A script applies manifests, scales, cordons, and breaks
    clusters, regions and nodes. Printed are moves and their causes, replicas without a cluster, holds, rollouts, cost.

    Needs the right to list the objects of everybody, as `fedctl replay`, or a backup.

    Exit code: 0 as expected, 1 an expectation failed, 2 an error.

    \b
    fedctl twin --for 10m
    fedctl twin -f region-dies.yaml
    fedctl twin --from yesterday.backup -f upgrade.yaml -o json
    fedctl twin --arrivals-since 1h --times 2
    """  # noqa: D301  # the backspace keeps lines apart in the help
    try:
        if not 1 <= times <= _TIMES_MAX:
            raise ConfigurationError(f"--times {times}: a number from 1 to {_TIMES_MAX}")
        found = read_script(script, end=end) if script is not None else parse_script({}, Path(), end=end)
        execute(rehearse(KubeconfigContext(kubeconfig, context), backup, found, arrivals, times, seed, output))
    except FederationError as error:
        fail(str(error), code=2)


async def rehearse(
    context: KubeconfigContext,
    backup: Path | None,
    script: Script,
    arrivals: str,
    times: int,
    seed: int,
    output: str,
) -> int:
    """Copy, run and print; return the exit code."""
    logs.configure(level="error")  # what controllers log about the twin is not about the fleet
    settings = from_environment({"directory": Path()})
    fleet, since = await _copy(context, backup, arrivals, settings)
    found = sorted(arrivals_of(fleet.records, to_us(since), times), key=lambda each: each.at_s) if arrivals else []
    script = script.reaching(found[-1].at_s) if found else script
    started_s = time.perf_counter()
    twin = Twin(fleet, settings, seed)
    try:
        await twin.begin()
        rehearsal, began_at, began_s = Rehearsal(twin, script, found), twin.clock.now(), time.perf_counter()
        await rehearsal.run()
        took = began_s - started_s, time.perf_counter() - began_s
        outcome = Outcome(fleet, twin, script, rehearsal, began_at, took, problems_of(fleet))
        print_outcome(outcome, output)
    finally:
        await twin.end()
    return AS_EXPECTED if all(each.holds for each in rehearsal.seen) else UNEXPECTED


async def _copy(
    context: KubeconfigContext, backup: Path | None, arrivals: str, settings: Settings
) -> tuple[Fleet, datetime]:
    """Return the fleet, and the time from which recorded arrivals count."""
    now = SystemClock().now()
    if backup is not None:
        fleet = await from_backup(backup.expanduser(), settings.encryption, 0)
        return fleet, parse_time(arrivals, fleet.at, "--arrivals-since") if arrivals else fleet.at
    since = parse_time(arrivals, now, "--arrivals-since") if arrivals else now + timedelta(days=1)
    records: list[Chunk] = await sources.from_host(context, since) if arrivals else []
    async with context.client() as host:
        return await from_host(host, now, records), since
