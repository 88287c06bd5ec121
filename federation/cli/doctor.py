"""The command `fedctl doctor`: collect facts about a federation, and print what is wrong and what to do."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer
from prometheus_client.parser import text_string_to_metric_families

from federation import __version__
from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_TYPE_CONFIGS, LEFTOVERS, PLACEMENT_HOLDS
from federation.apimachinery.amounts import to_count
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import (
    ApiError,
    ConfigurationError,
    Forbidden,
    NotFound,
    Unauthorized,
)
from federation.apimachinery.resources import Object, Resource
from federation.cli.datadoctor import show_data
from federation.planning.diagnosis.findings import (
    OF_CLUSTERS,
    OF_CONFIGURATIONS,
    OF_METRICS,
    Facts,
    Finding,
    Sample,
    diagnose,
)
from federation.planning.diagnosis.level import Level
from federation.planning.federatedobject.hosteffect import ACTING
from federation.terminal import flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext, find_host_problem
from federation.terminal.plaintext import print_document
from federation.terminal.printing import make_console, print_wrapped

if TYPE_CHECKING:
    from federation.client.http import HTTPClient

_SIGNS = {Level.OK: "ok     ", Level.WARNING: "warning", Level.ERROR: "ERROR  "}


def doctor_command(
    data: Annotated[
        bool, typer.Option("--data", help="List workloads that would start on empty volumes, and how, instead.")
    ] = False,
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    output: flags.OutputFormat = "table",
) -> None:
    """Check host, store, certificates, members, deliveries, clocks and versions, and say what to do.

    Exit code 1 if something does not work; warnings do not count. With --data, exit code 1 if a workload would start on
    empty volumes without a further question.
    """
    if data:
        execute(show_data(KubeconfigContext(kubeconfig, context), output))
        return
    execute(run(KubeconfigContext(kubeconfig, context), output))


async def run(context: KubeconfigContext, output: str) -> int:
    """Print the findings; return 1 if one is an error."""
    async with context.client() as host:
        findings = diagnose(await collect(host))
    if output != "table":
        print_document([finding._asdict() for finding in findings], output)
    else:
        _print(findings)
    return 1 if any(finding.level is Level.ERROR for finding in findings) else 0


async def collect(host: "HTTPClient") -> Facts:
    """Return the facts; what the user may not read is listed as missing."""
    missing: list[str] = []
    failures: list[str] = []
    readiness = (await _text(host, "/readyz?verbose", missing)).decode(errors="replace")
    known = len(missing)
    samples = to_samples((await _text(host, "/metrics", missing)).decode(errors="replace"))
    unread = {OF_METRICS} if len(missing) > known else set()
    known = len(missing)
    clusters = await _items(host, FEDERATED_CLUSTERS, missing, failures)
    unread |= {OF_CLUSTERS} if len(missing) > known else set()
    known = len(missing)
    configurations = await _configurations(host, missing, failures)
    unread |= {OF_CONFIGURATIONS} if len(missing) > known else set()
    leftovers = await _items(host, LEFTOVERS, missing, failures)
    holds = await _items(host, PLACEMENT_HOLDS, missing, failures)
    return Facts(
        now=SystemClock().now(),
        client_version=__version__,
        readiness=readiness,
        samples=samples,
        clusters=clusters,
        configurations=configurations,
        type_configs=await _items(host, FEDERATED_TYPE_CONFIGS, missing, failures),
        leftovers=sum(leftover["spec"].get("reason") not in ("Kept", "Revoked") for leftover in leftovers),
        holds=sum(not hold["spec"].get("approval") for hold in holds),
        host_skew_s=host.clock_skew_s,
        causes=await _causes(host),
        missing=missing,
        unread=frozenset(unread),
        failures=failures,
    )


def to_samples(text: str) -> dict[str, list[Sample]]:
    """Return the series of Prometheus' text by name."""
    found: dict[str, list[Sample]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(Sample(sample.labels, sample.value))
    return found


async def _text(host: "HTTPClient", path: str, missing: list[str]) -> bytes:
    code, body = await host.raw("GET", path)
    if code == 404:
        raise await find_host_problem(host) or ConfigurationError(f"this federation is too old to answer {path}")
    if code == Unauthorized.code:
        raise Unauthorized(_message(body))
    if code == Forbidden.code:
        missing.append(f"{path.partition('?')[0]}: {_message(body)}")
        return b""
    return body


def _message(body: bytes) -> str:
    try:
        return str(orjson.loads(body)["message"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return "forbidden"


async def _causes(host: "HTTPClient") -> Sequence[Mapping[str, Any]]:
    """Return what is behind the problems of objects; nothing from a host that does not serve it to this user."""
    code, body = await host.raw("GET", "/federation/v1/objects?limit=1")
    return (orjson.loads(body).get("causes") or ()) if code == 200 else ()


async def _items(host: "HTTPClient", resource: Resource, missing: list[str], failures: list[str]) -> list[Object]:
    try:
        return (await host.list(resource)).items
    except Forbidden as error:
        missing.append(error.message)
    except ApiError as error:
        if isinstance(error, NotFound) and (problem := await find_host_problem(host)) is not None:
            raise problem from error
        failures.append(error.message)
    return []


async def _configurations(
    host: "HTTPClient", missing: list[str], failures: list[str]
) -> dict[Resource, Sequence[Object]]:
    """Return the objects that act on an API server by kind, up to the first kind that the user may not read."""
    found: dict[Resource, Sequence[Object]] = {}
    known = len(missing)
    for resource in ACTING:
        code, _ = await host.raw("GET", f"{resource.path()}?limit=1")
        if code != NotFound.code:  # an older API server as host does not serve all of them
            found[resource] = await _items(host, resource, missing, failures)
        if len(missing) > known:
            break
    return found


def _print(findings: Sequence[Finding]) -> None:
    console = make_console()
    width = max(len(finding.area) for finding in findings)
    for finding in findings:
        print_wrapped(console, f"{_SIGNS[finding.level]} {finding.area:<{width}}  ", finding.text)
        if finding.remedy:
            print_wrapped(console, " " * (len(_SIGNS[Level.OK]) + width + 3) + "-> ", finding.remedy)
    errors, warnings = (sum(f.level is level for f in findings) for level in (Level.ERROR, Level.WARNING))
    print(f"{to_count(errors, 'error')}, {to_count(warnings, 'warning')}")
