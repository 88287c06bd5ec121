"""Karmada's FederatedResourceQuota as ours, which has its name and its limits over all clusters together. Pure."""

from federation.apimachinery.resources import Object
from federation.features.convert.rules.fieldreader import FieldReader

_NOT_COUNTED = ("limits.", "count/")


def to_quota_spec(spec: FieldReader) -> Object:
    """Return the spec of our quota."""
    overall = spec.child("overall")
    limits = {name: overall.any(name) for name in overall.keys()}  # noqa: SIM118  # a reader is no mapping
    for name in limits:
        if name.startswith(_NOT_COUNTED):
            overall.note(name, "requests and pods are counted; limits and objects are not")
    spec.drop("staticAssignments", "a quota holds for all clusters together; write a ResourceQuota in the member")
    return {"overall": {name: limit for name, limit in limits.items() if not name.startswith(_NOT_COUNTED)}}
