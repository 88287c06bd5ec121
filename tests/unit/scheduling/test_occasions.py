"""The meaning of other workloads for a recorded decision."""

from collections.abc import Mapping

from federation.scheduling.framework.quotaheadroom import QUOTA, Quota
from federation.scheduling.framework.testing import a_unit
from federation.scheduling.occasions import Surroundings
from federation.scheduling.snapshot import Snapshot

EMPTY = Snapshot(1, ())


class Exhausted:
    def excess(self, replicas: Mapping[str, int]) -> str:
        return "nothing is left"


def test_a_unit_gets_the_recorded_quota() -> None:
    quota: Quota = Exhausted()
    unit = a_unit()
    assert QUOTA.of(Surroundings(quota=lambda *_: quota).limited(unit, EMPTY)) is quota
    assert Surroundings().limited(unit, EMPTY) is unit
