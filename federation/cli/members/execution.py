"""`fedctl exec`: a command in a container of a member, or in the same containers of all members."""

import asyncio
import os
import shutil
import signal
import sys
import termios
import threading
import tty
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Self
from urllib.parse import urlencode

import typer

from federation.apimachinery.errors import ApiError, ClusterError, ConfigurationError
from federation.apimachinery.resources import PODS, Resource
from federation.cli.members import channels, memberflags
from federation.cli.members.access import Member
from federation.cli.members.fanout import PARTIAL, Answers, ask, describe_problem, find_members, print_problems
from federation.cli.members.logs import Log, LogOptions, logs_of
from federation.cli.members.lookup import Scope, find_kind, not_found, read_pods, target_of
from federation.client.streams import MemberSocket
from federation.terminal import flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext

_CHUNK = 32 * 1024
Write = Callable[[int, bytes], None]
"""Takes the channel, STDOUT or STDERR, and what was written there."""


def exec_command(
    target: memberflags.PodWords,
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND [ARGUMENT]...", help="What to run.")],
    clusters: memberflags.Clusters = None,
    container: memberflags.Container = "",
    stdin: Annotated[bool, typer.Option("-i", "--stdin", help="Pass standard input on.")] = False,
    tty: Annotated[bool, typer.Option("-t", "--tty", help="Give the command a terminal.")] = False,
    everywhere: Annotated[bool, typer.Option("--all", help="Run it in every pod of every cluster.")] = False,
    namespace: flags.Namespace = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    timeout: memberflags.Patience = None,
) -> None:
    """Run a command in a container of a member.

    Of a workload, in its first running pod. Exits with the code of the command.

    \b
    fedctl exec -it nginx-5d78-x2kls -- sh
    fedctl exec deployment/nginx -C frankfurt -- hostname
    fedctl exec deployment/nginx --all -- hostname
    """  # noqa: D301  # the backspace keeps lines apart in the help
    if everywhere and (stdin or tty):
        raise typer.BadParameter("--all excludes --stdin and --tty")
    kind, name = memberflags.to_pods(target)
    scope = memberflags.to_scope(namespace, clusters, "", timeout, name, everywhere=False)
    given = Command(command, container, stdin, tty, everywhere)
    execute(run(KubeconfigContext(kubeconfig, context), kind, name, scope, given))


@dataclass(frozen=True, slots=True)
class Command:
    """A command, and how it runs."""

    argv: Sequence[str]
    container: str = ""
    has_stdin: bool = False
    is_tty: bool = False
    is_everywhere: bool = False


async def run(context: KubeconfigContext, kind: str, name: str, scope: Scope, command: Command) -> int:
    """Run the command; return its exit code."""
    async with context.client() as host:
        members = await find_members(host, scope.clusters, scope.patience_s, scope.namespace)
        resource = await find_kind(host, members, kind)
        places, found = await _places(members, resource, name, scope, command)
        if not places:
            print_problems(found.problems)
            what = "running pod" if resource == PODS else f"running pod of {resource.kind.lower()}"
            return not_found(what, name, found.values) or found.code
        if command.is_everywhere:
            return await _run_everywhere(places, command, found)
        place = choose(places, resource, name)
        print_problems(found.problems)
        if place.pod != name:
            print(f"fedctl: in {place.title}", file=sys.stderr)
        return await _run_here(place, command)


async def _places(
    members: Sequence[Member], resource: Resource, name: str, scope: Scope, command: Command
) -> tuple[list[Log], Answers[list[dict[str, object]]]]:
    """Return the containers in which the command can run, those of running pods."""
    found = await ask(members, partial(read_pods, resource=resource, scope=scope, name=name))
    by_name, options = {member.name: member for member in members}, LogOptions(container=command.container)
    running = [
        place
        for cluster, pods in found.values.items()
        for pod in pods
        if (pod.get("status") or {}).get("phase") == "Running"
        for place in logs_of(by_name[cluster], pod, options)
    ]
    return running, found


def choose(places: Sequence[Log], resource: Resource, name: str) -> Log:
    """Return the one container to run in; ConfigurationError if several clusters have one."""
    clusters = sorted({place.member.name for place in places})
    if len(clusters) > 1:
        title = f"{resource.kind.lower()}/{name}" if name else "that"
        raise ConfigurationError(
            f"{title} runs in {', '.join(clusters)}; choose one with -C CLUSTER, or --all for every pod"
        )
    return places[0]


async def _run_everywhere(places: Sequence[Log], command: Command, found: Answers[list[dict[str, object]]]) -> int:
    """Run the command in all containers at once, and print each line with its origin; return the first failure."""
    problems: dict[str, str] = {}

    async def one(place: Log) -> int:
        prefix = f"[{place.title}] ".encode() if len(places) > 1 else b""
        with _Lines(prefix) as lines:
            try:
                return await _exchange(place, command, lines.write)
            except (ApiError, ClusterError) as error:
                problems[place.title] = describe_problem(place.member.name, error)
                return 0

    codes = await asyncio.gather(*map(one, places))
    print_problems({**found.problems, **problems})
    return next(filter(None, codes), PARTIAL if found.problems or problems else 0)


