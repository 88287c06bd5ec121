"""`fedctl why KIND/NAME`: the decision about an object that is in force, and what came after it.

It only prints what the journal holds (`decisions.py`): the newest decision, or with `--at` the one of then. When
nothing was decided then, because the policy does not follow a change or is gone, the decision that put the object where
it is comes behind. `--diff` compares a decision with the one before (`whydiff.py`), `-o json` and `-o yaml` print the
journal's record unchanged. Of objects that the scheduler does not place it says who does (`whyfollows.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import orjson
import yaml
from rich.console import Console

from federation.api import names
from federation.api.resources import Object, Resource
from federation.base.clock import SystemClock, from_rfc3339, to_rfc3339_micro
from federation.base.errors import ConfigurationError, Forbidden, NotFound
from federation.cli.decisions import print_facts, print_scores, print_title
from federation.cli.moments import parse_moment
from federation.cli.plan.kinds import Kinds
from federation.cli.printing import print_field, to_age, to_console, to_count
from federation.cli.session import Session, get_json
from federation.cli.whydiff import print_difference
from federation.cli.whyfollows import Following, Placed, print_following, read_placed
from federation.client.http import HTTPClient
from federation.scheduling.comparison import compare
from federation.scheduling.explain import is_decided, is_in_force, kept_placement

_RECORDS_MAX = 20
"""How far it looks back for the decision in force; the journal keeps as many of one object by default."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: `target` is KIND/NAME (a kind, plural or short name, with or without its group)."""

    target: str
    namespace: str
    at: str = ""
    is_difference: bool = False
    output: str = "table"


@dataclass(frozen=True, slots=True)
class _Subject:
    """The object that is asked about; `source` is None when it does not exist, {} when the user may not read it."""

    resource: Resource
    namespace: str
    name: str
    source: Object | None
    placed: Placed

    def __str__(self) -> str:
        return f"{self.resource.kind.lower()}/{self.name}"


async def why(session: Session, question: Question) -> None:
    """Print a decision, or what changed by it."""
    kind_text, separator, name = question.target.partition("/")
    if not separator or not kind_text or not name or "/" in name:
        raise ConfigurationError(f"{question.target!r}: write KIND/NAME, for example deployment/nginx")
    query = {"name": name, "limit": str(_RECORDS_MAX)}
    if question.at:
        query["until"] = to_rfc3339_micro(parse_moment(question.at, SystemClock().now(), "--at"))
    async with session.client() as host:
        resource = await Kinds(host).named(kind_text)
        query |= {"kind": resource.kind, "group": resource.group}
        if resource.namespaced:
            query["namespace"] = question.namespace
        answer = await get_json(host, "/federation/v1/decisions", query)
        assert isinstance(answer, dict)
        subject = await _read(host, resource, question.namespace if resource.namespaced else "", name)
    _show(answer["items"], subject, question)


async def _read(host: HTTPClient, resource: Resource, namespace: str, name: str) -> _Subject:
    source: Object | None = {}
    try:
        source = await host.get(resource, name, namespace)
    except NotFound:
        source = None
    except Forbidden:
        pass
    return _Subject(resource, namespace, name, source, await read_placed(host, resource, namespace, name))


def _show(records: Sequence[Mapping[str, Any]], subject: _Subject, question: Question) -> None:
    following = None if question.at else subject.placed.following()
    if not records and following is None:
        raise ConfigurationError(_say_nothing_decided(subject, question))
    if not records and following is not None:
        _print_follower(subject, following, question.output)
    elif question.is_difference:
        _show_difference(records, subject, question.output)
    elif question.output != "table":
        _dump(records[0], question.output)
    else:
        _print(records, subject, following, is_now=not question.at)


def _show_difference(records: Sequence[Mapping[str, Any]], subject: _Subject, output: str) -> None:
    """Compare with the last time that the scheduler ran before it: what was only left aside decided nothing."""
    after, *earlier = records
    before = next((record for record in earlier if is_decided(record["explanation"])), next(iter(earlier), None))
    if before is None:
        raise ConfigurationError(f"{subject}: there is no decision before it to compare with")
    if output == "table":
        print_difference(after, before)
        return
    difference = compare(before["explanation"], after["explanation"]).to_json()
    _dump({"before": before, "after": after, "difference": difference}, output)


