"""Completion of `fedctl` in shells: the script of `fedctl completion SHELL`, and live names.

A shell runs fedctl for each TAB, with the words in its environment; typer computes the candidates and calls the
functions below for names. They answer within two seconds, or the seconds in PATIENCE_VARIABLE, with nothing if the
federation does not answer: a shell has no place for an error.
"""

import os
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

import typer

from federation.apimachinery.errors import ConfigurationError, FederationError
from federation.terminal.kubeconfigcontext import KubeconfigContext

if TYPE_CHECKING:
    from federation.apimachinery.resources import Resource
    from federation.client.http import HTTPClient

PATIENCE_VARIABLE = "FEDCTL_COMPLETION_SECONDS"
"""For a federation behind a slow network."""
_PATIENCE_S = 2.0
_NAMES_MAX = 200
VARIABLE = "_FEDCTL_COMPLETE"
Read = Callable[["HTTPClient", str, str], AsyncIterator[str]]
"""Yields candidates for a namespace and the beginning of a word."""


def script(shell: str) -> str:
    """Return the script that a shell sources."""
    from typer import completion  # noqa: PLC0415  # as the others below: only completion needs it

    text: str = completion.get_completion_script(  # type: ignore[attr-defined]  # typer declares no exports
        prog_name="fedctl", complete_var=VARIABLE, shell=shell
    )
    return text


def prepare() -> None:
    """Register typer's forms of completion if a shell asks for candidates."""
    if VARIABLE in os.environ:
        from typer import completion  # noqa: PLC0415

        completion.completion_init()  # type: ignore[attr-defined]  # typer declares no exports


def clusters(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the names of members."""
    return _ask(ctx, incomplete, _clusters)


def namespaces(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the names of namespaces."""
    return _ask(ctx, incomplete, _namespaces)


def objects(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return KIND/ for each federated kind, or KIND/NAME for the objects of a kind."""
    return _ask(ctx, incomplete, _objects)


def contexts(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the names of the contexts in the kubeconfig."""
    from federation.client.kubeconfig import context_names  # noqa: PLC0415

    try:
        return [name for name in context_names(_target(ctx).path) if name.startswith(incomplete)]
    except ConfigurationError:
        return []


def _target(ctx: typer.Context) -> KubeconfigContext:
    return KubeconfigContext(_given(ctx, "kubeconfig") or None, _given(ctx, "context") or "")


def _given(ctx: typer.Context, option: str) -> Any:
    """Return an option of the command, or of a group of commands before it."""
    level: Any = ctx
    while level is not None:
        if value := level.params.get(option):
            return value
        level = level.parent
    return None


def _ask(ctx: typer.Context, incomplete: str, read: Read) -> list[str]:
    import asyncio  # noqa: PLC0415

    async def ask() -> list[str]:
        async with asyncio.timeout(_patience_s()), target.client() as host:
            return [name async for name in read(host, namespace, incomplete) if name.startswith(incomplete)]

    target = _target(ctx)
    namespace = str(_given(ctx, "namespace") or target.namespace)
    try:
        return asyncio.run(ask())
    except (FederationError, TimeoutError):
        return []


def _patience_s() -> float:
    try:
        return float(os.environ.get(PATIENCE_VARIABLE) or _PATIENCE_S)
    except ValueError:
        return _PATIENCE_S


async def _clusters(host: "HTTPClient", namespace: str, incomplete: str) -> AsyncIterator[str]:  # noqa: ARG001
    from federation.api.resources import FEDERATED_CLUSTERS  # noqa: PLC0415

    for name in await _names(host, FEDERATED_CLUSTERS, ""):
        yield name


async def _namespaces(host: "HTTPClient", namespace: str, incomplete: str) -> AsyncIterator[str]:  # noqa: ARG001
    from federation.apimachinery.resources import NAMESPACES  # noqa: PLC0415

    for name in await _names(host, NAMESPACES, ""):
        yield name


async def _objects(host: "HTTPClient", namespace: str, incomplete: str) -> AsyncIterator[str]:
    from federation.api.resources import FEDERATED_TYPE_CONFIGS  # noqa: PLC0415
    from federation.plans.kinds import ServedKinds  # noqa: PLC0415

    kind, separator, _ = incomplete.partition("/")
    if not separator:
        for item in (await host.list(FEDERATED_TYPE_CONFIGS)).items:
            yield f"{item['spec']['sourceType']['kind'].lower()}/"
        return
    resource = await ServedKinds(host).named(kind)
    for name in await _names(host, resource, namespace if resource.namespaced else ""):
        yield f"{kind}/{name}"


async def _names(host: "HTTPClient", resource: "Resource", namespace: str) -> list[str]:
    found = await host.list(resource, namespace, limit=_NAMES_MAX)
    return [str(item["metadata"]["name"]) for item in found.items]
