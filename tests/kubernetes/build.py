"""Build a real Kubernetes from its Go modules: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, e2e.test.

Besides, the programs of this folder that tests compare us with (`autoscaler`), once for each content of their sources.

`go.mod` pins the versions. The binaries go to a cache folder outside of the checkout, once for each content of `go.mod`:
about 12 CPU minutes and 4 GB with Go's own caches. Needs Go and a Go module proxy.

    python tests/kubernetes/build.py             build what is missing, and print the folders
    python tests/kubernetes/build.py --servers   without e2e.test, a third of the time
    python tests/kubernetes/build.py v1.34       also the servers of another version, from the folder v1.34

FEDERATION_KUBERNETES_CACHE: the cache folder, default ~/.cache/federation/kubernetes.
Exit code 3 when the machine cannot build anything: Go is missing or too old, or the module proxy does not answer.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
SERVERS: Final = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
}
E2E: Final = "e2e.test"
AUTOSCALER: Final = "autoscaler"
"""A program of this folder: the autoscaling controller of kube-controller-manager, run on cases."""
PROMETHEUS: Final = "prometheus"
"""A Go module of this folder, for objectives of rollouts."""
KUEUE: Final = "kueue"
"""A Go module of this folder, whose Workloads we dispatch."""
JOB_SET: Final = "jobset"
"""A Go module of this folder: the controller of JobSets."""
_VERSION: Final = re.compile(r"k8s\.io/kubernetes (v1\.(\d+)\.\d+)")


_UNREACHABLE: Final = re.compile(
    r"dial tcp|i/o timeout|proxyconnect|TLS handshake timeout|no such host|connection refused|module lookup disabled"
    r"|reading https?://\S+: 5\d\d"
)
"""What `go` prints when it cannot download a module."""
_TOO_OLD: Final = re.compile(r"requires go >= (\S+) \(running go ([^;)]+)")


class BuildError(Exception):
    """Kubernetes cannot be built; the text says what to do."""


class CannotBuild(BuildError):
    """This machine lacks what every build needs; nothing is wrong with the sources."""


def module_of(minor: str = "") -> Path:
    """Return the folder of the Go module of a version such as v1.34, by default the newest."""
    return HERE / minor if minor else HERE


def binaries_of(minor: str = "") -> Path:
    """Return the folder of the binaries, which may not exist yet."""
    module = module_of(minor)
    content = (module / "go.mod").read_bytes() + (module / "go.sum").read_bytes()
    version, _ = _version_of(module)
    default = Path("~/.cache/federation/kubernetes").expanduser()
    cache = Path(os.environ.get("FEDERATION_KUBERNETES_CACHE") or default)
    return cache / f"{version}-{hashlib.sha256(content).hexdigest()[:12]}"


def missing_binaries(minor: str = "", *, servers_only: bool = False) -> list[str]:
    """Return the names of the binaries that are not built; older versions have no end-to-end suite."""
    folder = binaries_of(minor)
    wanted = [*SERVERS, *([] if minor or servers_only else [program_of(AUTOSCALER), E2E])]
    return [name for name in wanted if not (folder / name).is_file()]


def program_of(name: str) -> str:
    """Return the file name of a program of this folder; another content of its sources is another program."""
    sources = sorted(path for path in (HERE / name).iterdir() if path.is_file())
    content = b"".join(path.name.encode() + path.read_bytes() for path in sources)
    return f"{name}-{hashlib.sha256(content).hexdigest()[:12]}"


def build(minor: str = "", *, servers_only: bool = False) -> Path:
    """Build the missing binaries of a version with progress on standard error, and return their folder; BuildError."""
    folder = binaries_of(minor)
    if missing_binaries(minor, servers_only=servers_only):
        with _locked(folder):
            _build(folder, missing_binaries(minor, servers_only=servers_only), module_of(minor))
    return folder


def build_program(name: str) -> Path:
    """Return a program of this folder, built if it is missing; BuildError."""
    folder, program = binaries_of(), program_of(name)
    if not (folder / program).is_file():
        with _locked(folder):
            _build(folder, [program], module_of())
    return folder / program


def build_prometheus() -> Path:
    """Return the program of a real Prometheus without service discovery, built if it is missing; BuildError.

    The build takes six CPU minutes, once for each content of its `go.mod`.
    """
    return _build_module(PROMETHEUS, "github.com/prometheus/prometheus/cmd/prometheus", "-tags=remove_all_sd,netgo")


def build_kueue() -> Path:
    """Return the program of a real Kueue, built if it is missing; BuildError. The build takes about 15 CPU minutes."""
    return _build_module(KUEUE, "sigs.k8s.io/kueue/cmd/kueue")


def build_job_set() -> Path:
    """Return the program of JobSet's controller, built if it is missing; BuildError. It takes about 8 CPU minutes."""
    return _build_module(JOB_SET, "sigs.k8s.io/jobset")


