"""`fedctl import` and `fedctl adopt`: bring workloads that run in members under federation without restarting a pod.

Both print first what the first write to the member would change, and refuse when it would change a pod template or
would place the object elsewhere. `import` computes that with the plan of its own manifests (`fedctl plan`), `adopt`
takes the manifest that waits to be applied. The member's object is read through the control plane.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from federation.api import names
from federation.api.resources import CLUSTER_PROPAGATION_POLICIES, PROPAGATION_POLICIES
from federation.api.secretvalues import compared_without_secret_values, without_secret_values
from federation.apimachinery.amounts import to_count
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import ApiError, ClusterError, ConfigurationError
from federation.apimachinery.listening import Patience
from federation.apimachinery.resources import NAMESPACES, Object, Resource
from federation.apiserver.semantics.kinds.builtin import builtin_kinds
from federation.cli.applications.deliveryview import read_delivery
from federation.cli.applications.imports import describe_applications
from federation.cli.foundobjects import Found, NamespaceContent, read_member, read_namespace
from federation.cli.plan.command import make_planner
from federation.cli.plan.onhost import NOT_CHECKED, plan_edits
from federation.cli.previoushosts import refuse_running_host
from federation.cli.rendered import STYLES, read_manifests, to_lines
from federation.client.storedkinds import StoredKinds
from federation.planning.federatedobject.imported import (
    adoption_annotations,
    import_problem,
    is_import_begun,
    namespace_source,
    to_source,
    without_defaults,
)
from federation.planning.rendering.comparison import owned_part
from federation.planning.rendering.restarts import changed_pod_fields
from federation.plans.edits import Edit, Verb, apply_edit, created_namespaces, dry_run, get_or_none
from federation.plans.inventory import PlanForbidden, read_if_allowed
from federation.plans.kinds import ServedKinds, split_target
from federation.plans.migration import volumes_left
from federation.scheduling.whatif.planresult import Action, ObjectPlan, Plan
from federation.scheduling.whatif.state import ObjectChange, ObjectSet, federated_types
from federation.terminal import candidates, flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext
from federation.terminal.printing import make_console

if TYPE_CHECKING:
    from federation.client.http import HTTPClient

_POLL_S = 0.3
Target = Annotated[
    list[str],
    typer.Argument(metavar="KIND/NAME", autocompletion=candidates.objects, help="For example deployment/nginx."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")]
AllowRestart = Annotated[
    bool, typer.Option("--allow-restart", help="Proceed although the pod template changes, so that pods restart.")
]
PreviousHost = Annotated[
    str,
    typer.Option(
        "--previous-host",
        metavar="FILE",
        help="Kubeconfig of the Karmada or KubeAdmiral that delivered the objects, to check that it is off; or: gone.",
    ),
]


def import_command(
    target: Annotated[
        str, typer.Argument(metavar="KIND[/NAME]", help="For example deployment/nginx or namespace/shop.")
    ],
    cluster: Annotated[
        str,
        typer.Option(
            "--from-cluster", metavar="NAME", autocompletion=candidates.clusters, help="The member that runs it."
        ),
    ],
    namespace: flags.Namespace = "",
    selector: Annotated[
        str, typer.Option("-l", "--selector", metavar="SELECTOR", help="All objects of the kind with these labels.")
    ] = "",
    policy: Annotated[
        str, typer.Option("--policy", metavar="NAME", help="Policy that places them [a new one: import-CLUSTER].")
    ] = "",
    dry_run: DryRun = False,
    allow_restart: AllowRestart = False,
    previous_host: PreviousHost = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    timeout: flags.Timeout = 60,
) -> None:
    """Bring a workload that runs in a member under federation.

    Creates the object on the host from the member's, without what the member filled in, and a policy that places it in
    this member only; the member's object is adopted and its pods keep running. What changes is shown first. A namespace
    is imported with all of its objects of federated kinds. What belongs to a workload and is not imported is named.
    Exit code: 0 imported, 1 refused or not managed in time.

    \b
    fedctl import --from-cluster east deployment/web -n shop
    fedctl import --from-cluster east deployment -l team=shop --dry-run
    fedctl import --from-cluster east namespace/shop
    """  # noqa: D301  # the backspace keeps lines apart in the help
    scope = Scope(namespace, dry_run, allow_restart, timeout, previous_host)
    execute(import_objects(KubeconfigContext(kubeconfig, context), target, cluster, selector, policy, scope))


def adopt_command(
    target: Target,
    clusters: Annotated[
        list[str] | None,
        typer.Option(
            "--cluster",
            metavar="NAME",
            autocompletion=candidates.clusters,
            help="Only in this member; may be repeated [all that refuse it].",
        ),
    ] = None,
    namespace: flags.Namespace = "",
    dry_run: DryRun = False,
    allow_restart: AllowRestart = False,
    previous_host: PreviousHost = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    timeout: flags.Timeout = 60,
) -> None:
    """Take over objects that were in members before an object of the host.

    For an object whose status in a cluster is AlreadyExists. What changes in each member is shown first.
    """
    scope = Scope(namespace, dry_run, allow_restart, timeout, previous_host)
    execute(adopt(KubeconfigContext(kubeconfig, context), "/".join(target), clusters or (), scope))


@dataclass(frozen=True, slots=True)
class Scope:
    """The options of both commands: the namespace, whether to write, whether pods may restart, and how long to wait.

    `previous_host` is the kubeconfig of the control plane that delivered the objects, "gone" if it no longer exists.
    """

    namespace: str
    is_dry_run: bool = False
    may_restart: bool = False
    timeout_s: float = 60.0
    previous_host: str = ""


@dataclass(frozen=True, slots=True)
class _Takeover:
    """One object in one cluster: what is applied over what is there."""

    title: str
    cluster: str
    wanted: Object
    live: Object

    def restarts(self) -> list[str]:
        return changed_pod_fields(self.wanted, self.live)


async def import_objects(
    context: KubeconfigContext, target: str, cluster: str, selector: str, policy: str, scope: Scope
) -> int:
    """Create the sources of a member's objects on the host, placed in that member only; return the exit code."""
    kind, _, name = target.partition("/")
    if bool(name) == bool(selector):
        raise ConfigurationError(f"{target!r}: write KIND/NAME, or KIND with --selector")
    async with make_planner(context) as planner, context.client() as host:
        resource = await _stored_kind(host, kind)
        world, edits = await read_if_allowed(planner.host, planner.chain), list[Edit]()
        followers: dict[str, dict[str, str]] = {}
        left: Collection[str] = ()
        if resource == NAMESPACES and name:
            scope = replace(scope, namespace=name)
            if isinstance(world, PlanForbidden):
                raise ConfigurationError(f"{world}; without that right, import the objects of the namespace by name")
            types = {type_.resource: type_ for type_ in federated_types(world, []).values()}
            content = await read_namespace(host, types.values(), cluster, name)
            found, left = content.found, content.left
            _print_left(content, cluster)
        else:
            found = await read_member(host, resource, cluster, scope.namespace, name, selector)
        if not found:
            matched = f"matches {selector!r}" if selector else f"in namespace {name} can be imported"
            raise ConfigurationError(
                f"no object{f' of kind {resource.kind}' if selector else ''} in {cluster} {matched}"
            )
        begun = await _refuse_problems(host, found, cluster)
        await refuse_running_host([each.live for each in found], scope.previous_host)
        is_namespaced = found[0].resource.namespaced
        if is_namespaced:
            edits += await _namespace_edits(host, cluster, scope.namespace)
            lives = [each.live for each in found]
            if isinstance(world, PlanForbidden):
                print(NOT_CHECKED)
            else:
                followers = await describe_applications(host, world, cluster, scope.namespace, lives, left)
        edits += [] if policy else await _policy_edits(host, cluster, scope.namespace if is_namespaced else "")
        label = _policy_label(is_namespaced=is_namespaced), policy or _policy_name(cluster)
        new = [each for each in found if each not in begun]
        for each in new:
            source = without_defaults(to_source(each.live, cluster, label), _defaults_of(each.resource))
            source["metadata"]["annotations"] |= followers.get(each.title, {})
            edits.append(Edit(each.title, Verb.APPLY, each.resource, each.namespace, each.name, source))
        created = created_namespaces(edits)
        changes = [await dry_run(host, edit, created) for edit in edits]
        takeovers = []
        if new and isinstance(world, PlanForbidden):
            plan = await plan_edits(host, edits, scope.namespace, world)
            # The plan of the host has no values of Secrets, so they are not compared.
            takeovers = [replace(each, live=without_secret_values(each.live)) for each in _of_plan(plan, cluster, new)]
        elif new and isinstance(world, ObjectSet):
            takeovers = _of_plan(await planner.plan(world, changes), cluster, new)
        _print_takeovers(takeovers)
        _refuse_restarts(takeovers, scope)
        if scope.is_dry_run:
            print(f"nothing was imported: --dry-run; {to_count(len(found), 'object')} can be")
            return 0
        await _apply_all(host, edits, changes)
        return await _wait(host, [(each, cluster) for each in found], scope, "imported from")


