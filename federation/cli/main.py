"""The commands of `fedctl` (also installed as `kubectl-fed`), and the exit codes of its errors.

Every `FederationError` becomes one line, `fedctl: …`, on standard error and exit code 1, wrong usage exit code 2. Each
command is one module, which is imported when the command runs or its help is asked for: all of them together take
seconds.
"""

import signal
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.main import get_command

from federation import __version__
from federation.apimachinery.errors import ApiError, FederationError, UnknownName
from federation.cli.commandtable import CommandTable
from federation.cli.parsing import quicken
from federation.terminal import candidates, flags
from federation.terminal.execution import fail, fail_output


class _Commands(CommandTable):
    """All commands under the headings of the help: module and first sentence; leaf features name their modules."""

    sections = {  # noqa: RUF012  # a constant
        "Start": {
            "demo": ("federation.cli.start", "Show a running federation."),
            "up": ("federation.cli.start", "Run a control plane with simulated members."),
            "serve": ("federation.cli.start", "Run a control plane for your own clusters."),
            "agent": (
                "federation.cli.agentprocess",
                "Connect this cluster to a federation that cannot reach it (pull mode).",
            ),
            "spread-webhook": ("federation.cli.spreadwebhook", "Spread the pods of one cluster by WorkloadSpreads."),
            "ready": ("federation.cli.ready", "Report whether the control plane is ready."),
            "kubeconfig": ("federation.cli.start", "Print the kubeconfig's path, or the file."),
            "ui": (
                "federation.cli.weblink",
                "Print a one-time link that opens the web UI with the credentials of the kubeconfig.",
            ),
            "version": ("federation.cli.start", "Print the version."),
        },
        "Clusters": {
            "join": ("federation.cli.membership", "Add a cluster to the federation."),
            "unjoin": ("federation.cli.membership", "Remove a cluster from the federation."),
            "clusters": ("federation.cli.clusterviews", "List the members, their health, taints and free resources."),
            "capacity": (
                "federation.cli.fleetcapacity",
                "Show the free room of the members, and which of them can be lost.",
            ),
            "leftovers": ("federation.cli.leftovers", "List what is left in members."),
            "cordon": ("federation.cli.tainting", "Keep new replicas out of a member."),
            "uncordon": ("federation.cli.tainting", "Let a member take replicas again."),
            "drain": ("federation.cli.draining", "Move the workloads of a member to other members."),
            "taint": ("federation.cli.tainting", "Add or remove taints of a member."),
            "token": ("federation.cli.agenttokens", "Registration tokens for the agents of clusters in pull mode."),
            "sim": (
                "federation.cli.sim",
                "Simulate failures of the members of a running `fedctl up` or `fedctl demo`.",
            ),
        },
        "Look into members": {
            "get": ("federation.cli.members.getting", "List objects of the members, with the cluster that each is in."),
            "describe": (
                "federation.cli.members.describing",
                "Describe objects of the members: fields, conditions and events.",
            ),
            "logs": (
                "federation.cli.members.logs",
                "Print logs of pods in the members, each line with its cluster and pod.",
            ),
            "exec": ("federation.cli.members.execution", "Run a command in a container of a member."),
            "top": ("federation.cli.members.top", "Show the CPU and memory that pods or nodes of the members use."),
        },
        "Explain and plan": {
            "why": ("federation.cli.why", "Explain where an object runs, and why."),
            "app": (
                "federation.cli.applications.command",
                "Show what belongs to a workload, and what a cluster lacks for it.",
            ),
            "plan": ("federation.cli.plan.command", "Show what a change would do, without changing anything."),
            "apply-plan": ("federation.cli.plan.command", "Apply a saved plan if it is still valid."),
            "review": (
                "federation.cli.plan.review",
                "Show what a change of a repository would do, as one comment for its review.",
            ),
            "replay": ("federation.cli.replay.command", "Decide recorded decisions again, also in another world."),
            "twin": (
                "federation.cli.twin.command",
                "Rehearse on a copy of the fleet, in this process and on a virtual clock.",
            ),
            "diff": ("federation.cli.rendered", "Show how an object in the members differs from what is wanted."),
            "render": ("federation.cli.rendered", "Print the manifest that is applied in a cluster."),
            "queue": ("", "List queues, or the jobs that wait in one and when they may start."),
            "topology": ("", "Plan and check how a sharded stateful service is spread over zones and nodes."),
        },
        "Steer": {
            "rollout": (
                "federation.cli.waverollouts",
                "Show and steer how new pod templates reach the clusters, in waves or at once.",
            ),
            "migrate": ("federation.cli.migrating", "Move workloads to other members."),
            "rebalance": ("federation.cli.rebalancing", "Divide replicas again, as if the object were new."),
            "holds": ("federation.cli.holds", "List moves that the guard holds."),
            "approve": ("federation.cli.holds", "Let the moves of a hold go on."),
            "undo": ("federation.cli.undo", "Restore the placement before the last move."),
        },
        "Move in": {
            "import": ("federation.cli.adopting", "Bring a workload that runs in a member under federation."),
            "adopt": (
                "federation.cli.adopting",
                "Take over objects that were in members before an object of the host.",
            ),
            "convert": (
                "",
                "Print manifests of Karmada, KubeFed or removed API versions as this federation takes them.",
            ),
        },
        "Operate": {
            "doctor": (
                "federation.cli.doctor",
                "Check host, store, certificates, members, deliveries, clocks and versions, and say what to do.",
            ),
            "support-bundle": (
                "federation.cli.supportbundle",
                "Write what helps to find a fault into one archive, without secrets.",
            ),
            "certs": ("federation.cli.certs", "List certificates and when they expire."),
            "encryption-key": ("federation.cli.encryptionkey", "Create the key that encrypts stored Secrets."),
            "backup": (
                "federation.cli.databases",
                "Back up objects, decisions and keys into one file, while the control plane runs.",
            ),
            "restore": (
                "federation.cli.databases",
                "Restore a backup into an empty directory or database, while no control plane runs.",
            ),
            "db": (
                "federation.cli.databases",
                "Check the database of a control plane, and change the version of its schema.",
            ),
            "host-manifests": ("federation.cli.hostmanifests", "Print what an existing API server needs as host."),
            "completion": ("federation.cli.start", "Print a script that completes commands, options and names."),
        },
    }


