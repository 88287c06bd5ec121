from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.support.vectors import ROOT

from federation.planning.diagnosis.findings import (
    MEMBER_VERSION_MAX,
    MEMBER_VERSION_MIN,
    OF_CLUSTERS,
    OF_CONFIGURATIONS,
    OF_METRICS,
    Facts,
    Finding,
    Sample,
    diagnose,
)
from federation.planning.diagnosis.level import Level

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY_S = 86_400.0


def a_cluster(name: str = "east", *, credential: dict[str, str] | None = None, **conditions: str) -> dict[str, Any]:
    found = {"Joined": "True", "Ready": "True", "Authorized": "True"} | conditions
    listed = [{"type": type_, "status": status, "reason": "Because", "message": "x"} for type_, status in found.items()]
    return {"metadata": {"name": name}, "status": {"conditions": listed, "credential": credential or {}}}


HEALTHY = Facts(
    NOW,
    "1.0",
    "[+]ping ok\nreadyz check passed",
    {"federation_build_info": [Sample({"version": "1.0"}, 1)]},
    clusters=[a_cluster()],
    host_skew_s=0.0,
)


OPEN_FILES = {"process_max_fds": [Sample({}, 65_536)], "process_open_fds": [Sample({}, 60_000)]}


def problems(facts: Facts) -> list[tuple[Level, str]]:
    return [(finding.level, finding.area) for finding in diagnose(facts) if finding.level is not Level.OK]


def with_sample(metric: str, value: float, **labels: str) -> Facts:
    return replace(HEALTHY, samples={**HEALTHY.samples, metric: [Sample(labels, value)]})


@pytest.mark.parametrize(("count", "command"), [(1, "--update-credentials c0 --kubeconfig FILE"), (2, "--all")])
def test_rights_that_many_members_lack_have_one_command_for_all(count: int, command: str) -> None:
    clusters = [a_cluster(f"c{number}", Authorized="False") for number in range(count)] + [a_cluster("fine")]
    remedies = [each.remedy for each in diagnose(replace(HEALTHY, clusters=clusters)) if each.area == "members"]
    assert len(remedies) == count
    assert all(command in remedy for remedy in remedies)


def test_a_slow_interpreter_of_the_control_plane_is_named_with_the_remedy() -> None:
    facts = with_sample("federation_build_info", 1, version="1.0", slow_python="3.11.7")
    (finding,) = [each for each in diagnose(facts) if each.level is not Level.OK]
    assert (finding.level, finding.area) == (Level.WARNING, "versions")
    assert "Python 3.11.7 that was built without" in finding.text
    assert "--enable-optimizations --with-lto" in finding.remedy
    assert problems(with_sample("federation_build_info", 1, version="1.0", slow_python="")) == []


