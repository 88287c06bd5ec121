"""The permits of the spine."""

from federation.scheduling.permits.definition import DefinitionArrived
from federation.scheduling.permits.failover import Failover
from federation.scheduling.permits.freeze import NotFrozen
from federation.scheduling.permits.guard import VolumesStay, WithinGuard

PERMITS = (DefinitionArrived(), VolumesStay(), Failover(), NotFrozen(), WithinGuard())
