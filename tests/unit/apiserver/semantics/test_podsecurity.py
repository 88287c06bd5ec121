"""Pod Security: the policy in the labels of a namespace, and checks that depend on version and operating system."""

from typing import Any

import pytest

from federation.apiserver.semantics.podsecurity.checks import CHECKS
from federation.apiserver.semantics.podsecurity.evaluation import details, evaluate, warnings_about
from federation.apiserver.semantics.podsecurity.levels import (
    NO_POLICY,
    PREFIX,
    Level,
    LevelVersion,
    is_stricter,
    parse_policy,
)

LATEST_RESTRICTED = LevelVersion(Level.RESTRICTED)


def labels(**modes: str) -> dict[str, str]:
    return {PREFIX + mode.replace("_", "-"): value for mode, value in modes.items()}


def a_spec(context: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return {"containers": [{"name": "main", "securityContext": context or {}}], **fields}


def reasons(level: LevelVersion, spec: dict[str, Any], **annotations: str) -> list[str]:
    return [found.reason for found in evaluate(level, {"annotations": annotations}, spec)]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({}, ["privileged:latest", "privileged:latest", "privileged:latest"]),
        (labels(enforce="baseline"), ["baseline:latest", "privileged:latest", "baseline:latest"]),
        (labels(enforce="baseline", enforce_version="v1.9"), ["baseline:v1.9", "privileged:latest", "baseline:v1.9"]),
        (
            labels(enforce="restricted", warn="privileged"),
            ["restricted:latest", "privileged:latest", "privileged:latest"],
        ),
        (labels(enforce="baseline", warn_version="v1.20"), ["baseline:latest", "privileged:latest", "baseline:v1.20"]),
        (
            labels(audit="restricted", audit_version="latest"),
            ["privileged:latest", "restricted:latest", "privileged:latest"],
        ),
        (labels(enforce="unknown"), ["restricted:latest", "privileged:latest", "privileged:latest"]),
        (labels(warn="unknown", audit="unknown"), ["privileged:latest", "privileged:latest", "privileged:latest"]),
    ],
    ids=str,
)
def test_labels_become_a_policy_that_is_strict_where_it_enforces(given: dict[str, str], shown: list[str]) -> None:
    policy, _ = parse_policy(given)
    assert [str(mode) for mode in (policy.enforce, policy.audit, policy.warn)] == shown


def test_labels_that_cannot_be_read_are_named() -> None:
    assert parse_policy({"app": "web"}) == (NO_POLICY, [])
    _, causes = parse_policy(labels(enforce="high", audit_version="1.9", warn_version="v1.09"))
    assert [cause["field"].rpartition("/")[2] for cause in causes] == ["enforce]", "audit-version]", "warn-version]"]


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        (LevelVersion(Level.BASELINE), LevelVersion(Level.PRIVILEGED), True),
        (LevelVersion(Level.BASELINE), LevelVersion(Level.RESTRICTED), False),
        (LevelVersion(Level.BASELINE, 20), LevelVersion(Level.RESTRICTED), True),
        (LevelVersion(Level.PRIVILEGED, 20), LevelVersion(Level.RESTRICTED), False),
        (LevelVersion(Level.RESTRICTED), LevelVersion(Level.RESTRICTED), False),
    ],
    ids=str,
)
def test_existing_pods_matter_only_to_a_stricter_level(new: LevelVersion, old: LevelVersion, expected: bool) -> None:
    assert is_stricter(new, old) is expected


@pytest.mark.parametrize(
    ("minor", "spec", "expected"),
    [
        (7, a_spec(), ["runAsNonRoot != true"]),
        (8, a_spec(), ["allowPrivilegeEscalation != false", "runAsNonRoot != true"]),
        (
            22,
            a_spec({"allowPrivilegeEscalation": False, "runAsNonRoot": True}),
            ["unrestricted capabilities", "seccompProfile"],
        ),
        (22, a_spec({"runAsNonRoot": True, "runAsUser": 0}, os={"name": "windows"}), None),
        (25, a_spec({"runAsNonRoot": True}, os={"name": "windows"}), []),
        (
            34,
            a_spec({"runAsUser": 0}, os={"name": "windows"}, hostUsers=False),
            ["runAsNonRoot != true", "runAsUser=0"],
        ),
        (35, a_spec({"runAsUser": 0}, os={"name": "windows"}, hostUsers=False), []),
        (35, a_spec({"procMount": "Unmasked"}, os={"name": "windows"}, hostUsers=False), ["procMount"]),
    ],
    ids=str,
)
def test_a_version_has_the_checks_of_its_time(minor: int, spec: dict[str, Any], expected: list[str] | None) -> None:
    found = reasons(LevelVersion(Level.RESTRICTED, minor), spec)
    assert found == expected if expected is not None else "allowPrivilegeEscalation != false" in found