def test_a_healthy_federation_has_one_line_per_area() -> None:
    findings = diagnose(HEALTHY)
    assert [finding.level for finding in findings] == [Level.OK] * 9
    assert len({finding.area for finding in findings}) == 9


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (replace(HEALTHY, readiness="[-]store failed: no space"), (Level.ERROR, "host")),
        (replace(HEALTHY, readiness="[!]warning: encryption is off"), (Level.WARNING, "host")),
        (with_sample("process_max_fds", 1_024), (Level.WARNING, "host")),
        (replace(HEALTHY, samples=HEALTHY.samples | OPEN_FILES), (Level.WARNING, "host")),
        (with_sample("federation_store_damaged_entries", 2), (Level.ERROR, "store")),
        (with_sample("federation_store_pending_writes", 5_000), (Level.WARNING, "store")),
        (
            with_sample("federation_certificate_expiry_seconds", -1, certificate="serving"),
            (Level.ERROR, "certificates"),
        ),
        (
            with_sample("federation_certificate_expiry_seconds", 3 * DAY_S, certificate="serving"),
            (Level.WARNING, "certificates"),
        ),
        (
            with_sample("federation_certificate_expiry_seconds", 90 * DAY_S, certificate="front-proxy-ca"),
            (Level.WARNING, "certificates"),
        ),
        (
            replace(HEALTHY, clusters=[a_cluster(credential={"expires": "2025-12-31T00:00:00Z"})]),
            (Level.ERROR, "certificates"),
        ),
        (replace(HEALTHY, clusters=[]), (Level.WARNING, "members")),
        (replace(HEALTHY, clusters=[a_cluster(Ready="Unknown")]), (Level.ERROR, "members")),
        (replace(HEALTHY, clusters=[a_cluster(Joined="False", Ready="False")]), (Level.ERROR, "members")),
        (replace(HEALTHY, clusters=[a_cluster(Authorized="False")]), (Level.WARNING, "members")),
        (with_sample("federation_client_circuit_open", 1, cluster="east"), (Level.WARNING, "members")),
        (with_sample("federation_objects", 1, state="failing"), (Level.ERROR, "objects")),
        (with_sample("federation_objects", 1, state="unplaced"), (Level.WARNING, "objects")),
        (with_sample("federation_replicas_unplaced", 3), (Level.WARNING, "objects")),
        (replace(HEALTHY, holds=1), (Level.WARNING, "objects")),
        (replace(HEALTHY, leftovers=1), (Level.WARNING, "objects")),
        (with_sample("federation_runtime_queue_oldest_seconds", 61, queue="sync"), (Level.WARNING, "controllers")),
        (with_sample("federation_base_task_restarts_total", 1, task="sync"), (Level.WARNING, "controllers")),
        (replace(HEALTHY, host_skew_s=-30.0), (Level.WARNING, "clocks")),
        (with_sample("federation_client_clock_skew_seconds", 90, cluster="east"), (Level.ERROR, "clocks")),
        (replace(HEALTHY, client_version="2.0"), (Level.WARNING, "versions")),
        (replace(HEALTHY, missing=["/metrics: forbidden"]), (Level.WARNING, "access")),
    ],
)
def test_each_problem_is_found_once(facts: Facts, expected: tuple[Level, str]) -> None:
    assert problems(facts) == [expected]


@pytest.mark.parametrize(
    "facts",
    [
        with_sample("federation_objects", 1, state="applied"),
        with_sample("federation_certificate_expiry_seconds", 300 * DAY_S, certificate="ca"),
        with_sample("federation_client_clock_skew_seconds", -2, cluster="east"),
        with_sample("federation_runtime_leader", 0, lease="controllers"),
        replace(HEALTHY, clusters=[a_cluster(credential={"expires": "2026-01-02T00:00:00Z"})]),
        replace(HEALTHY, clusters=[a_cluster(), {"metadata": {"name": "new"}}]),
    ],
)
def test_what_is_normal_is_no_problem(facts: Facts) -> None:
    assert problems(facts) == []


def test_the_worst_comes_first_and_every_error_has_a_remedy() -> None:
    facts = replace(HEALTHY, clusters=[a_cluster(Ready="False")], holds=1, readiness="[-]store failed: x")
    findings = diagnose(facts)
    assert [f.level for f in findings] == sorted(
        (f.level for f in findings), key=[Level.ERROR, Level.WARNING, Level.OK].index
    )
    assert all(finding.remedy for finding in findings if finding.level is Level.ERROR)


def test_the_direction_of_a_wrong_clock_is_named() -> None:
    (finding,) = [f for f in diagnose(replace(HEALTHY, host_skew_s=-30.0)) if f.level is not Level.OK]
    assert finding == Finding(
        Level.WARNING,
        "clocks",
        "the host's clock is 30 s behind this machine's",
        "synchronise the clocks, for example with chrony",
    )


def running(**versions: str) -> Facts:
    clusters = []
    for name, version in versions.items():
        cluster = a_cluster()
        status = {**cluster["status"], "kubernetesVersion": version}
        clusters.append({**cluster, "metadata": {"name": name}, "status": status})
    return replace(HEALTHY, clusters=clusters)


@pytest.mark.parametrize(
    ("version", "remedy"),
    [
        ("v1.29.7", "upgrade the member"),
        ("v1.37.0-rc.1", "upgrade the control plane"),
        ("v2.0.0", "upgrade the control plane"),
    ],
)
def test_a_member_outside_of_the_supported_versions_is_named(version: str, remedy: str) -> None:
    (finding,) = [finding for finding in diagnose(running(old=version)) if finding.level is not Level.OK]
    assert finding.text == f"member old runs Kubernetes {version}; supported are 1.30 to 1.36"
    assert finding.remedy == remedy


