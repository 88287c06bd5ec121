"""FederatedTypeConfigs: which kinds are federated (docs/reference/kinds.md).

`shippedtypes.py` brings the shipped ones up to date at the start, as `rules.py` plans. `derivation.py` creates one for
a kind that a policy selects. `controller.py` and `reconcile.py` end the federation of a deleted one's objects, and
`admission.py` refuses one that cannot work. The spine reads the stored ones (`runtime/federatedtypes.py`).
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from federation.api.resources import FEDERATED_TYPE_CONFIGS
from federation.featureapi.feature import Feature, Loop

if TYPE_CHECKING:
    from federation.admission.hostreader import HostReader
    from federation.apiserver.admission.plugins import AdmissionPlugin
    from federation.client.client import Client
    from federation.featureapi.surroundings import Surroundings


async def _start(client: "Client", has_existing_host: bool) -> None:
    from federation.features.types.shippedtypes import ensure_types

    await ensure_types(client, keeps_effects=not has_existing_host)


def _controllers(surroundings: "Surroundings") -> Mapping[str, Loop]:
    from federation.features.types.controller import TypeConfigController
    from federation.features.types.derivation import TypeDerivationController

    host = surroundings.host
    return {"typeconfig": TypeConfigController(host), "typederivation": TypeDerivationController(host)}


def _admission(host: "HostReader") -> Sequence["AdmissionPlugin"]:
    from federation.features.types.admission import TypeConfigAdmission

    return (TypeConfigAdmission(host.find, partial(host.list_objects, FEDERATED_TYPE_CONFIGS)),)


FEATURE = Feature("types", page="kinds.md", start=_start, controllers=_controllers, admission=_admission)
