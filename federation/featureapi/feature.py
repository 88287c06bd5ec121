"""`Feature`: all that the control plane has to know of a leaf feature.

A record is small and every process imports it, so its parts are functions that import their modules when they are
called: `fedctl` needs no controllers, and a control plane needs no models.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from federation.apimachinery.resources import Resource

if TYPE_CHECKING:
    import typer

    from federation.admission.hostreader import HostReader
    from federation.api.v1alpha1.base import Kind
    from federation.apiserver.admission.plugins import AdmissionPlugin
    from federation.client.client import Client
    from federation.featureapi.surroundings import Surroundings
    from federation.runtime.host import Host
    from federation.runtime.sourceholds import SourceHold
    from federation.scheduling.chain import Step
    from federation.scheduling.whatif.forecasts import Forecasting
    from federation.web.ui.screen import Screen
    from federation.web.view import View

    Command = typer.Typer | Callable[..., None]
    """A group of commands, or one command, of `fedctl`."""


class Loop(Protocol):
    """A controller, or another part of a feature that works until cancelled."""

    async def run(self) -> None:
        """Work until cancelled."""
        ...


@dataclass(frozen=True, slots=True)
class Rights:
    """The rights that the roles of the host give for the kinds of a feature; `admin` includes `edit`."""

    read: Sequence[Resource] = ()
    """Kinds that `view` reads, and that only administrators of the fleet write."""
    written: Sequence[Resource] = ()
    """Kinds that `view` reads and `edit` writes."""
    written_unread: Sequence[Resource] = ()
    """Kinds that `edit` reads and writes, and that `view` does not read, because they contain secrets."""


async def _no_start(client: "Client", has_existing_host: bool) -> None:
    del client, has_existing_host


def _no_kinds() -> Sequence["type[Kind]"]:
    return ()


def _no_controllers(surroundings: "Surroundings") -> Mapping[str, Loop]:
    del surroundings
    return {}


def _no_steps() -> Sequence["Step"]:
    return ()


def _no_holds(host: "Host") -> Sequence["SourceHold"]:
    del host
    return ()


def _no_forecasts() -> Sequence["Forecasting"]:
    return ()


def _no_views(host: "Host") -> Sequence["View"]:
    del host
    return ()


def _no_screens() -> Sequence["Screen"]:
    return ()


def _no_admission(host: "HostReader") -> Sequence["AdmissionPlugin"]:
    del host
    return ()


@dataclass(frozen=True, slots=True)
class Feature:
    """One leaf feature. Nothing else in the product knows its folder, which is `federation/features/<name>`."""

    name: str
    page: str
    """Its page in `docs/reference`."""
    kinds: Callable[[], Sequence["type[Kind]"]] = _no_kinds
    """Return the models of its kinds; `make generate` writes their definitions."""
    rights: Rights = field(default_factory=Rights)
    start: Callable[["Client", bool], Awaitable[None]] = _no_start
    """Create on the host what must exist before controllers run. It may be called again after a failure.

    The second argument is whether the host is an API server that is not embedded."""
    controllers: Callable[["Surroundings"], Mapping[str, Loop]] = _no_controllers
    """Return its controllers by name. The process that leads runs them."""
    holds: Callable[["Host"], Sequence["SourceHold"]] = _no_holds
    """Return what keeps new objects from being federated before the feature has written into them."""
    admission: Callable[["HostReader"], Sequence["AdmissionPlugin"]] = _no_admission
    """Return its admission plugins. A resource has at most one."""
    steps: Callable[[], Sequence["Step"]] = _no_steps
    """Return its steps in the chain of a decision; `scheduling/chain.py` has their order."""
    forecasts: Callable[[], Sequence["Forecasting"]] = _no_forecasts
    """Return what follows from changes of its kinds, for plans."""
    views: Callable[["Host"], Sequence["View"]] = _no_views
    """Return what it serves below `/federation/v1`."""
    screens: Callable[[], Sequence["Screen"]] = _no_screens
    """Return its screens of the web UI. Their templates are in its own folder."""
    commands: Mapping[str, "Callable[[], Command]"] = field(default_factory=dict)
    """Its commands of `fedctl` by name, which the table in `cli/main.py` lists; each is imported when it is needed."""