def test_supported_versions_are_no_problem_and_their_range_is_shown() -> None:
    assert not problems(running(east="v1.36.1+k3s1", west="v1.30.0", other="not a version", none=""))
    texts = [finding.text for finding in diagnose(running(east="v1.36.1+k3s1", west="v1.30.0"))]
    shown = (
        "members run Kubernetes 1.30 (west) to 1.36 (east); older ones ignore or refuse fields that they do not know"
    )
    assert shown in texts
    same = [finding.text for finding in diagnose(running(east="v1.34.1", west="v1.34.0"))]
    assert not [text for text in same if text.startswith("members run")]


def test_the_supported_versions_are_those_of_the_front_page() -> None:
    (first, last), texts = (MEMBER_VERSION_MIN, MEMBER_VERSION_MAX), (ROOT / "README.md").read_text()
    assert f"from {first[0]}.{first[1]} to {last[0]}.{last[1]} can be a member" in texts


UNREAD = frozenset((OF_METRICS, OF_CLUSTERS, OF_CONFIGURATIONS))


def test_nothing_is_said_about_what_the_user_may_not_read() -> None:
    blind = replace(HEALTHY, samples={}, clusters=(), missing=["no"], unread=UNREAD)
    assert {finding.area for finding in diagnose(blind)} == {"host", "access"}
    one_eyed = replace(HEALTHY, clusters=(), unread=frozenset((OF_CLUSTERS,)))
    assert "members" not in {finding.area for finding in diagnose(one_eyed)}


def test_an_error_of_the_host_is_no_lack_of_rights() -> None:
    failed = diagnose(replace(HEALTHY, failures=["the store does not answer", "the store does not answer"]))
    assert [(finding.level, finding.area, finding.text) for finding in failed if finding.level is not Level.OK] == [
        (Level.ERROR, "host", "the store does not answer")
    ]


def a_cause(attention: str, subject: str, title: str, count: int) -> dict[str, Any]:
    sample = {"kind": "Deployment", "namespace": "shop", "name": "web"}
    return {"attention": attention, "subject": subject, "title": title, "count": count, "samples": [sample]}


def test_a_dead_member_is_one_finding_with_the_number_of_its_objects() -> None:
    causes = [a_cause("stale", "east", "east does not answer", 53)]
    samples = {
        "federation_objects": [Sample({"state": "silent"}, 53)],
        "federation_client_circuit_open": [Sample({"cluster": "east"}, 1)],
    }
    facts = replace(HEALTHY, clusters=[a_cluster(Ready="False")], causes=causes, samples=HEALTHY.samples | samples)
    (finding,) = [found for found in diagnose(facts) if found.level is not Level.OK]
    assert (finding.level, finding.area) == (Level.ERROR, "members")
    assert finding.text.endswith("; last known state: 53 objects")


def test_refusals_are_grouped_by_cause_and_name_a_command_for_the_first_object() -> None:
    causes = [a_cause("not-delivered", "west/CreationFailed", "west: creation refused", 3)]
    facts = replace(with_sample("federation_objects", 3, state="failing"), causes=causes)
    (finding,) = [found for found in diagnose(facts) if found.level is not Level.OK]
    assert finding == Finding(
        Level.ERROR, "objects", "west: creation refused: 3 objects", "fedctl why deployment/web -n shop"
    )
    many = [a_cause("not-delivered", str(at), f"c{at}: creation refused", 1) for at in range(12)]
    found = [each.text for each in diagnose(replace(HEALTHY, causes=many)) if each.level is not Level.OK]
    assert len(found) == 11
    assert found[-1] == "and 2 more causes of refusals"


@pytest.mark.parametrize(
    ("status", "reason", "level"),
    [("False", "NotServed", Level.ERROR), ("False", "NotStored", Level.WARNING), ("True", "Stored", None)],
)
def test_a_configuration_of_another_version_than_the_stored_one_is_named(
    status: str, reason: str, level: Level | None
) -> None:
    condition = {"type": "VersionCurrent", "status": status, "reason": reason, "message": "it says so: set the version"}
    config = {"metadata": {"name": "widgets.example.com"}, "status": {"conditions": [condition]}}
    found = [each for each in diagnose(replace(HEALTHY, type_configs=[config])) if each.level is not Level.OK]
    wanted = [] if level is None else [Finding(level, "versions", "widgets.example.com: it says so", "set the version")]
    assert found == wanted