async def _stored_kind(host: "HTTPClient", kind: str) -> Resource:
    """Return the resource in the version that has all fields of its objects."""
    return await StoredKinds(host.transport).stored_in(await ServedKinds(host).named(kind))


async def _apply_all(host: "HTTPClient", edits: Sequence[Edit], changes: Sequence[ObjectChange]) -> None:
    """Write everything; ConfigurationError says how to go on after a failure in the middle."""
    for done, (edit, change) in enumerate(zip(edits, changes, strict=True)):
        try:
            await apply_edit(host, edit, change.before)
        except (ApiError, ClusterError) as error:
            raise ConfigurationError(
                f"{edit.origin}: {error}; {done} of {len(edits)} writes are done and stay. Run the command again to go"
                " on, or take it back with: kubectl delete --cascade=orphan"
            ) from error


def _print_left(content: NamespaceContent, cluster: str) -> None:
    """Name what is not imported, and the data that would not move with what is."""
    for title, reason in content.left.items():
        print(f"left in {cluster}: {title}: {reason}")
    for line in volumes_left([each.live for each in content.found]):
        print(f"{line}: its data stays in {cluster} when it moves")


async def adopt(context: KubeconfigContext, target: str, clusters: Sequence[str], scope: Scope) -> int:
    """Let the federation take over the objects that stand in the way of an object of the host; return the exit code."""
    kind, name = split_target(target, repr(target))
    async with context.client() as host:
        resource = await _stored_kind(host, kind)
        namespace = scope.namespace if resource.namespaced else ""
        source = await host.get(resource, name, namespace)
        items = {item["cluster"]: item for item in await read_manifests(host, resource, namespace, name)}
        waiting = [each for each, item in items.items() if item["status"] == "AlreadyExists"]
        if unknown := sorted(set(clusters).difference(waiting)):
            raise ConfigurationError(f"{target}: nothing is in its way in {', '.join(unknown)}; see `fedctl why`")
        if not waiting:
            raise ConfigurationError(f"{target}: nothing is in its way in any cluster, so there is nothing to adopt")
        takeovers = []
        for cluster in clusters or waiting:
            if items[cluster]["error"]:
                raise ConfigurationError(f"{target} cannot be rendered for {cluster}: {items[cluster]['error']}")
            (there,) = await read_member(host, resource, cluster, namespace, name)
            takeovers.append(_Takeover(target, cluster, items[cluster]["wanted"], there.live))
        await refuse_running_host([each.live for each in takeovers], scope.previous_host)
        _print_takeovers(takeovers)
        _refuse_restarts(takeovers, scope)
        if scope.is_dry_run:
            print("nothing was adopted: --dry-run")
            return 0
        present = source["metadata"].get("annotations") or {}
        wanted = adoption_annotations(present, [each.cluster for each in takeovers])
        body: Object = {"metadata": {"annotations": wanted}}
        await apply_edit(host, Edit(target, Verb.MERGE, resource, namespace, name, body), source)
        return await _wait(host, [(Found(resource, source), each.cluster) for each in takeovers], scope, "adopted in")


