"""The freezes and suspensions that an object waits for now, by what its conditions and statuses say. Pure.

Their messages begin with kind and name (`planning/freezes`), so users read the same in `fedctl why`.
"""

from collections.abc import Mapping
from typing import Any

from federation.api import names
from federation.api.resources import CHANGE_FREEZES, CLUSTER_DELIVERY_SUSPENSIONS, DELIVERY_SUSPENSIONS
from federation.apimachinery import conditions

_KINDS = frozenset(each.kind for each in (CHANGE_FREEZES, DELIVERY_SUSPENSIONS, CLUSTER_DELIVERY_SUSPENSIONS))
_WAITING = frozenset(("WaitingForUpdate", "DeliverySuspended"))
_FROZEN = "Frozen"


def holding_rules(federated: Mapping[str, Any]) -> frozenset[str]:
    """Return Kind/name or Kind/namespace/name of each freeze and suspension that a federated object waits for."""
    status = federated.get("status") or {}
    texts = [each.get("message") for each in status.get("clusters") or () if each.get("status") in _WAITING]
    scheduled = conditions.find(status.get("conditions"), names.SCHEDULED)
    if scheduled is not None and scheduled.get("reason") == _FROZEN:
        texts.append(scheduled.get("message"))
    return frozenset(filter(None, map(_rule_in, texts)))


def _rule_in(message: Any) -> str:
    """Return the rule that a message begins with, "" for another message."""
    kind, _, rest = str(message or "").partition(" ")
    return f"{kind}/{rest.partition(' ')[0]}" if kind in _KINDS else ""
