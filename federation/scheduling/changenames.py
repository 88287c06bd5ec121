"""The named changes that a decision follows from (docs/review.md). Pure.

A change has a name in the annotation `names.CHANGE` of the objects that it wrote. The last decision recorded the names
that its object and its policy had, so that a name is given once: later decisions have other causes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from federation.api import names
from federation.apimachinery.annotationrecords import AnnotationRecord
from federation.scheduling.names import DECIDED_CHANGES
from federation.scheduling.policyspec import CHANGE_LENGTH_MAX, Policy

_RECORD = AnnotationRecord(DECIDED_CHANGES, dict[str, str])
_OBJECT, _POLICY = "object", "policy"
_OF_POLICY = frozenset(("policyContentHash", "policyName"))


def change_of(obj: Mapping[str, Any]) -> str:
    """Return the name of the change that wrote an object, "" without one."""
    name = ((obj.get("metadata") or {}).get("annotations") or {}).get(names.CHANGE)
    return str(name)[:CHANGE_LENGTH_MAX] if name else ""


def changes_annotation(federated: Mapping[str, Any], policy: Policy) -> dict[str, str | None]:
    """Return the annotation to write with a decision, {} if there is nothing to record or remove."""
    present = _present(federated, policy)
    is_recorded = DECIDED_CHANGES in ((federated.get("metadata") or {}).get("annotations") or {})
    return _RECORD.entry(present) if present or is_recorded else {}


def causing_changes(federated: Mapping[str, Any], policy: Policy, changed: Sequence[str]) -> list[dict[str, str]]:
    """Return the changes behind a decision, each with the name and the object that it wrote.

    `changed` are the triggers that differ from the last decision's, () without one.
    """
    recorded, kind = _RECORD.of(federated) or {}, str(federated["spec"]["template"].get("kind") or "")
    new = {which: name for which, name in _present(federated, policy).items() if recorded.get(which) != name}
    found = []
    if name := new.get(_OBJECT):
        found.append({"name": name, "of": f"{kind} {federated['spec']['template']['metadata']['name']}"})
    if (name := new.get(_POLICY)) and (not changed or not _OF_POLICY.isdisjoint(changed)):
        found.append({"name": name, "of": str(policy.ref)})
    return found


def _present(federated: Mapping[str, Any], policy: Policy) -> dict[str, str]:
    found = {_OBJECT: change_of(federated), _POLICY: policy.change}
    return {which: name for which, name in found.items() if name}