async def _refuse_problems(host: "HTTPClient", found: Sequence[Found], cluster: str) -> list[Found]:
    """Return the objects whose import has begun already; ConfigurationError for those that cannot be imported."""
    problems, begun = [], []
    for each in found:
        problem = import_problem(each.live)
        source = None if problem else await get_or_none(host, each.resource, each.namespace, each.name)
        if source is not None and is_import_begun(source, cluster):
            begun.append(each)
            print(f"{each.title}: its import goes on")
        elif source is not None:
            problem = f"the host has one already; use: fedctl adopt {each.title}"
        if problem:
            problems.append(f"{each.title}: {problem}")
    if problems:
        raise ConfigurationError("; ".join(problems))
    return begun


async def _namespace_edits(host: "HTTPClient", cluster: str, name: str) -> list[Edit]:
    """Return the creation of the namespace as the member has it; none if the host has one."""
    if await get_or_none(host, NAMESPACES, "", name) is not None:
        return []
    [there] = await read_member(host, NAMESPACES, cluster, "", name)
    source = namespace_source(there.live, cluster)
    return [Edit(f"namespace/{name}", Verb.APPLY, NAMESPACES, "", name, source)]


def _policy_name(cluster: str) -> str:
    return f"import-{cluster}"


def _policy_label(*, is_namespaced: bool) -> str:
    return names.PROPAGATION_POLICY_LABEL if is_namespaced else names.CLUSTER_PROPAGATION_POLICY_LABEL


async def _policy_edits(host: "HTTPClient", cluster: str, where: str) -> list[Edit]:
    """Return the creation of a policy that places in the cluster only; none when it exists as it should be."""
    policy = PROPAGATION_POLICIES if where else CLUSTER_PROPAGATION_POLICIES
    name = _policy_name(cluster)
    spec: Object = {"schedulingMode": "Duplicate", "placement": [{"cluster": cluster}]}
    present = await get_or_none(host, policy, where, name)
    if present is not None:
        if any(present["spec"].get(key) != value for key, value in spec.items()):
            raise ConfigurationError(f"{policy.kind} {name} was changed; name the policy to use with --policy")
        return []
    metadata = {"name": name, **({"namespace": where} if where else {})}
    body = {"apiVersion": policy.api_version, "kind": policy.kind, "metadata": metadata, "spec": spec}
    return [Edit(f"the policy {name}", Verb.APPLY, policy, where, name, body)]


