"""The autoscalers in members that own the replicas of delivered objects.

Only an object whose replicas were set through the subresource `scale` is looked up, with one list in the member, when a
write would set them. `managedFields` of the object tell that again after a restart, so nothing is stored. The
answer is in the record of the member object.
"""

from federation.apimachinery.errors import Forbidden, NotFound
from federation.apimachinery.resources import HORIZONTAL_POD_AUTOSCALERS
from federation.client.client import Client
from federation.delivery.rules.memberrecord import MemberKey
from federation.planning.drift.scalers import scaler_of

_PAGE_SIZE = 500
_PAGES_MAX = 10


async def find_scaler(client: Client, key: MemberKey) -> str:
    """Return the name of the autoscaler in the member that targets the object, "" without one.

    A member that does not serve autoscalers, or does not let us list them, has none. Raises ApiError and ClusterError.
    """
    token, resource = "", key.resource
    for _ in range(_PAGES_MAX):
        try:
            page = await client.list(HORIZONTAL_POD_AUTOSCALERS, key.namespace, limit=_PAGE_SIZE, continue_token=token)
        except (NotFound, Forbidden):
            return ""
        if found := scaler_of(page.items, resource.group, resource.kind, key.name):
            return found
        token = page.continue_token
        if not token:
            break
    return ""
