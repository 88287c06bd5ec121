"""All admission plugins of the host, over a client that reads it: an embedded API server or another one."""

from collections.abc import Sequence
from functools import partial

from federation.admission.authors import AuthorAdmission
from federation.admission.autoscalers import AutoscalerAdmission
from federation.admission.cronautoscalers import CronAutoscalerAdmission
from federation.admission.dividednumbers import DividedNumbersAdmission
from federation.admission.federatedobjects import FederatedObjectAdmission, FindResource
from federation.admission.federatedresources import KubeFedAdmission
from federation.admission.federatedspreads import WorkloadSpreadAdmission
from federation.admission.placementholds import PlacementHoldAdmission
from federation.admission.policyselectors import PolicyAdmission
from federation.admission.typeconfigs import TypeConfigAdmission
from federation.admission.uniteddeployments import UnitedDeploymentAdmission
from federation.api.resources import FEDERATED_TYPE_CONFIGS, TOPOLOGY_SPREAD_PLANS
from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import NotFound
from federation.apimachinery.publicaddresses import Network
from federation.apimachinery.resources import Object, Resource
from federation.apiserver.admission.plugins import AdmissionPlugin
from federation.client.client import Client, UserInfo
from federation.planning.workloadspread.specvalidation import SpreadRules


def admission_plugins(
    client: Client,
    find: FindResource,
    spread_rules: SpreadRules,
    clock: Clock,
    gate_networks: Sequence[Network] = (),
) -> list[AdmissionPlugin]:
    """Return the admission of the kinds that the control plane writes, of policies, and of what users steer.

    `gate_networks` are those that gates of rollouts may reach beside global unicast addresses.
    """

    async def list_objects(resource: Resource, namespace: str = "") -> list[Object]:
        return (await client.list(resource, namespace)).items

    async def read_object(resource: Resource, name: str, namespace: str) -> Object | None:
        try:
            return await client.get(resource, name, namespace)
        except NotFound:
            return None

    async def review(resource: Resource, obj: Object, user: UserInfo) -> None:
        await client.review(resource, obj, user=user)

    return [
        AuthorAdmission(FederatedObjectAdmission(find)),
        AuthorAdmission(KubeFedAdmission(client)),
        PlacementHoldAdmission(clock),
        AuthorAdmission(PolicyAdmission(find, list_objects, gate_networks)),
        DividedNumbersAdmission(list_objects, AutoscalerAdmission(list_objects)),
        AuthorAdmission(CronAutoscalerAdmission(find)),
        AuthorAdmission(UnitedDeploymentAdmission(list_objects, review)),
        AuthorAdmission(resources=[TOPOLOGY_SPREAD_PLANS.group_resource]),
        WorkloadSpreadAdmission(find, list_objects, read_object, spread_rules),
        TypeConfigAdmission(find, partial(list_objects, FEDERATED_TYPE_CONFIGS)),
    ]
