"""Strategy of APIServices. A local one, which names no service, is available from its creation."""

from datetime import datetime
from typing import ClassVar, Final

from federation.apimachinery import nameformats
from federation.apimachinery.conditions import set_condition
from federation.apimachinery.fielderrors import Causes
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.strategies.base import StatusFields, Strategy
from federation.apiserver.semantics.validation.apiservicevalidation import (
    validate_api_service,
    validate_api_service_status,
)

AVAILABLE: Final = "Available"
SERVICE_PORT: Final = 443
"""The default port of a service that hosts an API."""


class APIServiceStrategy(Strategy):
    """apiregistration.k8s.io/v1 APIService."""

    knows_finalizers = False
    allow_unconditional_update = False
    status_always: ClassVar[StatusFields] = {}

    name_problems = staticmethod(nameformats.path_segment)

    def default(self, obj: Object) -> None:
        service = (obj.get("spec") or {}).get("service")
        if service is not None and service.get("port") is None:
            service["port"] = SERVICE_PORT

    def set_times(self, new: Object, old: Object | None, now: datetime) -> None:
        if old is None and (new.get("spec") or {}).get("service") is None:
            new["status"] = {"conditions": local_condition(None, now)}

    validate = staticmethod(validate_api_service)

    def validate_status_update(self, new: Object, old: Object) -> Causes:
        del old
        return validate_api_service_status(new)


def local_condition(conditions: list[Object] | None, now: datetime) -> list[Object]:
    """Return the conditions of an APIService that this server serves itself."""
    message = "Local APIServices are always available"
    return set_condition(conditions, type_=AVAILABLE, status="True", now=now, reason="Local", message=message)
