"""Run everything that needs a real Kubernetes, and print a table: suite, passed on the real server, passed on ours.

    python -m tests.kubernetes.suites                  all of them
    python -m tests.kubernetes.suites --core           what each landing must pass, in a third of the time
    python -m tests.kubernetes.suites --all            also the specs that depend on the machine's speed
    python -m tests.kubernetes.suites --only e2e       one suite: conformance, kubernetes, e2e

Exit code 1 when something fails on our server, or twice on the real one. A test that fails on a busy real server and passes
when it is repeated is printed and does not count; nothing is repeated on our server. Of Kubernetes' own suite only what the
real server passes counts.
"""

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from tests.kubernetes import e2e
from tests.kubernetes.build import missing_binaries
from tests.kubernetes.cluster import controllers_on, real_cluster
from tests.kubernetes.junit import read_report
from tests.support.federation import start_serve

REAL, OURS = "real", "ours"
LATE_READ = "is not as new as written version"
PYTEST_TIMEOUT_S = 40 * 60
STOP_TIMEOUT_S = 120
REPEATED_MAX = 10
CORE = tuple(
    f"tests/kubernetes/members/test_{name}.py"
    for name in ("quickstart", "joining", "join_rights", "workloads", "existing_host")
)
"""The main job of a federation on real members: join, deliver, roll out, follow, report; and a real API server as host."""
SUITE = "the suite"
"""Stands for a test when the whole suite was stopped."""


@dataclass(slots=True)
class Outcome:
    """The tests of one suite on one server by name, with the failure or ""."""

    tests: dict[str, str] = field(default_factory=dict)
    seconds: float = 0
    late_reads: int = 0
    """Retries of the controller manager because its caches did not have its own writes yet."""
    flaked: dict[str, str] = field(default_factory=dict)
    """Failures of tests that passed when they were repeated."""

    @property
    def failed(self) -> set[str]:
        return {name for name, failure in self.tests.items() if failure}

    def __str__(self) -> str:
        if not self.tests:
            return "-"
        return f"{len(self.tests) - len(self.failed)} of {len(self.tests)} in {self.seconds:.0f} s"


class Scope(StrEnum):
    """How much runs."""

    CORE = "core"
    LANDING = "landing"
    ALL = "all"


Outcomes = dict[str, Outcome]
"""By server: `REAL` and `OURS`."""


def conformance(directory: Path, scope: Scope) -> Outcomes:
    """The behaviours of tests/conformance/apiserver: a behaviour that the real server does not have is a wrong test.

    With `--core` only the real server runs them, because `make test` has run them on ours.
    """

    def on_real(tests: list[str], folder: Path) -> Outcome:
        with real_cluster(folder / "cluster") as cluster:
            return _pytest([*tests, "-m", "", "--kubeconfig", str(cluster.kubeconfig)], folder / "report.xml")

    suite = "tests/conformance/apiserver"
    real = on_real([suite], directory / "real")
    _repeat(real, lambda tests: on_real(tests, directory / "repeated"))
    if scope is Scope.CORE:
        return {REAL: real, OURS: Outcome()}
    stores = ["--tier", "all"] if scope is Scope.ALL else []
    parallel = ["-n", "2", "--dist", "loadgroup"]  # each worker has a server of its own
    return {REAL: real, OURS: _pytest([suite, "-m", "", *stores, *parallel], directory / "ours.xml")}


def kubernetes(directory: Path, scope: Scope) -> Outcomes:
    """The tests of this folder: real controllers on our API, real members, and manifests on both servers."""
    marks = "kubernetes" if scope is Scope.ALL else "kubernetes and not slow"
    tests = list(CORE) if scope is Scope.CORE else ["tests/kubernetes"]
    done = _pytest([*tests, "-m", marks], directory / "kubernetes.xml")
    on_real = {name: failure for name, failure in done.tests.items() if f"[{REAL}" in name}
    on_ours = {name: failure for name, failure in done.tests.items() if name not in on_real}
    real = Outcome(on_real, done.seconds)
    _repeat(real, lambda tests: _pytest([*tests, "-m", marks], directory / f"{REAL}-repeated.xml"))
    return {REAL: real, OURS: Outcome(on_ours, done.seconds)}


def end_to_end(directory: Path, scope: Scope) -> Outcomes:
    """Kubernetes' own suite. The real server runs it with `--all`, and what fails on ours."""
    is_all = scope is Scope.ALL
    skip = e2e.SKIP if is_all else f"{e2e.SKIP}|{e2e.UNSTABLE}"
    ours = _e2e(directory / OURS, _our_server, e2e.FOCUS, skip)
    real = Outcome()
    if is_all:
        real = _e2e(directory / REAL, _real_server, e2e.FOCUS, skip)
    elif failed := ours.failed:
        real = _e2e(directory / REAL, _real_server, e2e.focus_on(failed), skip)
    return {REAL: real, OURS: ours}


SUITES: dict[str, Callable[..., Outcomes]] = {
    "conformance": conformance,
    "kubernetes": kubernetes,
    "e2e": end_to_end,
}


