"""`fedctl logs`: the logs of pods of all members, each line with the member and the pod that wrote it."""

import asyncio
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple
from urllib.parse import urlencode

from federation.apimachinery.errors import ApiError, ClusterError, ConfigurationError
from federation.apimachinery.resources import PODS, Object
from federation.cli.members.access import Member
from federation.cli.members.fanout import PARTIAL, ask, describe_problem, find_members, print_problems
from federation.cli.members.lookup import Scope, find_kind, not_found, read_pods, target_of
from federation.terminal.kubeconfigcontext import KubeconfigContext

_IDLE_S = 4 * 3600.0
"""How long a followed log may be silent; the host ends it after this time as well."""
_DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


@dataclass(frozen=True, slots=True)
class LogOptions:
    """What to print of each log; `streams_max` limits the logs that are followed at the same time."""

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