app = typer.Typer(
    cls=_Commands,
    help=(
        "One Kubernetes API in front of many clusters.\n\n"
        "To try it out: `fedctl demo`. For your own clusters: `fedctl serve --dir DIR`, then `fedctl join`."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(is_wanted: bool) -> None:  # a callback of typer
    if is_wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def global_options(
    ctx: typer.Context,
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    namespace: flags.GlobalNamespace = "",
    show_version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    # No docstring: it would replace the help of the app. The options may stand before a command, whose own ones win.
    del show_version
    given = {"kubeconfig": kubeconfig, "context": context, "namespace": namespace}
    defaults = {name: value for name, value in given.items() if value}
    if defaults and ctx.invoked_subcommand is not None and isinstance(ctx.command, CommandTable):
        command = ctx.command.get_command(ctx, ctx.invoked_subcommand)
        ctx.default_map = {ctx.invoked_subcommand: _for_all(command, defaults)}


def _for_all(command: object, defaults: dict[str, Any]) -> dict[str, Any]:
    """Return the defaults of every command of a group, in the form of typer's default map."""
    commands: dict[str, object] | None = getattr(command, "commands", None)
    return defaults if commands is None else {name: _for_all(each, defaults) for name, each in commands.items()}


_UsageError: Any = typer.BadParameter.__mro__[1]
"""typer's base of all errors of usage, which it does not export."""


def _fail_usage(error: Any) -> NoReturn:
    """Report wrong usage as one line; print the help of a group of commands that was called without a command."""
    message = error.format_message().replace("Value error, ", "")
    if "\n" in message:
        print(message, file=sys.stderr)
        sys.exit(2)
    hint = f" (see: {error.ctx.command_path} --help)" if error.ctx is not None else ""
    fail(f"{message.rstrip('.')}{hint}", code=2)


def main(arguments: list[str] | None = None) -> None:
    """Run fedctl with these arguments, those of the process by default, and exit."""
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # replaces the handler that `entry.py` installed
        candidates.prepare()
        name = "kubectl fed" if Path(sys.argv[0]).name == "kubectl-fed" else "fedctl"
        words = sys.argv[1:] if arguments is None else arguments
        sys.exit(
            quicken(get_command(app))(words, prog_name=name, complete_var=candidates.VARIABLE, standalone_mode=False)
        )
    except _UsageError as error:
        _fail_usage(error)
    except ApiError as error:
        fail(f"{error.message} ({error.reason})")
    except UnknownName as error:
        fail(str(error), code=2)
    except FederationError as error:
        fail(str(error))
    except OSError as error:
        fail_output(error)
    except BaseExceptionGroup as group:
        _fail_group(group)
    except KeyboardInterrupt:
        sys.exit(130)


def _fail_group(group: BaseExceptionGroup[BaseException]) -> None:
    """Report the expected error in a task group's failure; re-raise the group when it holds an unexpected one."""
    expected, rest = group.split(FederationError)
    if rest is not None or expected is None:
        raise group
    error: BaseException = expected
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    fail(str(error))


if __name__ == "__main__":
    main()
