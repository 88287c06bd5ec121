"""`fedctl why KIND/NAME`: explain an object's placement from the journal of scheduling decisions, and its delivery.

Prints the newest decision, or with `--at` the newest of that time. After a change that the policy does not follow, that
is the decision still in force, with a line about the change. After an impossible one the decision in force is printed
after it. `--diff` compares two decisions (`whydiff.py`); `-o json` and `-o yaml` print the journal's record, with the
delivery. For objects that follow others, see `whyfollowers.py`; for delivery, `whydelivery.py`; for policies,
`whypolicy.py`.
"""

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from federation.api import names
from federation.api.resources import CLUSTER_PROPAGATION_POLICIES, JOB_QUEUES, PROPAGATION_POLICIES
from federation.apimachinery.amounts import to_count
from federation.apimachinery.clock import SystemClock, from_rfc3339, to_rfc3339_micro
from federation.apimachinery.errors import ConfigurationError, Forbidden, NotFound
from federation.apimachinery.resources import Object, Resource
from federation.cli import whylist
from federation.cli.applications.deliveryview import Delivery, read_delivery
from federation.cli.whydelivery import print_delivery
from federation.cli.whydiff import print_difference
from federation.cli.whyfollowers import FederationState, FollowerPlacement, print_following, read_federation_state
from federation.cli.whypolicy import is_policy, why_policy
from federation.planning.waitingjobs import alternatives_of, describe_alternatives, place_of
from federation.planning.waves.policychanges import describe_version
from federation.plans.kinds import ServedKinds, split_target
from federation.plans.unknownnames import unknown_object
from federation.scheduling.decisiondiff import compare
from federation.scheduling.explanations import is_decided, is_in_force, kept_placement
from federation.scheduling.names import QUEUE_ADMISSION
from federation.scheduling.triggerwords import describe_deferral
from federation.terminal import candidates, flags
from federation.terminal.decisionview import print_inputs, print_scores, print_title
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext, get_json
from federation.terminal.plaintext import print_document, to_age
from federation.terminal.printing import make_console, print_field
from federation.terminal.timearguments import parse_time

if TYPE_CHECKING:
    from federation.client.http import HTTPClient
    from federation.scheduling.policymatching import PolicyIndex
_RECORDS_MAX = 20
"""Decisions to read when looking for the one in force; the journal's default limit per object."""
_WAITING = (names.REASON_QUEUED, "NoFeasibleCluster")
"""Outcomes of objects that may wait in a JobQueue."""


def why_command(
    target: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KIND/NAME]",
            autocompletion=candidates.objects,
            help="For example deployment/nginx; [all objects].",
        ),
    ] = None,
    namespace: flags.Namespace = "",
    everywhere: flags.AllNamespaces = False,
    failed: Annotated[
        bool, typer.Option("--failed", help="Of all objects, those with a problem; exit code 1 if there are some.")
    ] = False,
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    at: Annotated[
        str,
        typer.Option("--at", metavar="TIME", help="Decision in force at 2026-01-01T12:00:00Z, or 10m or 3d ago."),
    ] = "",
    diff: Annotated[bool, typer.Option("--diff", help="Compare with the previous decision.")] = False,
    output: flags.ListFormat = "table",
) -> None:
    """Explain where an object runs, and why.

    Shows for every cluster its replicas and scores, or the plugin that rejected it and the reason; then each step of
    the division. Without an object, lists all of the namespace, or of all namespaces with -A, and what keeps them.

    \b
    fedctl why deployment/web                 the newest decision
    fedctl why deployment/web --at 2h         the decision in force two hours ago
    fedctl why deployment/web --diff          what the newest decision changed
    fedctl why propagationpolicy/web          the objects that a policy applies to
    fedctl why -A --failed                    everything with a problem
    """  # noqa: D301  # the backspace keeps lines apart in the help
    host = KubeconfigContext(kubeconfig, context)
    if not target:
        if at or diff:
            raise typer.BadParameter("--at and --diff need KIND/NAME")
        execute(whylist.why_all(host, "" if everywhere else namespace, output, only_failed=failed))
        return
    if everywhere or failed or output in ("wide", "name"):
        raise typer.BadParameter("KIND/NAME excludes -A, --failed, -o wide and -o name")
    written = "/".join(target)  # accepts `deployment nginx` too, as kubectl does
    execute(why(host, Query(written, namespace, at, diff, output)))


