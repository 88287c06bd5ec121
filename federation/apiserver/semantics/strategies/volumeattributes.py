"""Strategy of VolumeAttributesClasses: the parameters of a driver that may change while a volume is in use."""

from federation.apimachinery import nameformats
from federation.apimachinery.fielderrors import Causes, forbidden, invalid, required, too_long
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.strategies.base import Strategy

_PARAMETERS_MAX = 512
_PARAMETER_BYTES_MAX = 256 * 1024


class VolumeAttributesClassStrategy(Strategy):
    """storage.k8s.io/v1 VolumeAttributesClass: driver and parameters are immutable."""

    def validate(self, obj: Object) -> Causes:
        driver, parameters = obj.get("driverName") or "", obj.get("parameters") or {}
        problems = nameformats.qualified_name(driver.lower()) if driver else []
        causes = [invalid("driverName", driver, text) for text in problems] if driver else [required("driverName")]
        if len(parameters) > _PARAMETERS_MAX:
            return [*causes, too_long("parameters", _PARAMETERS_MAX)]
        if "" in parameters:
            causes.append(invalid("parameters", "", "field can not be empty."))
        if sum(len(key) + len(value) for key, value in parameters.items()) > _PARAMETER_BYTES_MAX:
            causes.append(too_long("parameters", _PARAMETER_BYTES_MAX))
        return causes if parameters else [*causes, required("parameters", "must contain at least one key/value pair")]

    def validate_update(self, new: Object, old: Object) -> Causes:
        changed = [field for field in ("driverName", "parameters") if new.get(field) != old.get(field)]
        return [forbidden(field, f"updates to {field} are forbidden.") for field in changed] + self.validate(new)