def definitions_of(name: str) -> Path:
    """Return the folder of CustomResourceDefinitions of Kueue or JobSet, of the version that is built; BuildError."""
    command = ["go", "list", "-m", "-f", "{{.Dir}}", f"sigs.k8s.io/{name}"]
    done = subprocess.run(command, cwd=HERE / name, env=_environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise _failure(" ".join(command), done.stderr.strip())
    return Path(done.stdout.strip()) / "config" / "components" / "crd" / "bases"


def _build_module(name: str, target: str, *options: str) -> Path:
    """Return the program of a Go module of this folder, built if it is missing; BuildError."""
    module = HERE / name
    content = (module / "go.mod").read_bytes() + (module / "go.sum").read_bytes()
    folder = binaries_of().parent / f"{name}-{hashlib.sha256(content).hexdigest()[:12]}"
    if not (folder / name).is_file():
        with _locked(folder):
            part = folder / f".{name}.part"
            command = ["go", "build", "-trimpath", *options, "-ldflags=-s -w", "-o", str(part), target]
            done = subprocess.run(command, cwd=module, env=_environment(), capture_output=True, text=True, check=False)
            if done.returncode:
                raise _failure(" ".join(command), done.stderr.strip())
            part.replace(folder / name)
    return folder / name


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder of binaries, because another process may build the same; CannotBuild without Go."""
    if shutil.which("go") is None:
        raise CannotBuild("Go is missing: install Go 1.26 or newer (https://go.dev/dl) and run `make kubernetes` again")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(folder: Path, missing: list[str], module: Path) -> None:
    version, number = _version_of(module)
    package = "k8s.io/component-base/version"
    stamps = {"gitVersion": version, "gitMajor": "1", "gitMinor": number, "gitTreeState": "clean"}
    flags = " ".join(["-s -w", *(f"-X {package}.{name}={value}" for name, value in stamps.items())])
    for number_built, name in enumerate(missing, 1):
        print(f"[{number_built}/{len(missing)}] {name} ...", end="", file=sys.stderr, flush=True)
        began = time.monotonic()
        part = folder / f".{name}.part"
        verb = ["test", "-c"] if name == E2E else ["build"]
        target = _target_of(name)
        done = subprocess.run(
            ["go", *verb, "-trimpath", f"-ldflags={flags}", "-o", str(part), target],
            cwd=module,
            env=_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            print(" failed", file=sys.stderr)
            raise _failure(f"go {' '.join(verb)} {target}", done.stderr.strip())
        part.replace(folder / name)
        print(f" {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


def _target_of(name: str) -> str:
    if name == E2E:
        return "k8s.io/kubernetes/test/e2e"
    return SERVERS.get(name) or f"./{AUTOSCALER}"


def _failure(command: str, text: str) -> BuildError:
    if too_old := _TOO_OLD.search(text):
        return CannotBuild(f"Go {too_old[2]} is too old: install Go {too_old[1]} or newer (https://go.dev/dl)")
    if _UNREACHABLE.search(text):
        last = text.splitlines()[-1].strip()
        return CannotBuild(f"the Go module proxy cannot be reached, set GOPROXY to one that can: {last}")
    return BuildError(f"{command} failed:\n{text}")


def _version_of(module: Path) -> tuple[str, str]:
    found = _VERSION.search((module / "go.mod").read_text())
    assert found, "go.mod requires no k8s.io/kubernetes"
    return found[1], found[2]


def _environment() -> dict[str, str]:
    environment = {**os.environ, "GOTOOLCHAIN": "local", "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"}
    version = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, check=True).stdout
    found = re.match(r"go1\.(\d+)", version)
    if found and int(found[1]) > 26:
        # The second JSON package of Go changes the server's OpenAPI document.
        environment["GOEXPERIMENT"] = "nojsonv2"
    return environment


def main() -> None:
    """Build the newest version and those that are named."""
    servers_only = "--servers" in sys.argv
    try:
        for minor in ("", *(argument for argument in sys.argv[1:] if argument != "--servers")):
            print(build(minor, servers_only=servers_only))
    except BuildError as error:
        print(f"kubernetes: {error}", file=sys.stderr)
        raise SystemExit(3 if isinstance(error, CannotBuild) else 1) from error


if __name__ == "__main__":
    main()
