"""`fedctl get`: objects of all members in one table, with the columns that the members print."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, TypeVar

import typer

from federation.api import names
from federation.apimachinery.resources import Object, Resource
from federation.cli.members import memberflags, tables, watching
from federation.cli.members.access import Member
from federation.cli.members.fanout import Answers, ask, find_members, print_problems
from federation.cli.members.lookup import Scope, find_kind, not_found, read_items, read_one, read_pages, split_targets
from federation.cli.members.tables import Row
from federation.terminal import candidates, flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext
from federation.terminal.plaintext import print_columns, print_document, to_name

T = TypeVar("T")


def get_command(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="KIND[,KIND...] [NAME...]",
            autocompletion=candidates.objects,
            help="pods, pods,services, deployment nginx, or deployment/nginx service/web.",
        ),
    ],
    clusters: memberflags.Clusters = None,
    namespace: flags.Namespace = "",
    everywhere: flags.AllNamespaces = False,
    selector: flags.Selector = "",
    watch: flags.Watch = False,
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    timeout: memberflags.Patience = None,
    output: flags.ListFormat = "table",
) -> None:
    """List objects of the members, with the cluster that each is in.

    Reads all members at the same time, with your rights in them. The columns are those of `kubectl get`. If members do
    not answer, prints what the others have, and exits with 3.

    \b
    fedctl get pods
    fedctl get deployments,services
    fedctl get deployment nginx -C frankfurt -o yaml
    fedctl get nodes -o wide
    fedctl get pods -A -l app=web -w
    """  # noqa: D301  # the backspace keeps lines apart in the help
    wanted = split_targets(words)
    scope = memberflags.to_scope(namespace, clusters, selector, timeout, any(wanted.values()), everywhere=everywhere)
    if watch and (len(wanted) > 1 or any(len(names) > 1 for names in wanted.values())):
        raise typer.BadParameter("--watch follows one kind, or one object: leave out the others")
    execute(get(KubeconfigContext(kubeconfig, context), Query(wanted, scope, output, watch)))


@dataclass(frozen=True, slots=True)
class Query:
    """The objects to print: their names by kind, none for all objects of a kind."""

    wanted: Mapping[str, Sequence[str]]
    scope: Scope
    output: str
    is_watched: bool = False

    @property
    def is_table(self) -> bool:
        """Whether the output is columns."""
        return self.output in ("table", "wide")


@dataclass(frozen=True, slots=True)
class Target:
    """One kind, and the names of the objects; none for all."""

    resource: Resource
    names: Sequence[str]


async def get(context: KubeconfigContext, query: Query) -> int:
    """Print objects of the members; return the exit code."""
    async with context.client() as host:
        members = await find_members(host, query.scope.clusters, query.scope.patience_s, query.scope.namespace)
        targets = [Target(await find_kind(host, members, kind), names) for kind, names in query.wanted.items()]
        if query.is_watched:
            (target,) = targets
            await watching.watch(members, target.resource, query.scope, "".join(target.names), query.output)
            return 0
        if query.is_table:
            rows = await _ask_all(members, targets, partial(_rows, query=query))
            _print_tables(targets, rows, query)
            return _finish(targets, rows, lambda row: row.name, query)
        objects = await _ask_all(members, targets, partial(_objects, query=query))
        _print_objects(targets, objects, query)
        return _finish(targets, objects, lambda item: str(item["metadata"]["name"]), query)


async def _ask_all(
    members: Sequence[Member], targets: Sequence[Target], read: Callable[[Member, Target], Awaitable[list[T]]]
) -> Answers[list[list[T]]]:
    """Return what each member has of each kind; all kinds are read at the same time."""

    async def read_all(member: Member) -> list[list[T]]:
        return await asyncio.gather(*(read(member, target) for target in targets))

    return await ask(members, read_all)


def _of(found: Answers[list[list[T]]], position: int) -> list[T]:
    """Return what all members have of one kind."""
    return [each for answer in found.values.values() for each in answer[position]]


def _print_tables(targets: Sequence[Target], found: Answers[list[list[Row]]], query: Query) -> None:
    """Print a table for each kind that has objects. With several kinds, names are KIND/NAME, as kubectl writes them."""
    is_first = True
    for position, target in enumerate(targets):
        rows = _of(found, position)
        if not rows:
            continue
        if len(targets) > 1:
            rows = [tables.with_kind(row, target.resource) for row in rows]
        headings, has_namespace = tables.headings_of(rows), target.resource.namespaced and not query.scope.namespace
        first = ["CLUSTER", *(["NAMESPACE"] if has_namespace else [])]
        print("" if is_first else "\n", end="")
        print_columns([*first, *headings], tables.to_lines(rows, headings, has_namespace=has_namespace))
        is_first = False


async def _rows(member: Member, target: Target, query: Query) -> list[Row]:
    resource, scope = target.resource, query.scope
    if target.names:
        found = [await read_one(member, resource, scope.namespace, name, tables.ACCEPT) for name in target.names]
        pages = [page for page in found if page is not None]
    else:
        pages = [page async for page in read_pages(member, resource, scope, tables.ACCEPT)]
    columns = tables.columns_of(pages[0], is_wide=query.output == "wide") if pages else []
    return [row for page in pages for row in tables.to_rows(member.name, page, columns)]


def _print_objects(targets: Sequence[Target], found: Answers[list[list[Object]]], query: Query) -> None:
    items = [item for position, _ in enumerate(targets) for item in _of(found, position)]
    has_names = any(target.names for target in targets)
    if query.output == "name":
        for item in items:
            print(item["metadata"]["annotations"][names.MEMBER_CLUSTER], to_name(item))
    elif has_names and len(items) == 1:
        print_document(items[0], query.output)
    elif items or not has_names:
        print_document({"apiVersion": "v1", "kind": "List", "items": items}, query.output)


async def _objects(member: Member, target: Target, query: Query) -> list[Object]:
    if not target.names:
        found = await read_items(member, target.resource, query.scope)
        return [tables.with_cluster(member.name, item) for item in found]
    read = [await read_one(member, target.resource, query.scope.namespace, name) for name in target.names]
    return [tables.with_cluster(member.name, one) for one in read if one is not None]


def _finish(targets: Sequence[Target], found: Answers[list[list[T]]], name_of: Callable[[T], str], query: Query) -> int:
    """Say what no member that answered has, report the others, return the exit code."""
    print_problems(found.problems)
    if not found.values:
        return found.code
    missing, is_empty = 0, True
    for position, target in enumerate(targets):
        present = {name_of(each) for each in _of(found, position)}
        is_empty = is_empty and not present
        for name in target.names:
            if name not in present:
                missing = not_found(target.resource.group_resource, name, found.values)
    if missing:
        return missing
    if is_empty and query.is_table:
        is_inside = query.scope.namespace and any(target.resource.namespaced for target in targets)
        inside = f" in namespace {query.scope.namespace}" if is_inside else ""
        not_found(", ".join(target.resource.plural for target in targets) + inside, "", found.values)
    return found.code
