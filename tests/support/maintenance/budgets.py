"""The MaintenanceBudgets of a world, and what is used of them: an object pays until members have reported its move."""

from collections.abc import Mapping
from typing import Any

import msgspec

from federation.apimachinery.annotationrecords import AnnotationRecord, Count
from federation.apimachinery.resources import Object
from federation.planning.accounts.claim import has_reported
from federation.planning.federatedobject.placements import Name, effective_placement
from federation.scheduling.worldobjects import Accounts, name_of
from tests.support.maintenance.model import MAINTENANCE_BUDGETS

Budget = Name
"""The namespace and the team."""


class Move(msgspec.Struct, frozen=True):
    """The annotation of an object that moves: the budget that pays, and until when."""

    team: str
    replicas: Count
    at: Count
    """The generation of the object with the move."""


MOVE = AnnotationRecord("federation.kubeadmiral.io/maintenance-move", Move)


class Budgets(Accounts):
    """The budgets by namespace and team, and the moves that they pay."""

    resource = MAINTENANCE_BUDGETS

    def __init__(self) -> None:
        super().__init__()
        self._specs: dict[Budget, Mapping[str, Any]] = {}

    def put(self, obj: Object) -> str:
        """Add or replace a budget."""
        self._specs[name_of(obj)] = obj["spec"]
        return ""

    def remove(self, obj: Object) -> None:
        """Remove a budget."""
        self._specs.pop(name_of(obj), None)

    def find(self, federated: Mapping[str, Any]) -> tuple[Budget, Mapping[str, Any]] | None:
        """Return the budget of an object, None without one."""
        labels = federated["spec"]["template"]["metadata"].get("labels") or {}
        budget = str(federated["metadata"].get("namespace") or ""), str(labels.get("team") or "")
        return (budget, self._specs[budget]) if budget in self._specs else None

    def claim_of(self, federated: Mapping[str, Any]) -> Move | None:
        """Return the move of an object that members have not reported yet."""
        move = MOVE.of(federated)
        return None if move is None or has_reported(federated, move.at, effective_placement(federated)) else move

    def used(self, budget: Budget, without: Name) -> int:
        """Return the replicas of other objects that are on their way."""

        def value(move: Move) -> dict[str, int]:
            return {move.team: move.replicas}

        own = {key for key in self.ledger.payers() if isinstance(key, tuple) and key[0] == budget[0] and key != without}
        paid = (self.ledger.paid(key, value) or {} for key in own)
        return sum(each.get(budget[1], 0) for each in paid)