def test_baseline_allows_unmasked_processes_in_a_user_namespace_since_1_35() -> None:
    spec = a_spec({"procMount": "Unmasked"}, hostUsers=False)
    assert reasons(LevelVersion(Level.BASELINE, 34), spec) == ["procMount"]
    assert reasons(LevelVersion(Level.BASELINE), spec) == []


def test_restricted_checks_replace_those_of_baseline() -> None:
    spec = a_spec({"capabilities": {"add": ["SYS_TIME"]}}, volumes=[{"name": "v", "hostPath": {"path": "/"}}])
    found = reasons(LATEST_RESTRICTED, spec)
    assert found == [
        "allowPrivilegeEscalation != false",
        "unrestricted capabilities",
        "restricted volume types",
        "runAsNonRoot != true",
        "seccompProfile",
    ]
    assert reasons(LevelVersion(Level.BASELINE), spec) == ["non-default capabilities", "hostPath volumes"]


def test_annotations_count_in_the_versions_that_read_them() -> None:
    key = "seccomp.security.alpha.kubernetes.io/pod"
    baseline = LevelVersion(Level.BASELINE, 18)
    (found,) = evaluate(baseline, {"annotations": {key: "unconfined"}}, a_spec())
    assert found.detail == f'forbidden annotation {key}="unconfined"'
    assert reasons(LevelVersion(Level.BASELINE, 19), a_spec(), **{key: "unconfined"}) == []
    armor = {"container.apparmor.security.beta.kubernetes.io/main": "unconfined"}
    (found,) = evaluate(LevelVersion(Level.BASELINE), {"annotations": armor}, a_spec())
    assert found.reason == "forbidden AppArmor profile"


def test_hosts_of_probes_and_hooks_are_forbidden() -> None:
    container = {
        "name": "main",
        "ports": [{"containerPort": 80, "hostPort": 8080}, {"containerPort": 81, "hostPort": 90}],
        "livenessProbe": {"httpGet": {"port": 80, "host": "b.example"}},
        "lifecycle": {"preStop": {"tcpSocket": {"port": 1, "host": "a.example"}}, "stopSignal": "SIGTERM"},
    }
    found = evaluate(LevelVersion(Level.BASELINE), {}, {"containers": [container]})
    assert details(found) == (
        'hostPort (container "main" uses hostPorts 8080, 90), probe or lifecycle host (container "main" uses probe or'
        ' lifecycle hosts "a.example", "b.example")'
    )


def test_the_texts_keep_the_order_of_kubernetes() -> None:
    for level in (Level.BASELINE, Level.RESTRICTED):
        ids = [check.id for check in CHECKS if check.level is level]
        assert ids == sorted(ids)


def test_warnings_count_the_pods_of_each_kind_of_violation() -> None:
    def a_pod(name: str, owner: str = "", **fields: Any) -> dict[str, Any]:
        owners = [{"uid": owner, "controller": True, "apiVersion": "v1", "kind": "X", "name": "x"}] if owner else []
        return {"metadata": {"name": name, "ownerReferences": owners}, "spec": a_spec(**fields)}

    pods = [a_pod("b", "w", hostPID=True), a_pod("a", "w", hostPID=True), a_pod("c", hostIPC=True), a_pod("d")]
    assert warnings_about(LevelVersion(Level.BASELINE), "team", pods) == [
        'existing pods in namespace "team" violate the new PodSecurity enforce level "baseline:latest"',
        "a (and 2 other pods): host namespaces",
    ]
    assert warnings_about(LevelVersion(Level.BASELINE), "team", [a_pod("d")]) == []
    many = [a_pod(f"p{number}", "w", hostPID=True) for number in range(3001)]
    assert "only checked against the first 3000 of 3001" in warnings_about(LevelVersion(Level.BASELINE), "t", many)[0]
