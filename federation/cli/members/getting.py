"""`fedctl get`: objects of all members in one table, with the columns that the members print."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from federation.api import names
from federation.apimachinery.resources import Object, Resource
from federation.cli.members import memberflags, tables, watching
from federation.cli.members.access import Member
from federation.cli.members.fanout import Answers, ask, find_members, print_problems
from federation.cli.members.lookup import Scope, find_kind, not_found, read_items, read_one, read_pages, split_words
from federation.cli.members.tables import Row
from federation.terminal import flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext
from federation.terminal.plaintext import print_columns, print_document, to_name


def get_command(
    words: memberflags.Words,
    clusters: memberflags.Clusters = None,
    namespace: flags.Namespace = "",
    everywhere: flags.AllNamespaces = False,
    selector: flags.Selector = "",
    watch: flags.Watch = False,
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    timeout: memberflags.Patience = 2,
    output: flags.ListFormat = "table",
) -> None:
    """List objects of the members, with the cluster that each is in.

    Reads all members at the same time, with your rights in them. The columns are those of `kubectl get`. If members do
    not answer, prints what the others have, and exits with 3.

    \b
    fedctl get pods
    fedctl get deployment nginx -C frankfurt -o yaml
    fedctl get nodes -o wide
    fedctl get pods -A -l app=web -w
    """  # noqa: D301  # the backspace keeps lines apart in the help
    kind, name = split_words(words)
    scope = memberflags.to_scope(namespace, clusters, selector, timeout, name, everywhere=everywhere)
    query = Query(kind, name, scope, output, watch)
    execute(get(KubeconfigContext(kubeconfig, context), query))


@dataclass(frozen=True, slots=True)
class Query:
    """What to print of which objects."""

    kind: str
    name: str
    scope: Scope
    output: str
    is_watched: bool = False


async def get(context: KubeconfigContext, query: Query) -> int:
    """Print objects of the members; return the exit code."""
    async with context.client() as host:
        members = await find_members(host, query.scope.clusters, query.scope.patience_s, query.scope.namespace)
        resource = await find_kind(host, members, query.kind)
        if query.is_watched:
            await watching.watch(members, resource, query.scope, query.name, query.output)
            return 0
        if query.output in ("table", "wide"):
            return await _print_table(members, resource, query)
        return await _print_objects(members, resource, query)


async def _print_table(members: Sequence[Member], resource: Resource, query: Query) -> int:
    found = await ask(members, partial(_rows, resource=resource, query=query))
    rows = [row for each in found.values.values() for row in each]
    if rows:
        headings, has_namespace = tables.headings_of(rows), resource.namespaced and not query.scope.namespace
        first = ["CLUSTER", *(["NAMESPACE"] if has_namespace else [])]
        print_columns([*first, *headings], tables.to_lines(rows, headings, has_namespace=has_namespace))
    return _finish(found, resource, query, is_empty=not rows)


async def _rows(member: Member, resource: Resource, query: Query) -> list[Row]:
    is_wide, scope = query.output == "wide", query.scope
    if query.name:
        one = await read_one(member, resource, scope.namespace, query.name, tables.ACCEPT)
        pages = [one] if one is not None else []
    else:
        pages = [page async for page in read_pages(member, resource, scope, tables.ACCEPT)]
    columns = tables.columns_of(pages[0], is_wide=is_wide) if pages else []
    return [row for page in pages for row in tables.to_rows(member.name, page, columns)]


async def _print_objects(members: Sequence[Member], resource: Resource, query: Query) -> int:
    found = await ask(members, partial(_objects, resource=resource, query=query))
    items = [item for each in found.values.values() for item in each]
    if query.output == "name":
        for item in items:
            print(item["metadata"]["annotations"][names.MEMBER_CLUSTER], to_name(item))
    elif query.name and len(items) == 1:
        print_document(items[0], query.output)
    elif items or not query.name:
        print_document({"apiVersion": "v1", "kind": "List", "items": items}, query.output)
    return _finish(found, resource, query, is_empty=not items)


async def _objects(member: Member, resource: Resource, query: Query) -> list[Object]:
    if query.name:
        one = await read_one(member, resource, query.scope.namespace, query.name)
        return [tables.with_cluster(member.name, one)] if one is not None else []
    return [tables.with_cluster(member.name, item) for item in await read_items(member, resource, query.scope)]


def _finish(
    found: Answers[list[Row]] | Answers[list[Object]], resource: Resource, query: Query, *, is_empty: bool
) -> int:
    """Say that there is nothing if every member that answered said so, report the others, return the exit code."""
    print_problems(found.problems)
    if not is_empty or not found.values:
        return found.code
    if query.name:
        return not_found(resource.group_resource, query.name, found.values)
    if query.output in ("table", "wide"):
        inside = f" in namespace {query.scope.namespace}" if resource.namespaced and query.scope.namespace else ""
        not_found(resource.plural + inside, "", found.values)
    return found.code
