"""One simulated member: a real API server with real credentials, and the workloads that run behind it.

State lives in a directory, so that a restart finds the same cluster (same CA, credentials, port, objects). Read
`workloads.py` for what makes Deployments run, `fleet.py` for several members in one process.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

from federation.base.clock import Clock
from federation.registry.options import RegistryOptions
from federation.server.apiserver import APIServer, APIServerOptions
from federation.simulator.options import MemberOptions
from federation.simulator.workloads import Workloads
from federation.store.journal import MemoryJournal
from federation.store.sql import SQLStore

_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
"""Those of any cluster: what a federation needs in a member, joining makes."""


class SimulatedMember:
    """A member cluster in this process."""

    def __init__(self, options: MemberOptions, directory: Path, kubeconfig: Path, clock: Clock, *, port: int) -> None:
        self._store = SQLStore(f"sqlite:///{directory / 'state.db'}", clock=clock)
        self._server = APIServer(
            self._store,
            MemoryJournal(),
            options=APIServerOptions(
                directory,
                kubeconfig,
                name=options.name,
                port=port,
                registry=RegistryOptions(system_namespaces=_NAMESPACES),
            ),
            clock=clock,
        )
        self._workloads = Workloads(self._server.registry, options, clock)

    async def run(self, on_started: Callable[[str], None]) -> None:
        """Serve and reconcile until cancelled; `on_started` gets the URL."""
        await self._server.prepare()
        await self._workloads.ensure_nodes()
        try:
            async with asyncio.TaskGroup() as group:
                workloads = group.create_task(self._workloads.run())
                try:
                    await self._server.run(on_started)
                finally:
                    workloads.cancel()
        finally:
            await self._store.close()
