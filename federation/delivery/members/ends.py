"""Asks a member whether an object that is gone there had finished: its controller's events tell that for an hour."""

from federation.apimachinery.errors import ApiError, ClusterError, Forbidden, NotFound
from federation.apimachinery.resources import EVENTS, Object
from federation.client.client import Client
from federation.client.servedversion import in_served_version
from federation.delivery.members.operations import Outcome
from federation.delivery.rules.memberrecord import MemberKey
from federation.delivery.rules.plan import is_managed
from federation.delivery.rules.status import ClusterStatus
from federation.planning.federatedobject.finished import end_told

_EVENTS_MAX = 500


async def find_end(client: Client, key: MemberKey, uid: str) -> Outcome:
    """Return Finished with what an event tells, OK if no event does, or WaitingForRemoval with an object that is there.

    What an event tells is `{"succeeded": …, "time": …}`. A member that does not let us list events has none.
    """
    try:
        live = await in_served_version(
            client, key.resource, lambda resource: client.get(resource, key.name, key.namespace)
        )
        if is_managed(live):
            return Outcome(ClusterStatus.WAITING_FOR_REMOVAL, live)
    except NotFound:
        pass
    except (ApiError, ClusterError) as error:
        return Outcome(ClusterStatus.RETRIEVAL_FAILED, message=str(error))
    try:
        selector = f"involvedObject.uid={uid}"
        page = await client.list(EVENTS, key.namespace, field_selector=selector, limit=_EVENTS_MAX)
    except (NotFound, Forbidden):
        return Outcome(ClusterStatus.OK)
    except (ApiError, ClusterError) as error:
        return Outcome(ClusterStatus.RETRIEVAL_FAILED, message=f"its events cannot be listed: {error}")
    found = [told for event in page.items if (told := _end(event, key, uid)) is not None]
    return Outcome(ClusterStatus.FINISHED, max(found, key=_time_of)) if found else Outcome(ClusterStatus.OK)


def _end(event: Object, key: MemberKey, uid: str) -> Object | None:
    involved = event.get("involvedObject") or {}
    succeeded = end_told(key.resource.kind, str(event.get("reason") or ""))
    if succeeded is None or involved.get("uid") != uid:
        return None
    time = event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp")
    return {"succeeded": succeeded, "time": str(time or "")}


def _time_of(told: Object) -> str:
    return str(told["time"])
