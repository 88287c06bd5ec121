"""`fedctl describe`: objects of the members in words, with their events."""

from functools import partial
from urllib.parse import urlencode

from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import Forbidden
from federation.apimachinery.resources import EVENTS, Object, Resource
from federation.cli.members import memberflags
from federation.cli.members.access import Member
from federation.cli.members.description import describe
from federation.cli.members.fanout import ask, find_members, print_problems
from federation.cli.members.lookup import Scope, find_kind, not_found, read_items, read_one, split_words, target_of
from federation.terminal import flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext

_EVENTS_MAX = 50


def describe_command(
    words: memberflags.Words,
    clusters: memberflags.Clusters = None,
    namespace: flags.Namespace = "",
    everywhere: flags.AllNamespaces = False,
    selector: flags.Selector = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    timeout: memberflags.Patience = None,
) -> None:
    """Describe objects of the members: fields, conditions and events.

    \b
    fedctl describe pod nginx-5d78-x2kls
    fedctl describe deployment/nginx -C frankfurt
    """  # noqa: D301  # the backspace keeps lines apart in the help
    kind, name = split_words(words)
    scope = memberflags.to_scope(namespace, clusters, selector, timeout, name, everywhere=everywhere)
    execute(describe_objects(KubeconfigContext(kubeconfig, context), kind, name, scope))


async def describe_objects(context: KubeconfigContext, kind: str, name: str, scope: Scope) -> int:
    """Print the objects; return the exit code."""
    async with context.client() as host:
        members = await find_members(host, scope.clusters, scope.patience_s, scope.namespace)
        resource = await find_kind(host, members, kind)
        found = await ask(members, partial(_read, resource=resource, scope=scope, name=name))
    now = SystemClock().now()
    blocks = [
        "\n".join(describe(cluster, obj, events, now))
        for cluster, pairs in found.values.items()
        for obj, events in pairs
    ]
    print("\n\n\n".join(blocks), end="\n" if blocks else "")
    print_problems(found.problems)
    if found.values and not blocks:
        return not_found(resource.group_resource, name, found.values)
    return found.code


async def _read(member: Member, resource: Resource, scope: Scope, name: str) -> list[tuple[Object, list[Object]]]:
    if name:
        one = await read_one(member, resource, scope.namespace, name)
        items = [one] if one is not None else []
    else:
        items = await read_items(member, resource, scope)
    return [(item, await _events(member, item)) for item in items]


async def _events(member: Member, obj: Object) -> list[Object]:
    """Return the newest events about an object; none if the user may not read events."""
    metadata = obj["metadata"]
    query = urlencode({"fieldSelector": f"involvedObject.uid={metadata.get('uid')}", "limit": _EVENTS_MAX})
    try:
        answer = await member.read(target_of(EVENTS, metadata.get("namespace") or "", query=query))
    except Forbidden:
        return []
    return list(answer.get("items") or ())
