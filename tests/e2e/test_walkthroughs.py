"""Pages that show a session with `fedctl up`: their commands are executed in order, and print what the page shows.

Each page has a federation alone: it shows a first session, in the namespace `default`, with all that is there. Sections
whose session has a namespace of its own share one.
"""

import re
from pathlib import Path

import pytest

from tests.support.federation import Federation, start_federation
from tests.support.pages import Shell, check_command, prepare, section, sessions, shows
from tests.support.sources import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.slow("executes pages")]
PAGES = (
    "failover.md",
    "rollout.md",
    "faq.md",
    "gitops.md",
    "review.md",
    "migration-karmada.md",
    "operators.md",
    "replay.md",
    "twin.md",
    "projects.md",
)
SECTIONS = (
    ("scheduling.md", "Groups of clusters", "peak"),
    ("operations.md", "Bring running workloads under federation", "boutique"),
    ("reference/sync.md", "Try it", "fields"),
    ("reference/policy-changes.md", "Follow and steer", "careful"),
    ("reference/member-proxy.md", "All members at once", ""),
)
"""Pages, headings of their sections, and the namespaces of these."""
READS = (
    *("kubectl get", "kubectl --kubeconfig faq-demo/members/member-1.kubeconfig get", "kubectl logs"),
    "kubectl --kubeconfig operators-demo/members/member-1.kubeconfig get",
    "kubectl --kubeconfig operators-demo/members/member-3.kubeconfig get",
    *("kubectl auth", "kubectl --kubeconfig deployer.kubeconfig get"),
    *("kubectl --kubeconfig alice.kubeconfig get", "fedctl --kubeconfig alice.kubeconfig why"),
    "kubectl --kubeconfig reviewer.kubeconfig auth",
    *("fedctl why", "env -u KUBECONFIG fedctl why", "fedctl clusters", "fedctl doctor", "fedctl holds"),
    "fedctl replay",
    "kubectl --kubeconfig fed/members/member-1.kubeconfig get",
    *("fedctl get", "fedctl leftovers", "fedctl sim status", "fedctl rollout status"),
)
"""Commands that are repeated until they print what the page shows."""


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_do_what_it_says(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(tmp_path)
    commands = sessions((ROOT / "docs" / page).read_text(encoding="utf-8"))
    start = next(index for index, (command, _) in enumerate(commands) if command.startswith("fedctl up"))
    exports = [each for each, _ in commands if each.startswith("export ")]

    for command, _ in commands[:start]:
        for name, value in re.findall(r"(FEDERATION_\w+)=(\S+)", command):
            monkeypatch.setenv(name, value)
    directory = commands[start][0].removeprefix("fedctl up --dir ")
    federation = start_federation(tmp_path / directory)
    try:
        shell = Shell(tmp_path, exports)
        for command, expected in commands[start + 1 :]:
            if not command.startswith("export "):
                check_command(shell, command, expected, READS)
    finally:
        federation.close()


@pytest.mark.xdist_group("shared")
@pytest.mark.parametrize(("page", "heading", "namespace"), SECTIONS)
def test_the_commands_of_a_section_do_what_it_says(
    page: str, heading: str, namespace: str, shared_federation: Federation, tmp_path: Path
) -> None:
    prepare(tmp_path)
    for name, target in (("fed", ""), (".kube", ".kube")):
        (tmp_path / name).symlink_to(shared_federation.directory / target)
    commands = sessions(section((ROOT / "docs" / page).read_text(encoding="utf-8"), heading))
    exports = [each for each, _ in commands if each.startswith("export ")]
    shell = Shell(tmp_path, ["export KUBECONFIG=$PWD/fed/kubeconfig", *exports])
    for command, expected in commands:
        if not command.startswith("export "):
            check_command(shell, command, expected, READS)
    if namespace:
        api = shared_federation.api(namespace)
        api.send("DELETE", api.url("deployments"))


def test_lines_are_compared_in_order_and_without_blanks() -> None:
    assert shows("a   b\nother\nc 12s\n", ["a b", "c …"])
    assert not shows("c 12s\na b\n", ["a b", "c …"])
    assert not shows("exit code 1: a", ["a"])