class _Lines:
    """Writes whole lines, each with a prefix, so that several programs can write at the same time."""

    def __init__(self, prefix: bytes) -> None:
        self._prefix = prefix
        self._rest = {channels.STDOUT: b"", channels.STDERR: b""}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for channel, rest in self._rest.items():
            if rest:
                _print(channel, self._prefix + rest + b"\n")

    def write(self, channel: int, data: bytes) -> None:
        *lines, self._rest[channel] = (self._rest[channel] + data).split(b"\n")
        _print(channel, b"".join(self._prefix + line + b"\n" for line in lines))


async def _run_here(place: Log, command: Command) -> int:
    """Run the command with our terminal and standard input."""
    if command.is_tty and not sys.stdin.isatty():
        print("fedctl: standard input is no terminal, so the command gets none", file=sys.stderr)
        command = Command(command.argv, command.container, command.has_stdin)
    with _raw_terminal() if command.is_tty else nullcontext():
        return await _exchange(place, command, _print)


async def _exchange(place: Log, command: Command, write: Write) -> int:
    """Run the command in one container until it ends; return its exit code."""
    query = [("container", place.container), ("stdout", "true"), ("stderr", "false" if command.is_tty else "true")]
    query += [("stdin", "true")] if command.has_stdin else []
    query += [("tty", "true")] if command.is_tty else []
    query += [("command", word) for word in command.argv]
    target = target_of(PODS, place.namespace, place.pod, "exec", urlencode(query))
    async with place.member.websocket(target, channels.PROTOCOLS) as socket:
        feeding = asyncio.ensure_future(_feed(socket, command)) if command.has_stdin else None
        try:
            with _sizes(socket) if command.is_tty else nullcontext():
                return await _receive(socket, write)
        finally:
            if feeding is not None:
                feeding.cancel()
                await asyncio.gather(feeding, return_exceptions=True)


async def _receive(socket: MemberSocket, write: Write) -> int:
    while (message := await socket.receive()) is not None:
        data = message.encode() if isinstance(message, str) else message
        if not data:
            continue
        if data[0] in (channels.STDOUT, channels.STDERR):
            write(data[0], data[1:])
        elif data[0] == channels.ERROR:
            code, problem = channels.to_exit(data[1:])
            if problem:
                print(f"fedctl: {problem}", file=sys.stderr)
            return code
    raise ClusterError("the connection ended before the command did")


async def _feed(socket: MemberSocket, command: Command) -> None:
    """Send standard input, then its end."""
    async for data in _read_stdin():
        await socket.send(channels.to_message(channels.STDIN, data))
    end = channels.end_of_input(socket.subprotocol)
    if end is not None and not command.is_tty:
        await socket.send(end)


async def _read_stdin() -> AsyncIterator[bytes]:
    """Yield standard input as it arrives, whatever it is: a file, a pipe or a terminal.

    A daemon thread reads, because no event loop waits for regular files, and a thread of the loop's own executor would
    keep the process from ending while it waits for a key.
    """
    loop, pieces = asyncio.get_running_loop(), asyncio.Queue[bytes](maxsize=1)

    def read() -> None:
        data = b"-"
        while data:
            data = os.read(sys.stdin.fileno(), _CHUNK)
            with suppress(RuntimeError):  # the loop is closed: the command has ended
                asyncio.run_coroutine_threadsafe(pieces.put(data), loop).result()

    threading.Thread(target=read, name="stdin", daemon=True).start()
    while data := await pieces.get():
        yield data


@contextmanager
def _raw_terminal() -> Iterator[None]:
    """Pass keys on as they are while the block runs, Ctrl-C too."""
    before = termios.tcgetattr(sys.stdin)
    tty.setraw(sys.stdin, termios.TCSADRAIN)  # keeps what was typed ahead
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


@contextmanager
def _sizes(socket: MemberSocket) -> Iterator[None]:
    """Send the size of the terminal, now and whenever it changes."""
    loop, sending = asyncio.get_running_loop(), set[asyncio.Future[None]]()

    def send() -> None:
        size = shutil.get_terminal_size()
        task = asyncio.ensure_future(socket.send(channels.to_size(size.columns, size.lines)))
        sending.add(task)
        task.add_done_callback(sending.discard)

    send()
    loop.add_signal_handler(signal.SIGWINCH, send)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)


def _print(channel: int, data: bytes) -> None:
    stream = sys.stderr if channel == channels.STDERR else sys.stdout
    stream.buffer.write(data)
    stream.buffer.flush()