def _defaults_of(resource: Resource) -> Callable[[Object], None]:
    """Return the function that fills the defaults of a built-in kind; those of custom resources are not known here."""
    for info in builtin_kinds():
        if info.resource == resource:
            return info.strategy.default
    return lambda _: None


def _of_plan(plan: Plan, cluster: str, found: Sequence[Found]) -> list[_Takeover]:
    """Return what the objects would apply; ConfigurationError unless each goes to the cluster, and only there."""
    planned = {(obj.resource.group_kind, obj.namespace, obj.name): obj for obj in plan.objects}
    takeovers = []
    for each in found:
        obj = planned.pop((each.resource.group_kind, each.namespace, each.name), None)
        if obj is None:
            raise ConfigurationError(f"{each.title}: {'; '.join(plan.problems)}")
        takeovers.append(_Takeover(obj.target, cluster, _manifest_in(obj, cluster), each.live))
    if others := sorted(obj.target for obj in planned.values() if obj.action is not Action.NONE):
        print(f"also changes in members: {', '.join(others)}")
    return takeovers


def _manifest_in(obj: ObjectPlan, cluster: str) -> Object:
    rows = {row.cluster: row.after for row in obj.rows if row.after is not None}
    after = rows.pop(cluster, None)
    if after is None:
        reason = "; ".join(filter(None, (obj.reason, *obj.problems)))
        raise ConfigurationError(f"{obj.target}: the policy does not place it in {cluster}: {reason}")
    if rows:
        raise ConfigurationError(
            f"{obj.target}: the policy places it in {', '.join(sorted(rows))} too; name another one"
        )
    if after.error:
        raise ConfigurationError(f"{obj.target}: {after.error}")
    return after.manifest


def _print_takeovers(takeovers: Sequence[_Takeover]) -> None:
    """Print what the first write to each member changes; - is what the member has."""
    console = make_console()
    for each in takeovers:
        wanted = _without_own_marks(each.wanted)
        held = owned_part(wanted, each.live)
        lines = to_lines(
            compared_without_secret_values(held, wanted, "member"),
            compared_without_secret_values(wanted, each.live, "wanted"),
        )
        what = "changes:" if lines else "only the federation's label and annotations are added"
        console.print(f"{each.title} in {each.cluster}: {what}", style="bold", markup=False, soft_wrap=True)
        for line in lines:
            console.print(line, style=STYLES.get(line[:1]), markup=False, soft_wrap=True)


def _without_own_marks(manifest: Object) -> Object:
    metadata = dict(manifest["metadata"])
    for field, mark in (("labels", names.MANAGED_LABEL), ("annotations", names.TEMPLATE_REVISION)):
        kept = {key: value for key, value in (metadata.pop(field, None) or {}).items() if key != mark}
        if kept:
            metadata[field] = kept
    return {**manifest, "metadata": metadata}


def _refuse_restarts(takeovers: Sequence[_Takeover], scope: Scope) -> None:
    changed = {f"{each.title} in {each.cluster}": fields for each in takeovers if (fields := each.restarts())}
    if not changed:
        return
    listed = "; ".join(f"{title}: {', '.join(fields)}" for title, fields in changed.items())
    if not scope.may_restart:
        raise ConfigurationError(
            f"the pods would restart, because their template changes ({listed}); change the object or its overrides so"
            " that nothing differs, or give --allow-restart"
        )
    print(f"pods restart: {listed}")


async def _wait(host: "HTTPClient", objects: Sequence[tuple[Found, str]], scope: Scope, done: str) -> int:
    """Wait until the members' objects are managed; return the exit code."""
    clock = SystemClock()
    patience = Patience(clock, scope.timeout_s)
    pending = list(objects)
    while pending:
        obj, cluster = pending[0]
        delivery = await read_delivery(host, obj.resource, obj.namespace, obj.name)
        row = next((each for each in delivery["clusters"] if each["cluster"] == cluster), None)
        if row is not None and (row["status"], row["applied"]) == ("OK", "yes"):
            print(f"{obj.title} {done} {cluster}")
            pending.pop(0)
        elif patience.is_over():
            state = ": ".join(filter(None, (row["status"], row["message"]))) if row is not None else "not placed yet"
            print(f"{obj.title} is not managed in {cluster} after {scope.timeout_s:g} s: {state}")
            return 1
        else:
            await asyncio.sleep(_POLL_S)
    return 0
