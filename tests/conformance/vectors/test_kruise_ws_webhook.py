"""Admission of pods by a WorkloadSpread: the chosen subset, the changed pod and the ledger, as in the vectors."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tests.support.spreads import RECORDS, among, marked, with_controller
from tests.support.vectorfacts import contains
from tests.support.vectors import each_case, facts, load

from federation.apiserver.semantics.validation.podpatches import patch_pod
from federation.features.workloadspread.rules.hub import to_hub
from federation.features.workloadspread.rules.injection import inject_subset
from federation.features.workloadspread.rules.ledger import choose_subset, parse_match, record_deletion
from federation.features.workloadspread.rules.references import find_spread
from federation.features.workloadspread.rules.versions import pod_version

NOW = datetime(2026, 1, 1, tzinfo=UTC)
EXISTING = "cloneset-test"
"""The only workload in the cluster."""


def _stored(versions: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return entries as they are stored."""
    return {version: [marked(status) for status in entry or ()] for version, entry in (versions or {}).items()}


def _check_entries(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for version, entry in expected.items():
        statuses = {status["name"]: status for status in found[version]}
        assert list(statuses) == [status["name"] for status in entry or ()]
        for each in entry or ():
            wanted = facts(
                marked(each), name="", missingReplicas=0, conditions=[], replicas=None, creatingPods={}, deletingPods={}
            )
            status = statuses[each["name"]]
            assert (status.get("missingReplicas") or 0) == wanted["missingReplicas"]
            assert wanted["replicas"] in (None, status.get("replicas") or 0)
            assert contains(status.get("conditions") or [], wanted["conditions"])
            for field in RECORDS:
                assert set(status.get(field) or ()) == set(wanted[field]), f"{each['name']}: {field}"


def _is_complete(spread: Mapping[str, Any]) -> bool:
    """Return True if the case names the target; short cases say only its kind."""
    return bool(((spread.get("spec") or {}).get("targetRef") or {}).get("name"))


def _search(spread: dict[str, Any], pod: Mapping[str, Any]) -> tuple[Any, bool]:
    """Return the WorkloadSpread of the pod, and whether a controller to look up does not exist."""
    if not _is_complete(spread):
        return spread, False
    search = find_spread(among(spread), pod)
    try:
        reference = next(search)
        while reference.get("name") == EXISTING:
            reference = search.send({"metadata": {}})
    except StopIteration as done:
        return done.value, False
    return None, True


def _given(case: dict[str, Any]) -> dict[str, Any]:
    return facts(
        case["input"],
        operation="Create",
        pod={},
        workloadSpread={},
        versionedSubsetStatuses={},
        subsetStatuses=[],
        unschedulable=[],
        workloadReplicas=0,
        dryRun=False,
    )


def _spread(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the WorkloadSpread with its status, which the case has in the object or beside it."""
    stored = given["workloadSpread"].get("status") or {}
    overall = [*(stored.get("subsetStatuses") or ()), *given["subsetStatuses"]]
    known = {status.get("name") for status in overall}
    overall += [{"name": name, "schedulable": "False"} for name in given["unschedulable"] if name not in known]
    versions = _stored({**(stored.get("versionedSubsetStatuses") or {}), **given["versionedSubsetStatuses"]})
    status = {**stored, "subsetStatuses": list(map(marked, overall)), "versionedSubsetStatuses": versions}
    return to_hub({**given["workloadSpread"], "status": status})


@each_case(load("kruise-ws-webhook"))
def test_pods_are_admitted_as_in_the_vectors(case: dict[str, Any]) -> None:
    given, expected = _given(case), case["expected"]
    spread, pod, total = _spread(given), given["pod"], int(given["workloadReplicas"])
    before, version = spread["status"]["versionedSubsetStatuses"], pod_version(pod)
    if given["operation"] != "Create":
        assert given["operation"] in {"Delete", "Eviction"}
        match = parse_match(pod)
        is_named = match is not None and match.spread == (spread.get("metadata") or {}).get("name")
        is_recorded = is_named and not given["dryRun"]
        status = record_deletion(spread, pod, version=version, total=total, now=NOW) if is_recorded else None
        _check_ledger(expected, before, status)
        assert expected.get("pod") in (None, pod)
        return
    found, is_missing = _search(spread, pod)
    assert is_missing == bool(expected.get("error")), "a controller of the pod does not exist"
    if found is None or given["dryRun"]:
        assert expected.get("pod") in (None, pod)
        assert expected.get("chosenSubset") is None
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
    match = parse_match(injected)
    if expected.get("annotation has uid") is not None:
        assert match is not None
        assert bool(match.uid) is expected["annotation has uid"]
    _check_ledger(expected, before, choice.status, str(name), choice.uid or str(pod["metadata"].get("name")))


def _check_ledger(
    expected: Mapping[str, Any],
    before: dict[str, Any],
    status: Mapping[str, Any] | None,
    chosen: str = "",
    recorded: str = "",
) -> None:
    assert expected.get("allowed") in (None, True)  # a pod is never refused for want of a subset
    after = before if status is None else status["versionedSubsetStatuses"]
    if expected.get("statusUpdated") is not None:
        assert (status is not None) is expected["statusUpdated"]
    if expected.get("versionedSubsetStatuses") is not None:
        _check_entries(after, expected["versionedSubsetStatuses"])
    statuses = {each["name"]: each for entry in after.values() for each in entry}
    for name, missing in (expected.get("missingReplicas") or {}).items():
        assert statuses[name].get("missingReplicas") == missing
    for field in RECORDS:
        for name, ids in (expected.get(field) or {}).items():
            assert set(statuses[name].get(field) or ()) == set(ids)
        if key := expected.get(f"{field} has key"):
            # The key is the name of a pod, or it says in words that it is the generated one.
            records = {pod for name in ([chosen] if chosen else statuses) for pod in statuses[name].get(field) or ()}
            assert {key, recorded} & records


@each_case(load("kruise-ws-webhook"), is_whole=False)
def test_admission_changes_nothing_in_place(case: dict[str, Any]) -> None:
    given = _given(case)
    spread, pod = _spread(given), with_controller(given["pod"])
    texts = repr((spread, pod))
    choice = choose_subset(spread, pod, version=pod_version(pod), total=0, uid="new-uid", now=NOW)
    if choice.subset is not None:
        inject_subset(pod, "test-ws", choice.subset, patch_pod)
    record_deletion(spread, pod, version=pod_version(pod), total=0, now=NOW)
    assert repr((spread, pod)) == texts