@dataclass(frozen=True, slots=True)
class Query:
    """The command's arguments: `target` is KIND/NAME (a kind, plural or short name, with or without its group)."""

    target: str
    namespace: str
    at: str = ""
    is_difference: bool = False
    output: str = "table"


@dataclass(frozen=True, slots=True)
class _Target:
    """The object in query; `source` is None when it does not exist, {} when the user may not read it."""

    resource: Resource
    namespace: str
    name: str
    source: Object | None
    state: FederationState
    delivery: Delivery
    queue: str
    """Its place in the JobQueue in which it waits, "" if it waits in none."""
    alternatives: Sequence[Mapping[str, Any]]
    """The clusters that were compared for its deadline, the best one first."""
    waits: str
    """Why it has the version of its policy before a change in waves, "" if it has the present one."""
    policies: "PolicyIndex | None"
    """Those that may apply to it; none when there are decisions, or when the user may not read them."""

    def __str__(self) -> str:
        return f"{self.resource.kind.lower()}/{self.name}"


async def why(context: KubeconfigContext, query: Query) -> None:
    """Print a decision, or the difference from the previous one."""
    kind, name = split_target(query.target, repr(query.target))
    parameters = {"name": name, "limit": str(_RECORDS_MAX)}
    if query.at:
        parameters["until"] = to_rfc3339_micro(parse_time(query.at, SystemClock().now(), "--at"))
    async with context.client() as host:
        resource = await ServedKinds(host).named(kind)
        if is_policy(resource):
            if query.at or query.is_difference:
                raise ConfigurationError(f"{kind}: --at and --diff are for objects, not for policies; omit them")
            await why_policy(host, resource, query.namespace, name, query.output)
            return
        parameters |= {"kind": resource.kind, "group": resource.group}
        if resource.namespaced:
            parameters["namespace"] = query.namespace
        answer = await get_json(host, "/federation/v1/decisions", parameters)
        assert isinstance(answer, dict)
        namespace = query.namespace if resource.namespaced else ""
        target = await _read_target(host, resource, namespace, name, answer["items"])
        if target.source is None and not answer["items"] and not query.at and not target.delivery["clusters"]:
            problem = _no_decision_message(target, query)
            raise await unknown_object(host, problem, resource, name)
    _print_answer(answer["items"], target, query)


async def _read_target(
    host: "HTTPClient", resource: Resource, namespace: str, name: str, records: Sequence[Mapping[str, Any]]
) -> _Target:
    source: Object | None = {}
    try:
        source = await host.get(resource, name, namespace)
    except NotFound:
        source = None
    except Forbidden:
        pass
    delivery = await read_delivery(host, resource, namespace, name)
    state = await read_federation_state(host, resource, namespace, name)
    queue, alternatives = "", _compared(state.federated)
    if records and records[0]["outcome"] in _WAITING:
        with contextlib.suppress(Forbidden, NotFound):
            queues = (await host.list(JOB_QUEUES, namespace)).items
            queue = place_of(queues, resource.kind, name, SystemClock().now())
            alternatives = alternatives_of(queues, resource.kind, name)
    waits = await _read_change(host, records, state.federated) if records else ""
    policies = None if records else await _read_policies(host, namespace)
    return _Target(resource, namespace, name, source, state, delivery, queue, alternatives, waits, policies)


async def _read_change(
    host: "HTTPClient", records: Sequence[Mapping[str, Any]], federated: Mapping[str, Any] | None
) -> str:
    """Return why the object has the earlier version of its policy, "" if it has not or the user may not read it."""
    ref = records[0]["explanation"].get("policy") or {}
    if not ref.get("name") or not federated:
        return ""
    kind = PROPAGATION_POLICIES if ref.get("namespace") else CLUSTER_PROPAGATION_POLICIES
    with contextlib.suppress(Forbidden, NotFound):
        policy = await host.get(kind, ref["name"], ref.get("namespace") or "")
        return describe_version({**policy, "kind": kind.kind}, federated)
    return ""


