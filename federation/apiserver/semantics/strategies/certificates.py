"""Strategy of CertificateSigningRequests: immutable once created, except through their status and approval."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from federation.apimachinery import nameformats
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.fielderrors import Causes
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.strategies.base import StatusFields, Strategy
from federation.apiserver.semantics.validation.certificatevalidation import (
    APPROVED,
    DENIED,
    CSRUpdate,
    conditions_of,
    validate_request,
    validate_request_update,
)

_REQUESTER = ("username", "uid", "groups", "extra")


class CertificateSigningRequestStrategy(Strategy):
    """certificates.k8s.io/v1 CertificateSigningRequest."""

    names_again = False
    status_always: ClassVar[StatusFields] = {}
    records_requester = True

    name_problems = staticmethod(nameformats.path_segment)

    def record_requester(self, obj: Object, user: Mapping[str, Any]) -> None:
        spec = {name: value for name, value in (obj.get("spec") or {}).items() if name not in _REQUESTER}
        obj["spec"] = spec | {name: user[name] for name in _REQUESTER if user.get(name)}

    def prepare_update(self, new: Object, old: Object) -> None:
        new["spec"] = old["spec"]

    def prepare_status_update(self, new: Object, old: Object) -> None:
        # A signer must not lose the approval that it read, nor change it.
        conditions = list((new.get("status") or {}).get("conditions") or ())
        for kind in (APPROVED, DENIED):
            before = conditions_of(old, kind)
            positions = [index for index, found in enumerate(conditions) if found.get("type") == kind]
            if len(before) == len(positions):
                for index, condition in zip(positions, before, strict=True):
                    conditions[index] = dict(condition)
        if conditions:
            new["status"]["conditions"] = conditions

    def prepare_approval(self, new: Object, old: Object) -> None:
        conditions = (new.get("status") or {}).get("conditions")
        new["status"] = {name: value for name, value in (old.get("status") or {}).items() if name != "conditions"}
        if conditions:
            new["status"]["conditions"] = conditions

    def set_times(self, new: Object, old: Object | None, now: datetime) -> None:
        time = to_rfc3339(now)
        before = ((old or {}).get("status") or {}).get("conditions") or ()
        for condition in (new.get("status") or {}).get("conditions") or ():
            if not condition.get("lastUpdateTime"):
                condition["lastUpdateTime"] = time
            if not condition.get("lastTransitionTime"):
                same = (found for found in before if _is_same_state(found, condition))
                known = next((found["lastTransitionTime"] for found in same if found.get("lastTransitionTime")), time)
                condition["lastTransitionTime"] = known

    validate = staticmethod(validate_request)

    def validate_update(self, new: Object, old: Object) -> Causes:
        return validate_request_update(new, old, CSRUpdate())

    def validate_status_update(self, new: Object, old: Object) -> Causes:
        return validate_request_update(new, old, CSRUpdate(may_issue=True))

    def validate_approval(self, new: Object, old: Object) -> Causes:
        return validate_request_update(new, old, CSRUpdate(may_approve=True))


def _is_same_state(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    return left.get("type") == right.get("type") and left.get("status") == right.get("status")
