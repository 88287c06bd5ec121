"""The run that `tools/plaindeployment.py` counts: a Deployment is created, placed, delivered and counted."""

import asyncio
import importlib
import pkgutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Any

from tests.support.manifests import a_deployment, a_policy
from tests.support.world import a_world

import federation
from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.resources import DEPLOYMENTS
from federation.assembly import ControlPlane
from federation.settings import Settings

_OTHERS = ("federation.simulator.", "federation.twin.", "federation.apiserver.")
"""Not the control plane: the members, and the API server, which serves host and members alike here."""
_OF_WINGS = ("federation.simulator", "federation.cli.spreadwebhook", "federation.features", "federation.twin")
"""Modules that may need wings: the members and the webhook in them run WorkloadSpreads and UnitedDeployments."""


class _Calls:
    """The functions of the product that run."""

    def __init__(self) -> None:
        self.code: dict[CodeType, str] = {}

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code not in self.code:
            self.code[frame.f_code] = frame.f_globals.get("__name__", "")

    def modules(self) -> list[str]:
        """Return the modules whose functions ran."""
        return sorted({name for name in tuple(self.code.values()) if _is_counted(name)})

    def functions(self) -> int:
        """Return the number of functions, without parts of expressions."""
        return sum(_is_counted(name) and not code.co_name.startswith("<") for code, name in tuple(self.code.items()))


def _is_counted(module: str) -> bool:
    return module.startswith("federation.") and not module.startswith(_OTHERS)


def import_all() -> int:
    """Import every module that needs no wing; return their number."""
    names = [
        each.name
        for each in pkgutil.walk_packages(
            federation.__path__,
            "federation.",
        )
    ]
    chosen = [name for name in names if not name.startswith(_OF_WINGS) and not name.endswith("__main__")]
    for name in chosen:
        importlib.import_module(name)
    return len(chosen)


async def start() -> str:
    """Start a control plane with a database of its own, and return its URL once it serves."""
    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    with TemporaryDirectory() as folder:
        plane = ControlPlane(Settings(Path(folder), port=0, new=True), SystemClock())
        running = asyncio.create_task(plane.run(url.set_result))
        await asyncio.wait({running, url}, return_when=asyncio.FIRST_COMPLETED)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    return url.result()


async def run() -> dict[str, Any]:
    """Return what ran, and what became of the Deployment."""
    calls = _Calls()
    async with a_world(members=("east", "west")) as world:
        await world.settle()
        sys.setprofile(calls)
        try:
            await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "west": 1}))
            await world.create(DEPLOYMENTS, a_deployment("web", replicas=4))
            await world.until_replicas("web", {"east": 2, "west": 2})
            until_placed = calls.functions()
            await world.until_available("web", 4)
        finally:
            sys.setprofile(None)
        status = (await world.user.get(DEPLOYMENTS, "web", "default"))["status"]
        replicas = await world.replicas("web")
    return {
        "wings": sorted({name.split(".")[2] for name in sys.modules if name.startswith("federation.features.")}),
        "modules": calls.modules(),
        "functions": until_placed,
        "functionsUntilCounted": calls.functions(),
        "replicas": replicas,
        "available": status["availableReplicas"],
    }