def _compared(federated: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    """Return the clusters that were compared when the object was admitted."""
    text = ((federated or {}).get("metadata") or {}).get("annotations", {}).get(QUEUE_ADMISSION)
    return json.loads(text).get("alternatives", []) if text else []


async def _read_policies(host: "HTTPClient", namespace: str) -> "PolicyIndex":
    # Few objects have no decision, and the scheduler's modules take a fifth of the command's time.
    from federation.scheduling.policymatching import PolicyIndex  # noqa: PLC0415
    from federation.scheduling.policyspec import compile_valid  # noqa: PLC0415

    policies = PolicyIndex()
    for kind, scope in ((PROPAGATION_POLICIES, namespace), (CLUSTER_PROPAGATION_POLICIES, "")):
        if kind.namespaced is bool(scope):
            with contextlib.suppress(Forbidden):
                for policy in compile_valid((await host.list(kind, scope)).items):
                    policies.put(policy)
    return policies


def _print_answer(records: Sequence[Mapping[str, Any]], target: _Target, query: Query) -> None:
    following = None if query.at else target.state.following()
    if not records and following is None:
        if not query.at and target.delivery["clusters"] and query.output == "table":
            print_delivery(make_console(), target.delivery)
        raise ConfigurationError(_no_decision_message(target, query))
    if not records and following is not None:
        _print_follower(target, following, query.output)
    elif query.is_difference:
        _print_comparison(records, target, query.output)
    elif query.output != "table":
        print_document(records[0] if query.at else {**records[0], "delivery": target.delivery}, query.output)
    else:
        _print(records, target, following, is_now=not query.at)


def _print_comparison(records: Sequence[Mapping[str, Any]], target: _Target, output: str) -> None:
    """Compare the newest record with the last one before it in which the scheduler ran; deferred ones are skipped."""
    after, *earlier = records
    before = next((record for record in earlier if is_decided(record["explanation"])), next(iter(earlier), None))
    if before is None:
        raise ConfigurationError(f"{target}: no earlier decision to compare with is recorded")
    if output == "table":
        print_difference(after, before)
        return
    difference = compare(before["explanation"], after["explanation"]).to_json()
    print_document({"before": before, "after": after, "difference": difference}, output)


def _no_decision_message(target: _Target, query: Query) -> str:
    name = f"{target} in namespace {target.namespace}" if target.namespace else str(target)
    if query.at:
        return f"{name}: no decision from before that time is recorded; omit --at for the newest"
    if target.source is None:
        return f"{name} does not exist, and no decision about it is recorded"
    state, kind = target.state, {"apiVersion": target.resource.api_version, "kind": target.resource.kind}
    source = {**kind, **target.source} if target.source else {}
    from federation.scheduling.policymatching import PolicyIndex  # noqa: PLC0415  # see _read_policies
    from federation.scheduling.undecided import undecided_reason  # noqa: PLC0415

    reason = undecided_reason(
        source, state.type_, state.federated, target.policies or PolicyIndex(), may_follow=state.may_follow
    )
    return f"{name} {reason}"


def _print_follower(target: _Target, following: FollowerPlacement, output: str) -> None:
    """Print the leaders of an object that no policy applies to."""
    if output != "table":
        print_document({**following.to_json(), "delivery": target.delivery}, output)
        return
    console = make_console()
    print_title(console, str(target), target.namespace, "Following")
    if deletion := _deletion_note(target):
        print_field(console, "deleting", deletion)
    print_following(console, following)
    if held := target.state.held():
        print_field(console, "held", f"from {held}")
    print_delivery(console, target.delivery)


def _print(
    records: Sequence[Mapping[str, Any]], target: _Target, following: FollowerPlacement | None, *, is_now: bool
) -> None:
    console, record, deferred = make_console(), records[0], None
    if record["outcome"] == "Deferred" and (decided := _decision_in_force(records)) is not None:
        # What the policy does not follow has changed nothing: the decision before it is the answer.
        record, deferred = decided, record
    explanation = record["explanation"]
    print_title(console, str(target), record["namespace"], record["outcome"])
    deleted = _deleted_note(record, target)
    if deleted and is_now:
        print_field(console, "gone", deleted)
    elif is_now and (deletion := _deletion_note(target)):
        print_field(console, "deleting", deletion)
    elif is_now and (annotation := _scheduling_annotation(target)):
        print_field(console, "now", f"not scheduled any more because of its annotation {annotation}")
    if is_now and target.waits:
        print_field(console, "waits", target.waits)
    if is_now and target.queue:
        print_field(console, "queue", target.queue)
    for line in describe_alternatives(target.alternatives) if is_now else ():
        print_field(console, "deadline", line)
    print_inputs(console, explanation)
    if deferred is not None:
        age = to_age(SystemClock().now(), from_rfc3339(deferred["at"]))
        print_field(console, "since", f"{describe_deferral(deferred['explanation']['reason'])} ({age} ago)")
    if following is not None:
        print_following(console, following)
    if (kept := kept_placement(explanation)) and not deleted:
        print_field(console, "stays", kept)
    if is_now and (held := target.state.held()):
        print_field(console, "held", f"from {held}")
    _print_decision_time(console, record)
    print_scores(console, explanation)
    if not is_decided(explanation):
        _print_in_force(console, records)
    if is_now:
        print_delivery(console, target.delivery)


def _decision_in_force(records: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the decision before the newest one that is in force."""
    return next((other for other in records[1:] if is_in_force(other["explanation"])), None)


def _print_in_force(console: Console, records: Sequence[Mapping[str, Any]]) -> None:
    """Print the earlier decision that is in force after one that changed nothing."""
    in_force = _decision_in_force(records)
    if in_force is not None:
        console.print("\n[bold]in force is this earlier decision:[/bold]")
        print_inputs(console, in_force["explanation"])
        _print_decision_time(console, in_force)
        print_scores(console, in_force["explanation"])


def _print_decision_time(console: Console, record: Mapping[str, Any]) -> None:
    now, again = SystemClock().now(), ""
    if count := record.get("repeats"):
        last = to_age(now, from_rfc3339(record["lastAt"]))
        again = f"; {to_count(count, 'time')} again with the same result, last {last} ago"
    age = to_age(now, from_rfc3339(record["at"]))
    print_field(console, "decided", f"{age} ago, in {record['durationMs']:.1f} ms{again}")


def _scheduling_annotation(target: _Target) -> str:
    """Return the annotation that excludes the object from scheduling, "" when there is none."""
    annotations = ((target.source or {}).get("metadata") or {}).get("annotations") or {}
    return next((key for key in (names.NO_FEDERATED_RESOURCE, names.NO_SCHEDULING) if annotations.get(key)), "")


def _deletion_note(target: _Target) -> str:
    """Return since when the object is being deleted and what its deletion waits for, "" when it is not."""
    metadata = (target.source or {}).get("metadata") or {}
    if not (since := metadata.get("deletionTimestamp")):
        return ""
    finalizers = metadata.get("finalizers") or ()
    others = [each for each in finalizers if each != names.FEDERATE_FINALIZER]
    waits = ["its copies are deleted in the clusters"] if len(others) < len(finalizers) else []
    waits += [f"the finalizer {each} is removed, which the federation did not set" for each in others]
    return (
        f"since {to_age(SystemClock().now(), from_rfc3339(since))}; it ends when {', and '.join(waits) or 'it is gone'}"
    )


def _deleted_note(record: Mapping[str, Any], target: _Target) -> str:
    """Return the note that the decision is about an object that was deleted, "" when it exists."""
    if target.source is None:
        return "the object no longer exists; this is the last decision about it"
    created = (target.source.get("metadata") or {}).get("creationTimestamp")
    if created and from_rfc3339(record["at"]) < from_rfc3339(created) - timedelta(seconds=1):
        return "this decision is about an earlier object of the same name"
    return ""
