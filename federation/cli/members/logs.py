"""`fedctl logs`: the logs of pods of all members, each line with the member and the pod that wrote it."""

import asyncio
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, NamedTuple
from urllib.parse import urlencode

import typer

from federation.apimachinery.durations import parse_duration
from federation.apimachinery.errors import ApiError, ClusterError, ConfigurationError
from federation.apimachinery.resources import PODS, Object
from federation.cli.members import memberflags
from federation.cli.members.access import Member
from federation.cli.members.fanout import PARTIAL, ask, describe_problem, find_members, print_problems
from federation.cli.members.lookup import Scope, find_kind, not_found, read_pods, target_of
from federation.terminal import candidates, flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext

_IDLE_S = 4 * 3600.0
"""How long a followed log may be silent; the host ends it after this time as well."""
_DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


def logs_command(
    target: Annotated[
        str,
        typer.Argument(
            metavar="[POD|KIND/NAME]",
            autocompletion=candidates.objects,
            show_default=False,
            help="A pod, or a workload for all of its pods.",
        ),
    ] = "",
    clusters: memberflags.Clusters = None,
    container: memberflags.Container = "",
    all_containers: Annotated[bool, typer.Option("--all-containers", help="Logs of all containers.")] = False,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Print new lines until Ctrl-C.")] = False,
    tail: Annotated[
        int | None, typer.Option("--tail", metavar="N", min=0, help="Lines of each log [all; 10 with -l].")
    ] = None,
    since: Annotated[str, typer.Option("--since", metavar="DURATION", help="Only newer lines, such as 5m.")] = "",
    timestamps: Annotated[bool, typer.Option("--timestamps", help="Print the time of each line.")] = False,
    previous: Annotated[bool, typer.Option("-p", "--previous", help="The log before the last restart.")] = False,
    prefix: Annotated[bool, typer.Option("--prefix/--no-prefix", help="Say where each of several logs is.")] = True,
    max_log_requests: Annotated[
        int, typer.Option("--max-log-requests", metavar="N", min=1, help="Logs to follow at the same time.")
    ] = 50,
    namespace: flags.Namespace = "",
    selector: flags.Selector = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    timeout: memberflags.Patience = None,
) -> None:
    """Print logs of pods in the members, each line with its cluster and pod.

    \b
    fedctl logs deployment/nginx --tail 5
    fedctl logs deployment/nginx -f --since 1m
    fedctl logs nginx-5d78-x2kls -C frankfurt
    fedctl logs -l app=web
    """  # noqa: D301  # the backspace keeps lines apart in the help
    if bool(target) is bool(selector):
        raise typer.BadParameter("give either POD, KIND/NAME or --selector")
    kind, name = memberflags.to_pods(target)
    try:
        since_s = max(1, round(parse_duration(since))) if since else None
    except ValueError as error:
        raise typer.BadParameter(f"--since: {error}") from error
    options = LogOptions(
        container=container,
        is_all_containers=all_containers,
        is_followed=follow,
        tail=10 if tail is None and selector else tail,
        since_s=since_s,
        has_timestamps=timestamps,
        is_previous=previous,
        has_prefix=prefix,
        streams_max=max_log_requests,
    )
    scope = memberflags.to_scope(namespace, clusters, selector, timeout, name, everywhere=False)
    execute(print_logs(KubeconfigContext(kubeconfig, context), kind, name, scope, options))


@dataclass(frozen=True, slots=True)
class LogOptions:
    """The part of each log to print; `streams_max` limits the logs that are followed at the same time."""

    container: str = ""
    is_all_containers: bool = False
    is_followed: bool = False
    tail: int | None = None
    since_s: int | None = None
    has_timestamps: bool = False
    is_previous: bool = False
    has_prefix: bool = True
    streams_max: int = 50


class Log(NamedTuple):
    """One container of one pod."""

    member: Member
    namespace: str
    pod: str
    container: str
    is_only_container: bool

    @property
    def title(self) -> str:
        """The part of the name in which this log differs from the others."""
        container = "" if self.is_only_container else f"/{self.container}"
        return f"{self.member.name}/{self.pod}{container}"


