"""`fedctl render` and `fedctl diff`: the manifests of an object in its clusters, and how the members differ from them.

Exit codes of `diff` are those of `kubectl diff`: 0 no difference, 1 differences, more than 1 an error.
"""

import difflib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
import yaml

from federation.apimachinery.errors import ConfigurationError, FederationError
from federation.apimachinery.resources import Object, Resource
from federation.planning.drift.foreign import describe_foreign
from federation.planning.rendering.comparison import without_bookkeeping
from federation.plans.kinds import ServedKinds, split_target
from federation.terminal import candidates, flags
from federation.terminal.execution import execute, fail
from federation.terminal.kubeconfigcontext import KubeconfigContext, get_json
from federation.terminal.plaintext import print_document
from federation.terminal.printing import make_console

if TYPE_CHECKING:
    from federation.client.http import HTTPClient

SAME, DIFFERENT, UNKNOWN = 0, 1, 2
_PATH = "/federation/v1/manifests"
STYLES = {"+": "green", "-": "red", "@": "cyan"}
"""The colours of lines of a diff, by their first character."""
Manifests = Mapping[str, Any]
"""One cluster of the answer of `/federation/v1/manifests`."""
Target = Annotated[
    list[str],
    typer.Argument(metavar="KIND/NAME", autocompletion=candidates.objects, help="For example deployment/nginx."),
]


def render_command(
    target: Target,
    cluster: Annotated[
        str, typer.Option("--cluster", metavar="NAME", autocompletion=candidates.clusters, help="The member.")
    ],
    namespace: flags.Namespace = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    output: Annotated[
        Literal["yaml", "json"], typer.Option("-o", "--output", metavar="FORMAT", help="yaml or json.")
    ] = "yaml",
) -> None:
    """Print the manifest that is applied in a cluster.

    It is what the control plane sends: the object with all overrides, without fields that belong to the member. Values
    of Secrets are hidden.
    """
    execute(render(KubeconfigContext(kubeconfig, context), "/".join(target), namespace, cluster, output))


def diff_command(
    target: Target,
    namespace: flags.Namespace = "",
    cluster: Annotated[
        str, typer.Option("--cluster", metavar="NAME", autocompletion=candidates.clusters, help="Only this member.")
    ] = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
) -> None:
    """Show how an object in the members differs from what is wanted.

    Only fields that the federation owns are compared: - is what the member has, + what is wanted. Fields that somebody
    else set in a member are named if they decide whether, and on which nodes, pods run.

    Exit code: 0 no difference, 1 differences, 2 an error or a member that cannot be compared.
    """
    try:
        execute(diff(KubeconfigContext(kubeconfig, context), "/".join(target), namespace, cluster))
    except FederationError as error:
        fail(str(error), code=2)


async def read_manifests(
    host: "HTTPClient", resource: Resource, namespace: str, name: str, cluster: str = ""
) -> list[Manifests]:
    """Return the object's manifests in one cluster, or in all for ""."""
    query = {"group": resource.group, "kind": resource.kind, "name": name, "cluster": cluster}
    if resource.namespaced:
        query["namespace"] = namespace
    found: list[Manifests] = []
    while True:
        answer = await get_json(host, _PATH, query)
        assert isinstance(answer, dict)
        found += answer["items"]
        if not (token := answer["metadata"].get("continue")):
            return found
        query["continue"] = token


async def render(context: KubeconfigContext, target: str, namespace: str, cluster: str, output: str) -> None:
    """Print the manifest that is applied in the cluster."""
    kind, name = split_target(target, repr(target))
    async with context.client() as host:
        resource = await ServedKinds(host).named(kind)
        found = await read_manifests(host, resource, namespace, name)
    title = f"{resource.kind.lower()}/{name}"
    item = next((each for each in found if each["cluster"] == cluster), None)
    if item is None or (item["wanted"] is None and not item["error"]):
        clusters = ", ".join(each["cluster"] for each in found if each["wanted"] is not None)
        raise ConfigurationError(
            f"{title} is not placed in {cluster}; "
            + (f"it is in {clusters}" if clusters else f"`fedctl why {title}` says why it is nowhere")
        )
    if item["error"]:
        raise ConfigurationError(f"{title} cannot be rendered for {cluster}: {item['error']}")
    print_document(item["wanted"], output)


async def diff(context: KubeconfigContext, target: str, namespace: str, cluster: str) -> int:
    """Print how the members differ from what is wanted; return the exit code."""
    kind, name = split_target(target, repr(target))
    async with context.client() as host:
        resource = await ServedKinds(host).named(kind)
        found = await read_manifests(host, resource, namespace, name, cluster)
        if not found:
            await host.get(resource, name, namespace if resource.namespaced else "")  # NotFound for a wrong name
            where = f" in {cluster}" if cluster else ""
            raise ConfigurationError(f"{resource.kind.lower()}/{name} is placed nowhere{where}; see `fedctl why`")
    print_differences(found)
    codes = {difference_code(item) for item in found}
    return DIFFERENT if DIFFERENT in codes else max(codes)


def difference_code(item: Manifests) -> int:
    """Return whether a cluster has what is wanted; UNKNOWN while the cluster or its cache gives no answer."""
    if item["error"] or item["applied"] == "unknown":
        return UNKNOWN
    if item["wanted"] is None:  # a kept object is not wanted any more and stays
        return DIFFERENT if item["live"] is not None and item["status"] != "Kept" else SAME
    is_other = item["applied"] != "yes" or bool(item.get("foreign"))
    return DIFFERENT if is_other or to_lines(item["live"], item["wanted"]) else SAME


def to_lines(before: Object | None, after: Object | None) -> list[str]:
    """Return the unified diff of two manifests, without its two header lines."""
    old, new = (_yaml(side) for side in (before, after))
    return list(difflib.unified_diff(old, new, lineterm="", n=3))[2:]


def _yaml(manifest: Object | None) -> list[str]:
    if not manifest:
        return []
    return yaml.safe_dump(without_bookkeeping(manifest), sort_keys=True, allow_unicode=True).splitlines()


def print_differences(items: Sequence[Manifests]) -> None:
    """Print one diff per cluster, equal ones once for all of their clusters; - is the member, + is wanted."""
    console = make_console()
    clusters_by_text: dict[tuple[str, ...], list[str]] = {}
    for item in items:
        if (code := difference_code(item)) != SAME:
            clusters_by_text.setdefault(tuple(_text(item, code)), []).append(item["cluster"])
    for number, (lines, clusters) in enumerate(clusters_by_text.items()):
        console.print(("\n" if number else "") + ", ".join(clusters), style="bold", markup=False, soft_wrap=True)
        for line in lines:
            console.print(line, style=STYLES.get(line[:1]), markup=False, soft_wrap=True)


def _text(item: Manifests, code: int) -> list[str]:
    reason = ": ".join(filter(None, (item["status"] if item["status"] != "OK" else "", item["message"])))
    head = [f"  {reason}"] if reason else []
    if code == UNKNOWN:
        why = item["error"] or "the control plane does not know what the member has"
        return [*head, f"  cannot be compared: {why}"]
    lines = to_lines(item["live"], item["wanted"])
    if foreign := describe_foreign(tuple(item.get("foreign") or ())):
        lines = [f"  {foreign}", *lines]
    if not lines:
        lines = ["  an earlier version is applied; fields that have left the template are still there"]
    return [*head, *lines]
