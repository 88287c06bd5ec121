"""Run everything that needs a real Kubernetes, and print a table: suite, passed on the real server, passed on ours.

    python -m tests.kubernetes.suites                  what a landing must pass
    python -m tests.kubernetes.suites --all            also the specs that depend on the machine's speed
    python -m tests.kubernetes.suites --only e2e       one suite: conformance, kubernetes, e2e

Exit code 1 when something fails on our server that does not fail on the real one, or in the suite of this folder.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.kubernetes import e2e
from tests.kubernetes.build import missing_binaries
from tests.kubernetes.cluster import controllers_on, real_cluster
from tests.kubernetes.junit import read_report
from tests.support.federation import start_serve

REAL, OURS = "real", "ours"
LATE_READ = "is not as new as written version"
PYTEST_TIMEOUT_S = 30 * 60


@dataclass(slots=True)
class Outcome:
    """The tests of one suite on one server by name, with the failure or ""."""

    tests: dict[str, str] = field(default_factory=dict)
    seconds: float = 0
    late_reads: int = 0
    """Retries of the controller manager because its caches did not have its own writes yet."""

    @property
    def failed(self) -> set[str]:
        return {name for name, failure in self.tests.items() if failure}

    def __str__(self) -> str:
        if not self.tests:
            return "-"
        return f"{len(self.tests) - len(self.failed)} of {len(self.tests)} in {self.seconds:.0f} s"


Outcomes = dict[str, Outcome]
"""By server: `REAL` and `OURS`."""


def conformance(directory: Path, *, is_all: bool) -> Outcomes:
    """The behaviours of tests/conformance/apiserver: a behaviour that the real server does not have is a wrong test."""
    suite = ["tests/conformance/apiserver", "-m", ""]
    with real_cluster(directory / "cluster") as cluster:
        real = _pytest([*suite, "--kubeconfig", str(cluster.kubeconfig)], directory / "real.xml")
    stores = [] if is_all else ["-k", "sqlite"]
    return {REAL: real, OURS: _pytest([*suite, *stores], directory / "ours.xml")}


def kubernetes(directory: Path, *, is_all: bool) -> Outcomes:
    """The tests of this folder: real controllers on our API, real members, and manifests on both servers."""
    marks = "kubernetes" if is_all else "kubernetes and not slow"
    done = _pytest(["tests/kubernetes", "-m", marks], directory / "kubernetes.xml")
    on_real = {name: failure for name, failure in done.tests.items() if f"[{REAL}" in name}
    on_ours = {name: failure for name, failure in done.tests.items() if name not in on_real}
    return {REAL: Outcome(on_real, done.seconds), OURS: Outcome(on_ours, done.seconds)}


def end_to_end(directory: Path, *, is_all: bool) -> Outcomes:
    """Kubernetes' own suite. The real server runs with `--all` only: it passes what is listed in docs/testing.md."""
    skip = e2e.SKIP if is_all else f"{e2e.SKIP}|{e2e.UNSTABLE}"
    outcomes: Outcomes = {REAL: Outcome(), OURS: _e2e(directory / OURS, _our_server, skip)}
    if is_all or outcomes[OURS].failed:
        outcomes[REAL] = _e2e(directory / REAL, _real_server, skip)
    return outcomes


SUITES: dict[str, Callable[..., Outcomes]] = {
    "conformance": conformance,
    "kubernetes": kubernetes,
    "e2e": end_to_end,
}


def main() -> int:
    """Run the suites; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="also the specs that depend on the machine's speed")
    parser.add_argument("--only", choices=SUITES, action="append", help="run this suite; may be given more than once")
    options = parser.parse_args()
    if missing := missing_binaries():
        print(f"kubernetes: {', '.join(missing)} not built: run `make kubernetes` (needs Go 1.26 or newer)")
        return 2
    results: dict[str, Outcomes] = {}
    with tempfile.TemporaryDirectory(prefix="federation-kubernetes-") as folder:
        for name in options.only or SUITES:
            directory = Path(folder) / name
            directory.mkdir()
            print(f"{name} ...", flush=True)
            results[name] = SUITES[name](directory, is_all=options.all)
    return _report(results)


def _report(results: dict[str, Outcomes]) -> int:
    """Print the table and what failed; return the exit code."""
    print(f"\n{'suite':16}{'passed on real Kubernetes':28}passed on ours")
    for name, outcomes in results.items():
        print(f"{name:16}{outcomes[REAL]!s:28}{outcomes[OURS]!s}")
    if "e2e" in results:
        late = results["e2e"]
        print(
            f"retries of controllers after late watch events: real {late[REAL].late_reads}, ours {late[OURS].late_reads}"
        )
    code = 0
    for name, outcomes in results.items():
        for server in (REAL, OURS):
            for test in sorted(outcomes[server].failed):
                is_ours = server == OURS and test not in outcomes[REAL].failed
                code = 1 if is_ours or name != "e2e" else code
                print(f"\n{name}, {server}: {test}\n    {outcomes[server].tests[test]}")
    return code


def _pytest(arguments: list[str], report: Path) -> Outcome:
    began = time.monotonic()
    command = [sys.executable, "-m", "pytest", *arguments, f"--junit-xml={report}", "-p", "no:cacheprovider"]
    subprocess.run(command, timeout=PYTEST_TIMEOUT_S, check=False)
    if not report.is_file():
        raise SystemExit(f"kubernetes: pytest {' '.join(arguments)} did not run")
    tests = {f"{suite}::{name}": failure for suite, name, failure in read_report(report)}
    return Outcome(tests, time.monotonic() - began)


def _e2e(directory: Path, server: Callable[[Path], "Iterator[Path]"], skip: str) -> Outcome:
    directory.mkdir()
    with contextmanager(server)(directory) as kubeconfig:
        began = time.monotonic()
        tests = e2e.run(kubeconfig, directory, skip=skip)
        seconds = time.monotonic() - began
        logs = directory.rglob("kube-controller-manager.log")
        return Outcome(tests, seconds, sum(log.read_text().count(LATE_READ) for log in logs))


def _real_server(directory: Path) -> Iterator[Path]:
    with real_cluster(directory / "cluster") as cluster:
        yield cluster.kubeconfig


def _our_server(directory: Path) -> Iterator[Path]:
    running = start_serve(directory / "host")
    try:
        kubeconfig = running.kubectl.kubeconfig
        with controllers_on(directory / "controllers", kubeconfig):
            yield kubeconfig
    finally:
        running.close()


if __name__ == "__main__":
    sys.exit(main())
