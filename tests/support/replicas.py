"""Several `fedctl serve` on one PostgreSQL as processes that a supervisor starts again, and requests to each of them.

`ReplicaSet` owns the processes. Each has a port of its own that it keeps, and failpoints (`failpoints.py`). A process
that ends, for whatever reason, is started again until `close`, as systemd and Kubernetes do.
"""

import asyncio
import contextlib
import os
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from signal import SIGCONT, Signals
from typing import Any, Self

import aiohttp
import httpx
import orjson

from federation.client.kubeconfig import load_kubeconfig
from tests.support.failpoints import Step, arm
from tests.support.federation import Kubectl, close_clients, eventually, log_of
from tests.support.forkserver import Process, start_process
from tests.support.ports import lasting_port
from tests.support.rest import Refused

_START_S = 150.0
_END_S = 60.0
_REQUEST_S, PATIENT_S = 3.0, 90.0
"""A request that may be lost, and one without which a test cannot go on."""
_SILENCE_S = 8.0
"""A watch is silent for 5 s at most, because of bookmarks."""
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-admiral-system/leases/federation-controllers"
LEADS = 'federation_runtime_leader{lease="federation-controllers"} 1.0'


class Api:
    """HTTPS requests to one server, as its administrator."""

    def __init__(self, name: str, kubeconfig: Path) -> None:
        self.name = name
        self._kubeconfig = kubeconfig
        self._session: aiohttp.ClientSession | None = None

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        timeout_s: float = _REQUEST_S,
    ) -> tuple[int, Any]:
        """Return status and parsed body; aiohttp.ClientError or TimeoutError without an answer."""
        data = None if body is None else orjson.dumps(body)
        headers = {} if body is None else {"Content-Type": content_type}
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        async with self._opened().request(method, path, data=data, headers=headers, timeout=timeout) as answer:
            raw = await answer.read()
            return answer.status, orjson.loads(raw) if "json" in answer.content_type else raw.decode()

    async def watch(self, path: str, resource_version: int) -> AsyncIterator[tuple[str, Any]]:
        """Yield the type and the object of each event, until the connection ends."""
        query = {"watch": "1", "resourceVersion": str(resource_version), "allowWatchBookmarks": "true"}
        timeout = aiohttp.ClientTimeout(sock_connect=_REQUEST_S, sock_read=_SILENCE_S)
        async with self._opened().get(path, params=query, timeout=timeout) as answer:
            if answer.status != 200:
                yield "ERROR", {"code": answer.status, "message": await answer.text()}
                return
            rest = b""
            async for chunk in answer.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    found = orjson.loads(line)
                    yield found["type"], found["object"]

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connection = load_kubeconfig(self._kubeconfig)
            tls = connection.to_tls()
            assert tls is not None
            self._session = aiohttp.ClientSession(connection.server, connector=aiohttp.TCPConnector(ssl=tls))
            # It would send a PUT again after a broken connection: one write of a client could then happen twice.
            self._session._retry_connection = False  # as in aiohttp's own test client
        return self._session


class Replica:
    """One `fedctl serve` and its successors on the same folder and port."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self.name = directory.name
        self.directory = directory
        self.kubectl = Kubectl(directory / "kubeconfig")
        self.starts = 0
        self._environment = {**os.environ, **environment}
        self._failpoint = directory.parent / f"{directory.name}.failpoint"
        self._process: Process | None = None
        self._lock = threading.Lock()  # the supervisor looks at the process while a test sends it a signal
        self._port = lasting_port()

    def api(self) -> Api:
        """Return new connections to the server; close them."""
        return Api(self.name, self.directory / "kubeconfig")

    def send(self, number: Signals) -> None:
        with self._lock:
            assert self._process is not None
            self._process.send_signal(number)

    def arm(self, step: Step, number: Signals) -> None:
        """Make the process send itself the signal in its next commit, at the step."""
        arm(self._failpoint, step, number)

    @property
    def log(self) -> str:
        return log_of(self.directory).read_text()

    def start(self) -> None:
        """Start the process unless it runs."""
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                return
            self.starts += 1
            arguments = [str(self._failpoint), "serve", "--dir", str(self.directory), "--port", str(self._port)]
            module = "tests.support.failpoints"
            with log_of(self.directory).open("a") as log:
                self._process = start_process(
                    module, arguments, environment=self._environment, stdout=log.fileno(), stderr=log.fileno()
                )

    def wait_until_ready(self) -> None:
        """Wait until the first start serves and answers that it is ready."""
        eventually(self._is_ready, bool, timeout_s=_START_S, what=f"the start of {self.name}")

    def _is_ready(self) -> bool:
        if not self.kubectl.kubeconfig.exists():
            return False
        with contextlib.suppress(Refused, httpx.TransportError):
            return self.kubectl.api().send("GET", "/readyz").is_success
        return False

    def close(self) -> None:
        close_clients(self.directory)
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(SIGCONT)
            self._process.terminate()
            try:
                self._process.wait(_END_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(_END_S)


class ReplicaSet:
    """`count` replicas on the database at `url`."""

    def __init__(self, folder: Path, url: str, count: int, environment: Mapping[str, str]) -> None:
        folder.mkdir(exist_ok=True)
        self.replicas = [
            Replica(folder / f"replica-{number}", {"FEDERATION_STORE_URL": url, **environment})
            for number in range(count)
        ]
        self._closing = threading.Event()
        self._supervisor = threading.Thread(target=self._supervise, daemon=True)

    def __enter__(self) -> Self:
        try:
            self._supervisor.start()
            for replica in self.replicas:
                replica.wait_until_ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._closing.set()
        if self._supervisor.is_alive():
            self._supervisor.join()
        for replica in self.replicas:
            replica.close()

    def _supervise(self) -> None:
        while not self._closing.wait(0.2):
            for replica in self.replicas:
                replica.start()


async def is_ready(api: Api) -> bool:
    """Return whether the server answers that it is ready."""
    with contextlib.suppress(aiohttp.ClientError, TimeoutError):
        status, _ = await api.request("GET", "/readyz")
        return status == 200
    return False


async def leads(api: Api) -> bool:
    """Return whether the server's process runs the controllers."""
    with contextlib.suppress(aiohttp.ClientError, TimeoutError):
        status, metrics = await api.request("GET", "/metrics")
        return status == 200 and LEADS in metrics
    return False


async def holder(api: Api) -> str:
    """Return the holder of the Lease of the controllers, "" without one, as soon as the server answers."""
    found: list[str] = []

    async def is_answered() -> bool:
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):
            status, lease = await api.request("GET", LEASE)
            if status in (200, 404):
                found.append(str(lease["spec"].get("holderIdentity") or "") if status == 200 else "")
        return bool(found)

    await until(is_answered, f"the Lease, read at {api.name}")
    return found[-1]


async def until(condition: Any, what: str, timeout_s: float = 120.0) -> float:
    """Await `condition()` until it is true; return the seconds that it took."""
    started = time.monotonic()
    while not await condition():
        assert time.monotonic() - started < timeout_s, f"{what}: not within {timeout_s:g} s"
        await asyncio.sleep(0.05)
    return time.monotonic() - started
