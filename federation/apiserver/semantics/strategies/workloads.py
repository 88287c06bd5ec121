"""Strategies of Deployments, ReplicaSets, StatefulSets, DaemonSets and similar workloads."""

from collections.abc import Iterable
from typing import ClassVar

from federation.apimachinery import nameformats
from federation.apimachinery.fielderrors import Causes, forbidden, immutable, problems_of, required
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.defaults import workloaddefaults as defaults
from federation.apiserver.semantics.strategies.base import PodOwnerStrategy, StatusFields, Strategy, has_changed
from federation.apiserver.semantics.validation import workloadvalidation as validation
from federation.apiserver.semantics.validation.fieldrules import Rule, is_not_negative, is_one_of
from federation.apiserver.semantics.validation.podwarnings import claim_warnings


class DeploymentStrategy(PodOwnerStrategy):
    """apps/v1 Deployment."""

    names_again = False
    status_always: ClassVar[StatusFields] = {}
    status_resets = ("labels",)
    immutable_fields = ("spec.selector",)

    default = staticmethod(defaults.default_deployment)

    def has_spec_changed(self, new: Object, old: Object) -> bool:
        """Return True also for other annotations, because a Deployment copies them to its ReplicaSets."""
        return super().has_spec_changed(new, old) or has_changed(new, old, "annotations")

    validate = staticmethod(validation.validate_deployment)


class ReplicaSetStrategy(PodOwnerStrategy):
    """apps/v1 ReplicaSet."""

    names_again = False
    status_always: ClassVar[StatusFields] = {"replicas": 0}
    immutable_fields = ("spec.selector",)

    default = staticmethod(defaults.default_replica_set)
    validate = staticmethod(validation.validate_replica_set)


class ReplicationControllerStrategy(PodOwnerStrategy):
    """v1 ReplicationController."""

    names_again = False
    rules = (Rule("spec.minReadySeconds", is_not_negative),)
    status_always: ClassVar[StatusFields] = {"replicas": 0}
    default_propagation = "Orphan"

    default = staticmethod(defaults.default_replication_controller)
    validate = staticmethod(validation.validate_replication_controller)


class StatefulSetStrategy(PodOwnerStrategy):
    """apps/v1 StatefulSet: most of its spec is immutable."""

    names_pods = False
    names_again = False
    status_always: ClassVar[StatusFields] = {"replicas": 0, "availableReplicas": 0}
    rules = (
        Rule("spec.ordinals.start", is_not_negative),
        Rule("spec.persistentVolumeClaimRetentionPolicy.whenDeleted", is_one_of("Delete", "Retain")),
        Rule("spec.persistentVolumeClaimRetentionPolicy.whenScaled", is_one_of("Delete", "Retain")),
    )

    _MUTABLE = frozenset(
        {
            "replicas",
            "ordinals",
            "template",
            "updateStrategy",
            "revisionHistoryLimit",
            "persistentVolumeClaimRetentionPolicy",
            "minReadySeconds",
        }
    )

    name_problems = staticmethod(nameformats.dns1123_label)
    default = staticmethod(defaults.default_stateful_set)

    def validate(self, obj: Object) -> Causes:
        service = obj["spec"].get("serviceName") or ""
        causes = problems_of("spec.serviceName", service, nameformats.dns1123_label(service) if service else ())
        return causes + validation.validate_stateful_set(obj) + validation.validate_claim_templates(obj)

    def validate_update(self, new: Object, old: Object) -> Causes:
        causes = validation.validate_stateful_set(new)
        changed = {
            field
            for field in {*new.get("spec", {}), *old.get("spec", {})} - self._MUTABLE
            if new["spec"].get(field) != old["spec"].get(field)
        }
        if changed:
            causes.append(
                forbidden(
                    "spec",
                    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template',"
                    " 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and"
                    " 'minReadySeconds' are forbidden",
                )
            )
        return causes

    def warnings(self, obj: Object, old: Object | None) -> Iterable[str]:
        yield from super().warnings(obj, old)
        for index, claim in enumerate(obj["spec"].get("volumeClaimTemplates") or ()):
            field = f"spec.volumeClaimTemplates[{index}]"
            yield from claim_warnings(claim.get("spec") or {}, field if old is None else f"{field}.Spec")
        if (obj["spec"].get("revisionHistoryLimit") or 0) < 0:
            yield (
                "spec.revisionHistoryLimit: a negative value retains all historical revisions;"
                " a value >= 0 is recommended"
            )


class DaemonSetStrategy(PodOwnerStrategy):
    """apps/v1 DaemonSet."""

    names_pods = False
    names_again = False
    rules = (Rule("spec.revisionHistoryLimit", is_not_negative),)
    status_always: ClassVar[StatusFields] = {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    }
    immutable_fields = ("spec.selector",)

    default = staticmethod(defaults.default_daemon_set)
    validate = staticmethod(validation.validate_daemon_set)


class ControllerRevisionStrategy(Strategy):
    """apps/v1 ControllerRevision: its data is immutable."""

    rules = (Rule("revision", is_not_negative),)

    def validate(self, obj: Object) -> Causes:
        data = obj.get("data")
        if data is None:
            return [required("data", "data is mandatory")]
        return [] if isinstance(data, dict) else [required("data", "data must be a valid JSON object")]

    def validate_update(self, new: Object, old: Object) -> Causes:
        return immutable("data", new.get("data"), old.get("data"))