def main() -> int:
    """Run the suites; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    scopes = parser.add_mutually_exclusive_group()
    scopes.add_argument(
        "--core", dest="scope", action="store_const", const=Scope.CORE, help="what each landing must pass"
    )
    scopes.add_argument(
        "--all", dest="scope", action="store_const", const=Scope.ALL, help="also what depends on the machine's speed"
    )
    parser.add_argument("--only", choices=SUITES, action="append", help="run this suite; may be given more than once")
    options = parser.parse_args()
    scope = options.scope or Scope.LANDING
    chosen = options.only or [name for name in SUITES if scope is not Scope.CORE or name != "e2e"]
    if missing := missing_binaries(servers_only="e2e" not in chosen):
        print(f"kubernetes: {', '.join(missing)} not built: run `make kubernetes` (needs Go 1.26 or newer)")
        return 2
    # Children inherit an ignored SIGINT, which a shell gives to background jobs; pytest must stop its servers at a timeout.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    began = time.monotonic()
    results: dict[str, Outcomes] = {}
    with tempfile.TemporaryDirectory(prefix="federation-kubernetes-") as folder:
        for name in chosen:
            directory = Path(folder) / name
            directory.mkdir()
            print(f"{name} ...", flush=True)
            results[name] = SUITES[name](directory, scope)
    return _report(results, time.monotonic() - began)


def _report(results: dict[str, Outcomes], seconds: float) -> int:
    """Print what failed, the table, and one line with the result; return the exit code."""
    count = 0
    for name, outcomes in results.items():
        for server in (REAL, OURS):
            for test, failure in sorted(outcomes[server].flaked.items()):
                print(f"\n{name}, {server}: {test} (does not count: it passed when it was repeated)\n    {failure}")
            for test in sorted(outcomes[server].failed):
                is_excused = name == "e2e" and (server == REAL or test in outcomes[REAL].failed)
                count += not is_excused
                note = " (does not count: Kubernetes' suite fails on the real server)" if is_excused else ""
                print(f"\n{name}, {server}: {test}{note}\n    {outcomes[server].tests[test]}")
    print(f"\n{'suite':16}{'passed on real Kubernetes':28}passed on ours")
    for name, outcomes in results.items():
        print(f"{name:16}{outcomes[REAL]!s:28}{outcomes[OURS]!s}")
    if "e2e" in results:
        late = results["e2e"]
        print(
            f"retries of controllers after late watch events: real {late[REAL].late_reads}, ours {late[OURS].late_reads}"
        )
    verdict = f"{count} failed" if count else "all passed"
    print(f"kubernetes: {verdict} in {seconds / 60:.0f} min")
    return 1 if count else 0


def _pytest(arguments: list[str], report: Path) -> Outcome:
    began = time.monotonic()
    limit = "--timeout=1200"  # servers beside other work are slow; a test that hangs still ends
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        *arguments,
        limit,
        f"--junit-xml={report}",
        "-p",
        "no:cacheprovider",
    ]
    with subprocess.Popen(command) as running:
        is_late = False
        try:
            code = running.wait(PYTEST_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            is_late = True
            running.send_signal(signal.SIGINT)  # as Ctrl-C: pytest stops the servers and writes its report
            code = running.wait(STOP_TIMEOUT_S)
    if not report.is_file():
        raise SystemExit(f"kubernetes: pytest {' '.join(arguments)} did not run")
    tests = {f"{suite}::{name}": failure for suite, name, failure in read_report(report)}
    seconds = time.monotonic() - began
    if is_late:
        tests[SUITE] = f"it was stopped after {PYTEST_TIMEOUT_S / 60:.0f} min"
    elif code and not any(tests.values()):
        tests[SUITE] = f"pytest exited {code} without a failed test"
    return Outcome(tests, seconds)


def _repeat(outcome: Outcome, run: Callable[[list[str]], Outcome]) -> None:
    """Run failed tests once more, unless so many failed that the cause is no chance, and keep the second result."""
    failed = outcome.failed
    if not 0 < len(failed) <= REPEATED_MAX or SUITE in failed:
        return
    print(f"repeating {len(failed)} ...", flush=True)
    again = run(
        [test.replace(".", "/", test.partition("::")[0].count(".")).replace("::", ".py::", 1) for test in failed]
    )
    _excuse(outcome, again)


def _excuse(outcome: Outcome, again: Outcome) -> None:
    """Move the failures of tests that passed in the repetition to `flaked`."""
    for test in outcome.failed:
        if again.tests.get(test) == "":
            outcome.flaked[test], outcome.tests[test] = outcome.tests[test], ""


def _e2e(directory: Path, server: Callable[[Path], "Iterator[Path]"], focus: str, skip: str) -> Outcome:
    directory.mkdir()
    with contextmanager(server)(directory) as kubeconfig:
        began = time.monotonic()
        tests = e2e.run(kubeconfig, directory, focus=focus, skip=skip)
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
