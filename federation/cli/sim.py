"""The commands `fedctl sim …`: failures of the simulated members of a running `fedctl up` (docs/failover.md)."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from federation.apimachinery.clock import SystemClock
from federation.apimachinery.durations import parse_duration
from federation.apimachinery.errors import ConfigurationError
from federation.simulator.control import send_command
from federation.simulator.failures import FailureCommand, Verb
from federation.terminal import flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext
from federation.terminal.plaintext import to_age
from federation.terminal.printing import print_rows

sim_command = typer.Typer(
    help="Simulate failures of the members of a running `fedctl up` or `fedctl demo`.\n\n"
    "A failure lasts until the next command for the same member.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_Member = Annotated[str, typer.Argument(metavar="MEMBER", help="For example member-2.")]
_Dir = Annotated[
    Path | None,
    typer.Option(
        "--dir", metavar="DIR", parser=flags.to_directory, help="State directory of `fedctl up` [that of $KUBECONFIG]."
    ),
]


@sim_command.command("stop")
def stop_command(member: _Member, directory: _Dir = None) -> None:
    """Kill a member, as kill -9 does: connections are refused."""
    execute(_simulate(directory, FailureCommand(Verb.STOP, member), "stopped: it refuses connections"))


@sim_command.command("start")
def start_command(member: _Member, directory: _Dir = None) -> None:
    """End the failure of a member; a stopped one starts with its data."""
    execute(_simulate(directory, FailureCommand(Verb.START, member), "runs"))


@sim_command.command("hang")
def hang_command(member: _Member, directory: _Dir = None) -> None:
    """Freeze a member: it accepts connections and never answers, and its watches fall silent."""
    execute(_simulate(directory, FailureCommand(Verb.HANG, member), "hangs: it accepts connections and never answers"))


@sim_command.command("slow")
def slow_command(
    member: _Member,
    latency: Annotated[str, typer.Option("--latency", metavar="DURATION", help="For example 500ms or 1m30s.")] = "2s",
    directory: _Dir = None,
) -> None:
    """Delay every response and watch event of a member."""
    command = FailureCommand(Verb.SLOW, member, latency_s=_to_seconds(latency, "--latency"))
    execute(_simulate(directory, command, f"is slow: it answers {latency} later"))


@sim_command.command("fail")
def fail_command(
    member: _Member,
    percent: Annotated[
        float, typer.Option("--percent", metavar="P", min=0, max=100, help="Share of the requests that fail.")
    ] = 100,
    directory: _Dir = None,
) -> None:
    """Answer requests of a member with errors (503); open watches go on."""
    command = FailureCommand(Verb.FAIL, member, error_share=percent / 100)
    execute(_simulate(directory, command, f"fails: {percent:g} % of its requests get an error"))


@sim_command.command("flap")
def flap_command(
    member: _Member,
    period: Annotated[
        str, typer.Option("--period", metavar="DURATION", help="Stopped for the first half, running for the second.")
    ] = "20s",
    count: Annotated[int, typer.Option("--count", metavar="N", min=0, help="Number of periods; 0 for no end.")] = 0,
    directory: _Dir = None,
) -> None:
    """Stop and start a member periodically."""
    command = FailureCommand(Verb.FLAP, member, period_s=_to_seconds(period, "--period"), count=count)
    execute(_simulate(directory, command, f"flaps: it stops and comes back every {period}"))


@sim_command.command("status")
def status_command(directory: _Dir = None, output: flags.OutputFormat = "table") -> None:
    """List the simulated members and their failures."""
    execute(_show(directory, output))


async def _simulate(directory: Path | None, command: FailureCommand, outcome: str) -> None:

    await send_command(_members_directory(directory), command)
    print(f"{command.member} {outcome}")


async def _show(directory: Path | None, output: str) -> None:

    members = await send_command(_members_directory(directory), FailureCommand(Verb.STATUS))
    now = SystemClock().now()
    rows = [_row(member, now) for member in members]
    print_rows(members, output, "no simulated members", rows, "NAME, STATE, SINCE, PID, SERVER", "DETAIL")


def _row(member: dict[str, Any], now: datetime) -> list[str]:

    since = to_age(now, datetime.fromisoformat(member["since"]))
    pid = "-" if member["pid"] is None else str(member["pid"])
    return [member["name"], member["state"], since, pid, member["server"], member["detail"] or "-"]


def _to_seconds(duration: str, option: str) -> float:
    try:
        return parse_duration(duration)
    except ValueError as error:
        raise typer.BadParameter(f"{option}: {error}") from None


def _members_directory(directory: Path | None) -> Path:
    """Return the fleet's directory; ConfigurationError when it does not exist."""
    state = KubeconfigContext(None, "").path.parent if directory is None else directory.expanduser()
    members = state.absolute() / "members"
    if not members.is_dir():
        raise ConfigurationError(
            f"{state} is not a state directory of `fedctl up`; give --dir DIR, or export KUBECONFIG=DIR/kubeconfig"
        )
    return members
