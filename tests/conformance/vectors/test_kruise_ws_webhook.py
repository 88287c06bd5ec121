"""Admission of pods by a WorkloadSpread: the chosen subset, the changed pod and the ledger, as in the vectors."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tests.support.spreads import among, drive, with_controller
from tests.support.vectors import each_case, filled, load

from federation.apiserver.semantics.validation.podpatches import patch_pod
from federation.planning.workloadspread.hub import to_hub
from federation.planning.workloadspread.injection import inject_subset
from federation.planning.workloadspread.ledger import choose_subset, parse_match, record_deletion
from federation.planning.workloadspread.references import find_spread
from federation.planning.workloadspread.versions import pod_version

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TIME = "2026-01-01T00:00:00Z"


def _stored(versions: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return entries whose records are maps, as they are stored."""
    return {
        version: [
            {key: dict.fromkeys(value or (), TIME) if key.endswith("Pods") else value for key, value in status.items()}
            for status in entry or ()
        ]
        for version, entry in (versions or {}).items()
    }


def _compared(versions: Mapping[str, Any] | None) -> dict[str, Any]:
    return {
        version: {
            status["name"]: (
                status.get("missingReplicas") or 0,
                set(status.get("creatingPods") or ()),
                set(status.get("deletingPods") or ()),
            )
            for status in entry or ()
        }
        for version, entry in (versions or {}).items()
    }


def _is_complete(spread: Mapping[str, Any]) -> bool:
    """Return True if the case names the target; short cases say only its kind."""
    return bool(((spread.get("spec") or {}).get("targetRef") or {}).get("name"))


@each_case(load("kruise-ws-webhook"))
def test_pods_are_admitted_as_in_the_vectors(case: dict[str, Any]) -> None:
    given = filled(case["input"], operation="Create", pod={}, workloadSpread={}, versionedSubsetStatuses={})
    before = _stored(given["versionedSubsetStatuses"])
    spread = to_hub({**given["workloadSpread"], "status": {"versionedSubsetStatuses": before}})
    pod, total = given["pod"], int(given.get("workloadReplicas") or 0)
    version = pod_version(pod)
    expected = case["expected"]
    if given["operation"] != "Create":
        match = parse_match(pod)
        is_named = match is not None and match.spread == (spread.get("metadata") or {}).get("name")
        status = record_deletion(spread, pod, version=version, total=total, now=NOW) if is_named else None
        _check_ledger(expected, before, status)
        return
    found = drive(find_spread(among(spread), pod)) if _is_complete(spread) else spread
    if found is None:
        assert expected.get("pod") in (None, pod)
        _check_ledger(expected, before, None)
        return
    choice = choose_subset(spread, pod, version=version, total=total, uid="new-uid", now=NOW)
    name = (choice.subset or {}).get("name")
    assert name == expected.get("chosenSubset", name)
    injected = pod
    if choice.subset is not None:
        spread_name = (spread.get("metadata") or {}).get("name") or ""
        injected = inject_subset(pod, spread_name, choice.subset, patch_pod, choice.uid)
    if expected.get("pod") is not None:
        assert injected == expected["pod"]
    if expected.get("generatedUID"):
        assert choice.uid == "new-uid"
    if expected.get("annotation has uid") is not None:
        match = parse_match(injected)
        assert match is not None
        assert bool(match.uid) is expected["annotation has uid"]
    _check_ledger(expected, before, choice.status, str(name), choice.uid)


def _check_ledger(
    expected: Mapping[str, Any],
    before: dict[str, Any],
    status: Mapping[str, Any] | None,
    chosen: str = "",
    uid: str = "",
) -> None:
    after = before if status is None else status["versionedSubsetStatuses"]
    if expected.get("statusUpdated") is not None:
        assert (status is not None) is expected["statusUpdated"]
    if expected.get("versionedSubsetStatuses") is not None:
        assert _compared(after) == _compared(expected["versionedSubsetStatuses"])
    statuses = {name: found for entry in _compared(after).values() for name, found in entry.items()}
    for name, missing in (expected.get("missingReplicas") or {}).items():
        assert statuses[name][0] == missing
    if expected.get("creatingPods has key"):
        assert uid
        assert statuses[chosen][1] == {uid}


@each_case(load("kruise-ws-webhook"))
def test_admission_changes_nothing_in_place(case: dict[str, Any]) -> None:
    given = filled(case["input"], pod={}, workloadSpread={}, versionedSubsetStatuses={})
    before = {"versionedSubsetStatuses": _stored(given["versionedSubsetStatuses"])}
    spread, pod = to_hub({**given["workloadSpread"], "status": before}), with_controller(given["pod"])
    texts = repr((spread, pod))
    choice = choose_subset(spread, pod, version=pod_version(pod), total=0, uid="new-uid", now=NOW)
    if choice.subset is not None:
        inject_subset(pod, "test-ws", choice.subset, patch_pod)
    record_deletion(spread, pod, version=pod_version(pod), total=0, now=NOW)
    assert repr((spread, pod)) == texts
