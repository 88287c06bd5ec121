"""Real Kubernetes on this machine: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and a fake kubelet.

`real_cluster(directory)` runs one cluster during a block; `controllers_on(directory, kubeconfig)` runs the controller
manager, the scheduler and the fake kubelet against another API server, such as ours. `build.py` makes the binaries.
All processes listen on the loopback interface, log to files in `directory`, and end with the block.
"""

import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.kubernetes.build import binaries_of
from tests.kubernetes.fakekubelet import FakeKubelet
from tests.kubernetes.fakestreams import StreamServer
from tests.support.federation import Kubectl, eventually
from tests.support.rest import Api

from federation.apiserver.auth.kubeconfigfile import write_kubeconfig
from federation.apiserver.auth.pki import FRONT_PROXY_USER, PKI, ensure_pki, write_private
from federation.client.kubeconfig import load_kubeconfig

START_S = 60.0
NO_CONTROLLERS = ("-node-lifecycle-controller", "-node-ipam-controller", "-cloud-node-lifecycle-controller")
"""The fake kubelet sends no heartbeats."""


@dataclass(frozen=True)
class Server:
    """A running API server and the administrator's way into it."""

    kubeconfig: Path

    @property
    def kubectl(self) -> Kubectl:
        return Kubectl(self.kubeconfig)

    def api(self) -> Api:
        """Return raw requests as the administrator."""
        return Api(load_kubeconfig(self.kubeconfig))


@dataclass(frozen=True)
class Cluster(Server):
    """A real API server and its files."""

    directory: Path
    pki: PKI


class Process:
    """One server with its log file."""

    def __init__(self, directory: Path, command: Sequence[str | Path]) -> None:
        self.name = Path(command[0]).name
        self.log = directory / f"{self.name}.log"
        with self.log.open("a") as log:
            self._child = subprocess.Popen([str(part) for part in command], stdout=log, stderr=log, cwd=directory)

    def check(self) -> None:
        """Raise AssertionError with the end of the log when the process has ended."""
        if self._child.poll() is not None:
            raise AssertionError(f"{self.name} exited {self._child.returncode}:\n{self.log.read_text()[-3000:]}")

    def close(self) -> None:
        self._child.terminate()
        try:
            self._child.wait(20)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait(20)


@contextmanager
def real_cluster(
    directory: Path, *, minor: str = "", controllers: bool = True, nodes: int = 2, arguments: Sequence[str] = ()
) -> Iterator[Cluster]:
    """Run a cluster of the version `minor` ("" is the newest) during the block.

    Without `controllers` only the API server runs, without nodes. `arguments` are more arguments of kube-apiserver.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        port = free_port()
        pki = ensure_pki(directory, now=datetime.now(UTC), names=("127.0.0.1", "localhost"), common_name="kubernetes")
        cluster = Cluster(directory / "kubeconfig", directory, pki)
        write_kubeconfig(cluster.kubeconfig, pki, server=f"https://127.0.0.1:{port}", name="kubernetes")
        etcd = stack.enter_context(_running(directory, _etcd(directory, minor, etcd_port := free_port())))
        server = stack.enter_context(
            _running(directory, _kube_apiserver(directory, minor, pki, port, etcd_port, arguments))
        )
        _wait_ready(cluster, (etcd, server))
        if controllers:
            stack.enter_context(controllers_on(directory, cluster.kubeconfig, minor=minor, pki=pki, nodes=nodes))
        yield cluster


@contextmanager
def controllers_on(
    directory: Path,
    kubeconfig: Path,
    *,
    minor: str = "",
    pki: PKI | None = None,
    nodes: int = 2,
    with_scheduler: bool = True,
    controllers: Sequence[str] = ("*", *NO_CONTROLLERS),
) -> Iterator[None]:
    """Run the controllers of Kubernetes and a fake kubelet against an API server during the block.

    With `pki` they also publish its CA and sign the tokens of Secrets.
    """
    directory.mkdir(parents=True, exist_ok=True)
    binaries = binaries_of(minor)
    common = ("--kubeconfig", kubeconfig, "--leader-elect=false", "--secure-port=0")
    manager = [
        *(binaries / "kube-controller-manager", *common, f"--controllers={','.join(controllers)}"),
        *(("--root-ca-file", pki.ca_certificate) if pki else ()),
        *(("--service-account-private-key-file", service_account_key(directory)) if pki else ()),
    ]
    with ExitStack() as stack:
        port = stack.enter_context(StreamServer(pki)).port if pki else 0
        stack.enter_context(FakeKubelet(load_kubeconfig(kubeconfig), nodes, port))
        stack.enter_context(_running(directory, manager))
        if with_scheduler:
            stack.enter_context(_running(directory, [binaries / "kube-scheduler", *common]))
        yield


def service_account_key(directory: Path) -> Path:
    """Return the key that signs tokens of service accounts, in the format that Kubernetes reads."""
    path = directory / "service-accounts.key"
    if not path.is_file():
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        kinds = (serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL)
        write_private(path, key.private_bytes(*kinds, serialization.NoEncryption()))
    return path


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _etcd(directory: Path, minor: str, port: int) -> list[str | Path]:
    peers = f"http://127.0.0.1:{free_port()}"
    clients = f"http://127.0.0.1:{port}"
    return [
        *(binaries_of(minor) / "etcd", "--data-dir", directory / "etcd", "--unsafe-no-fsync", "--log-level=warn"),
        *("--listen-client-urls", clients, "--advertise-client-urls", clients),
        *("--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", f"default={peers}"),
    ]


def _kube_apiserver(
    directory: Path, minor: str, pki: PKI, port: int, etcd_port: int, arguments: Sequence[str]
) -> list[str | Path]:
    key = service_account_key(directory)
    return [
        *(binaries_of(minor) / "kube-apiserver", f"--etcd-servers=http://127.0.0.1:{etcd_port}"),
        *("--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", f"--secure-port={port}"),
        *("--cert-dir", directory / "certificates", "--service-cluster-ip-range=10.0.0.0/16"),
        *("--tls-cert-file", pki.serving.certificate, "--tls-private-key-file", pki.serving.key),
        *("--client-ca-file", pki.ca_certificate, "--authorization-mode=RBAC", "--allow-privileged"),
        *("--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file", key),
        *("--service-account-signing-key-file", key, "--endpoint-reconciler-type=none", *_front_proxy(pki), *arguments),
    ]


def _front_proxy(pki: PKI) -> list[str | Path]:
    """Return the options of requests to aggregated API servers."""
    return [
        *("--proxy-client-cert-file", pki.front_proxy.certificate, "--proxy-client-key-file", pki.front_proxy.key),
        *("--requestheader-client-ca-file", pki.front_proxy.ca_certificate),
        *(f"--requestheader-allowed-names={FRONT_PROXY_USER}", "--requestheader-username-headers=X-Remote-User"),
        *("--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-"),
    ]


@contextmanager
def _running(directory: Path, command: Sequence[str | Path]) -> Iterator[Process]:
    process = Process(directory, command)
    try:
        yield process
    finally:
        process.close()


def _wait_ready(cluster: Cluster, processes: Sequence[Process]) -> None:
    api = cluster.api()

    def is_ready() -> bool:
        for process in processes:
            process.check()
        try:
            return api.http.get("/readyz").status_code == 200
        except httpx.TransportError:
            return False

    began = time.monotonic()
    try:
        eventually(is_ready, bool, timeout_s=START_S, what=f"{cluster.directory} ready")
    finally:
        api.close()
    (cluster.directory / "ready_s").write_text(f"{time.monotonic() - began:.1f}\n")
