"""The FederatedClusters that webhooks receive: available resources less what recent decisions use.

Members report every few seconds, and many decisions are made in between. Installed plugins get reduced clusters
(`framework/expectedload.py`) or subtract assumed replicas themselves; a webhook knows only the report that it is sent.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from federation.apimachinery.quantity import NANOS, Quantity, parse
from federation.scheduling.framework.assumed import Request
from federation.scheduling.framework.types import CPU, Cluster, SchedulingUnit

_MEMO = "expected report"


def expected_report(unit: SchedulingUnit, cluster: Cluster) -> Mapping[str, Any]:
    """Return the FederatedCluster with the resources that are available after the unit's assumed replicas.

    The same mapping is returned for the same replicas. Nothing becomes negative that the member did not report so.
    """
    counts = unit.assumed.get(cluster.name)
    if not counts:
        return cluster.source
    known = cluster.memo.get(_MEMO)
    if known is None or known[0] != counts:
        known = cluster.memoize(_MEMO, (dict(counts), _less(cluster.source, counts)))
    report: Mapping[str, Any] = known[1]
    return report


def _less(source: Mapping[str, Any], counts: Mapping[Request, int]) -> Mapping[str, Any]:
    status = source.get("status") or {}
    resources = status.get("resources") or {}
    available = dict(resources.get("available") or {})
    used: Counter[str] = Counter()
    for request, count in counts.items():
        used.update({name: amount * count for name, amount in request})
    for name in available.keys() & used.keys():
        try:
            reported = parse(available[name])
        except ValueError:
            continue
        amount = Quantity(used[name] * (NANOS // 1000 if name == CPU else NANOS), reported.notation)
        available[name] = str(max(reported - amount, Quantity(min(0, reported.nanos), reported.notation)))
    return {**source, "status": {**status, "resources": {**resources, "available": available}}}