def _dump(value: Mapping[str, Any], output: str) -> None:
    if output == "json":
        print(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())
    else:
        print(yaml.safe_dump(orjson.loads(orjson.dumps(value)), sort_keys=False, allow_unicode=True), end="")


def _say_nothing_decided(subject: _Subject, question: Question) -> str:
    target = f"{subject} in namespace {subject.namespace}" if subject.namespace else str(subject)
    if question.at:
        return f"{target}: no decision that was made until then is kept; without --at you see the newest"
    if subject.source is None:
        return f"{target} does not exist, and no decision about it is kept"
    if not subject.placed.is_federated:
        return f"{target} stays here: no FederatedTypeConfig says that members get objects of its kind"
    if clusters := subject.placed.clusters():
        return f"{target} goes to {', '.join(clusters)}; the scheduler has nothing to do with that"
    if annotation := _left_alone_by(subject):
        return f"{target} was never scheduled: its annotation {annotation} forbids it; remove that to have it placed"
    follow = f"; or have a workload that is placed refer to it, or list it in the annotation {names.FOLLOWERS}"
    return (
        f"{target} was never scheduled: no existing policy applies to it; name one in its label"
        f" {names.PROPAGATION_POLICY_LABEL}, or select it in a policy's spec.resourceSelectors"
        f"{follow if subject.placed.may_follow else ''}"
    )


def _print_follower(subject: _Subject, following: Following, output: str) -> None:
    """Print why an object that no policy applies to is where it is."""
    if output != "table":
        _dump(following.to_json(), output)
        return
    console = to_console()
    print_title(console, str(subject), subject.namespace, "Following")
    print_following(console, following)


def _print(
    records: Sequence[Mapping[str, Any]], subject: _Subject, following: Following | None, *, is_now: bool
) -> None:
    console, record = to_console(), records[0]
    explanation = record["explanation"]
    print_title(console, str(subject), record["namespace"], record["outcome"])
    gone = _gone(record, subject)
    if gone and is_now:
        print_field(console, "gone", gone)
    elif is_now and (annotation := _left_alone_by(subject)):
        print_field(console, "now", f"nothing is decided about it because of its annotation {annotation}")
    print_facts(console, explanation)
    if following is not None:
        print_following(console, following)
    if (kept := kept_placement(explanation)) and not gone:
        print_field(console, "stays", kept)
    _print_decided(console, record)
    print_scores(console, explanation)
    if is_decided(explanation):
        return
    held = next((other for other in records[1:] if is_in_force(other["explanation"])), None)
    if held is not None:
        console.print("\n[bold]it is placed by the decision before:[/bold]")
        print_facts(console, held["explanation"])
        _print_decided(console, held)
        print_scores(console, held["explanation"])


def _print_decided(console: Console, record: Mapping[str, Any]) -> None:
    now, again = SystemClock().now(), ""
    if count := record.get("repeats"):
        last = to_age(now, from_rfc3339(record["lastAt"]))
        again = f"; {to_count(count, 'time')} again with the same result, last {last} ago"
    age = to_age(now, from_rfc3339(record["at"]))
    print_field(console, "decided", f"{age} ago, in {record['durationMs']:.1f} ms{again}")


def _left_alone_by(subject: _Subject) -> str:
    """Return the annotation that keeps the scheduler from looking at the object, "" when there is none."""
    annotations = ((subject.source or {}).get("metadata") or {}).get("annotations") or {}
    return next((key for key in (names.NO_FEDERATED_RESOURCE, names.NO_SCHEDULING) if annotations.get(key)), "")


def _gone(record: Mapping[str, Any], subject: _Subject) -> str:
    """Return that the decision was about an object that is not there any more, "" when it is."""
    if subject.source is None:
        return "the object does not exist any more; this is the last that was decided about it"
    created = (subject.source.get("metadata") or {}).get("creationTimestamp")
    if created and from_rfc3339(record["at"]) < from_rfc3339(created) - timedelta(seconds=1):
        return "this was decided about an earlier object of the same name"
    return ""
