"""The steps of `fedctl review`: what a change of a repository's manifests would do, as a comment and a plan file.

The host computes the plan, so the user needs no right to write, and none to read Secrets. On an API server of others,
which computes no plans, `fedctl` does it with the rights of its user, as `fedctl plan` does.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import orjson
import typer

from federation.api import names
from federation.apimachinery.controlcharacters import escape
from federation.apimachinery.errors import (
    ApiError,
    BadRequest,
    ConfigurationError,
    Conflict,
    FederationError,
    Forbidden,
    Invalid,
)
from federation.cli.plan.command import make_planner, request_plan
from federation.plans.inventory import kinds_of, read_inventory
from federation.plans.planfile import PlanFile, basis_from_json, to_plan_file, write_plan_file
from federation.plans.planner import Planner
from federation.plans.repositorychanges import compare_files, with_annotation
from federation.plans.requestedchanges import RequestedChanges, find_deletions, resolve_changes, to_edits
from federation.plans.review import Objection, Review, to_json_document
from federation.plans.reviewcomment import LENGTH_MAX, to_comment
from federation.plans.unknownnames import check_namespace
from federation.scheduling.whatif.planresult import Plan, from_json
from federation.scheduling.whatif.state import ObjectSet
from federation.terminal import flags
from federation.terminal.execution import execute, fail, fail_output
from federation.terminal.kubeconfigcontext import KubeconfigContext
from federation.terminal.repository import Difference, read_commits, read_directories

PASSES, FAILS = 0, 1
_LENGTH_MIN = 2_000
_CHANGE_LENGTH_MAX = 200
_CHANGE = re.compile(r"[ -~]*")
"""The name of a change becomes an annotation, and is printed by terminals."""


@dataclass(frozen=True, slots=True)
class Source:
    """The two sides to compare: a commit with its base, or two directories."""

    base: str = ""
    head: str = "HEAD"
    paths: Sequence[str] = ()
    before: Path | None = None
    after: Path | None = None

    async def read(self) -> Difference:
        """Return the files that differ."""
        if self.before is None or self.after is None:
            return await read_commits(self.base, self.head, self.paths)
        return await asyncio.to_thread(read_directories, self.before, self.after)


@dataclass(frozen=True, slots=True)
class ReviewOptions:
    """How a review is computed and printed."""

    namespace: str
    change: str = ""
    prunes: bool = True
    allowed: Sequence[str] = ()
    lost_max: int | None = None
    form: str = "markdown"
    length_max: int = LENGTH_MAX
    out: Path | None = None


def review_command(
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="[PATH]", help="Directories or files of the repository; [all].")
    ] = None,
    base: Annotated[
        str, typer.Option("--base", metavar="COMMIT", help="The branch that the change is for, such as origin/main.")
    ] = "",
    head: Annotated[str, typer.Option("--head", metavar="COMMIT", help="The change; its files are not read.")] = "HEAD",
    before: Annotated[
        Path | None, typer.Option("--before", metavar="DIR", help="Rendered manifests without the change, not Git.")
    ] = None,
    after: Annotated[
        Path | None, typer.Option("--after", metavar="DIR", help="Rendered manifests with the change, not Git.")
    ] = None,
    change: Annotated[
        str, typer.Option("--change", metavar="NAME", help="Name of the change, for `fedctl why` [the commit].")
    ] = "",
    prune: Annotated[
        bool, typer.Option("--prune/--no-prune", help="Whether objects that the change removes are deleted.")
    ] = True,
    allow: Annotated[
        list[Objection] | None,
        typer.Option("--allow", metavar="OBJECTION", help="Pass in spite of it: held, unplaced, stuck or lost."),
    ] = None,
    lost_max: Annotated[
        int | None,
        typer.Option("--lost-max", metavar="N", min=0, help="Replicas of one object that may be missing at worst."),
    ] = None,
    limit_characters: Annotated[
        int, typer.Option("--limit-characters", metavar="N", min=_LENGTH_MIN, help="The longest comment.")
    ] = LENGTH_MAX,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Save the plan in this file, for apply-plan.")
    ] = None,
    namespace: flags.Namespace = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    output: Annotated[
        Literal["markdown", "json"], typer.Option("-o", "--output", metavar="FORMAT", help="markdown or json.")
    ] = "markdown",
) -> None:
    """Show what a change of a repository would do, as one comment for its review.

    Compares the manifests of a commit with those where it branched off --base, or two directories of rendered
    manifests. Reads only; the user needs the verb `plan` for what changes (docs/review.md).

    Exit code: 0 passes, 1 something speaks against the change, 2 an error.

    \b
    fedctl review --base origin/main deploy/ --out change.plan > comment.md
    fedctl review --before old/ --after new/ --change "review 7"
    fedctl apply-plan change.plan                takes exactly that plan, or refuses
    """  # noqa: D301  # the backspace keeps lines apart in the help
    if bool(base) == bool(before or after) or bool(before) != bool(after):
        fail("give --base COMMIT, or both --before DIR and --after DIR (see --help)", code=2)
    if before and paths:
        fail("PATH belongs to --base; with --before and --after everything in the directories is compared", code=2)
    if len(change) > _CHANGE_LENGTH_MAX or not _CHANGE.fullmatch(change):
        fail(f"--change: at most {_CHANGE_LENGTH_MAX} printable ASCII characters", code=2)
    source = Source(base, head, paths or (), before, after)
    allowed = [each.value for each in allow or ()]
    options = ReviewOptions(namespace, change, prune, allowed, lost_max, output, limit_characters, out)
    try:
        execute(review(KubeconfigContext(kubeconfig, context), source, options))
    except FederationError as error:
        fail(error.message if isinstance(error, ApiError) else str(error), code=2)
    except OSError as error:
        fail_output(error, code=2)


async def review(context: KubeconfigContext, source: Source, options: ReviewOptions) -> int:
    """Compute and print a review, and save its plan; return the exit code."""
    difference = await source.read()
    change = options.change or difference.commit
    saved = None
    found = Review(change, None, allowed=options.allowed, lost_max=options.lost_max)
    try:
        compared = compare_files(difference.before, difference.after)
    except ConfigurationError as error:
        found = replace(found, refused=str(error))
    else:
        documents = with_annotation(compared.documents, names.CHANGE, change) if change else list(compared.documents)
        async with make_planner(context) as planner:
            await check_namespace(planner.host, options.namespace, documents)
            deletions, absent = await find_deletions(planner.host, compared.deleted, options.namespace)
            notes = [*compared.left_out, *(f"{each.origin}: deleted, and it does not exist" for each in absent)]
            if deletions and not options.prunes:
                notes += [f"{each}: not deleted, because of --no-prune" for each in deletions]
                deletions = []
            requested = RequestedChanges(documents, deletions=deletions, namespace=options.namespace)
            found = replace(found, notes=notes)
            try:
                plan, saved = await _plan(planner, requested, change)
            except (BadRequest, Invalid, Conflict) as error:
                found = replace(found, refused=error.message)
            except ConfigurationError as error:
                if isinstance(error.__cause__, Forbidden):
                    raise
                found = replace(found, refused=str(error))
            else:
                found = replace(found, plan=plan)
    _print(found, options)
    if options.out is not None:
        _save(options.out, saved)
    return PASSES if found.is_passed else FAILS


def _print(found: Review, options: ReviewOptions) -> None:
    if options.form == "json":
        print(orjson.dumps(to_json_document(found), option=orjson.OPT_INDENT_2).decode())
    else:
        print(escape(to_comment(found, options.length_max)), end="")


def _save(path: Path, saved: PlanFile | None) -> None:
    """Write the plan; without one remove an earlier file, which is of another change."""
    if saved is not None:
        write_plan_file(path, saved)
    else:
        path.unlink(missing_ok=True)


async def _plan(planner: Planner, requested: RequestedChanges, change: str) -> tuple[Plan, PlanFile]:
    """Return the plan and the content of its file, from the host if it computes plans."""
    host = planner.host
    if not requested.documents and not requested.deletions:
        return Plan([]), PlanFile([], [], [], [], change=change)
    edits = await to_edits(host, ObjectSet(dict.fromkeys(kinds_of(planner.chain), ())), requested)
    answer = await request_plan(host, requested, explain=False, manifests=False, basis=True)
    if answer is not None:
        return from_json(answer), basis_from_json(answer["basis"], edits, change)
    world = await read_inventory(host, planner.chain)
    resolved = await resolve_changes(host, world, requested)
    result = await planner.plan(world, resolved.changes)
    saved = to_plan_file(result, world, resolved.edits, resolved.changes, ())
    return result, replace(saved, change=change)