async def print_logs(context: KubeconfigContext, kind: str, name: str, scope: Scope, options: LogOptions) -> int:
    """Print the logs of a pod, of the pods of a workload, or for "" of those that the selector selects."""
    async with context.client() as host:
        members = await find_members(host, scope.clusters, scope.patience_s, scope.namespace)
        resource = await find_kind(host, members, kind)
        found = await ask(members, partial(read_pods, resource=resource, scope=scope, name=name))
        members_by_name = {member.name: member for member in members}
        logs = [
            log
            for cluster, pods in found.values.items()
            for pod in pods
            for log in logs_of(members_by_name[cluster], pod, options)
        ]
        if options.is_followed and len(logs) > options.streams_max:
            raise ConfigurationError(
                f"{len(logs)} logs to follow, more than --max-log-requests {options.streams_max};"
                " narrow them with -C or -l"
            )
        problems = await _print(logs, options)
    print_problems({**found.problems, **problems})
    if not logs:
        return (
            not_found("pod" if resource == PODS else f"pod of {resource.kind.lower()}", name, found.values)
            or found.code
        )
    return PARTIAL if found.problems or problems else 0


def logs_of(member: Member, pod: Object, options: LogOptions) -> list[Log]:
    """Return the logs of a pod: of the wanted container, of all, or of the default one."""
    spec, metadata = pod.get("spec") or {}, pod["metadata"]
    containers = [str(each["name"]) for each in spec.get("containers") or ()]
    if options.is_all_containers:
        wanted = [str(each["name"]) for each in spec.get("initContainers") or ()] + containers
    else:
        default = (metadata.get("annotations") or {}).get(_DEFAULT_CONTAINER)
        wanted = [options.container or (default if default in containers else containers[0])]
    namespace, is_only = str(metadata.get("namespace") or ""), len(containers) == 1
    return [Log(member, namespace, str(metadata["name"]), container, is_only) for container in wanted]


async def _print(logs: Sequence[Log], options: LogOptions) -> dict[str, str]:
    """Print the logs; return why some could not be read."""
    has_prefix, problems = options.has_prefix and len(logs) > 1, dict[str, str]()
    if options.is_followed:
        async with asyncio.TaskGroup() as group:
            for log in logs:
                group.create_task(_copy(log, options, problems, has_prefix=has_prefix))
        return problems
    silent: set[str] = set()
    for log in logs:
        if log.member.name not in silent and not await _copy(log, options, problems, has_prefix=has_prefix):
            silent.add(log.member.name)
    return problems


async def _copy(log: Log, options: LogOptions, problems: dict[str, str], *, has_prefix: bool) -> bool:
    """Print one log, or note why not; return whether the member answers."""
    prefix = f"[{log.title}] ".encode() if has_prefix else b""
    target, rest = target_of(PODS, log.namespace, log.pod, "log", _query(log, options)), b""
    try:
        async with log.member.open(target, "*/*", idle_s=_IDLE_S if options.is_followed else None) as body:
            async for piece in body:
                *lines, rest = (rest + piece).split(b"\n")
                _write(prefix + line + b"\n" for line in lines)
    except (ApiError, ClusterError) as error:
        problems[log.title] = describe_problem(log.member.name, error)
        return isinstance(error, ApiError)
    _write([prefix + rest + b"\n"] if rest else [])
    return True


def _query(log: Log, options: LogOptions) -> str:
    given: Mapping[str, str | None] = {
        "container": log.container,
        "follow": "true" if options.is_followed else None,
        "tailLines": None if options.tail is None else str(options.tail),
        "sinceSeconds": None if options.since_s is None else str(options.since_s),
        "timestamps": "true" if options.has_timestamps else None,
        "previous": "true" if options.is_previous else None,
    }
    return urlencode({key: value for key, value in given.items() if value is not None})


def _write(lines: Iterable[bytes]) -> None:
    sys.stdout.buffer.write(b"".join(lines))
    sys.stdout.buffer.flush()
