"""Deployments, ReplicaSets, StatefulSets, DaemonSets and their relatives: what runs pods for ever."""

from typing import ClassVar

from federation.api.resources import Object
from federation.registry.defaults import workloads as defaults
from federation.registry.strategies.base import StatusFields, Strategy
from federation.registry.validation import workloads as validation
from federation.registry.validation.fields import Causes, forbidden, immutable


class WorkloadStrategy(Strategy):
    """A kind with a spec that is counted by metadata.generation."""

    has_generation = True


class DeploymentStrategy(WorkloadStrategy):
    """apps/v1 Deployment."""

    status_always: ClassVar[StatusFields] = {}
    immutable_fields = ("spec.selector",)

    def default(self, obj: Object) -> None:
        defaults.default_deployment(obj)

    def validate(self, obj: Object) -> Causes:
        return validation.validate_deployment(obj)


class ReplicaSetStrategy(WorkloadStrategy):
    """apps/v1 ReplicaSet."""

    status_always: ClassVar[StatusFields] = {"replicas": 0}
    immutable_fields = ("spec.selector",)

    def default(self, obj: Object) -> None:
        defaults.default_replica_set(obj)

    def validate(self, obj: Object) -> Causes:
        return validation.validate_replica_set(obj)


class ReplicationControllerStrategy(WorkloadStrategy):
    """v1 ReplicationController."""

    status_always: ClassVar[StatusFields] = {"replicas": 0}
    default_propagation = "Orphan"

    def default(self, obj: Object) -> None:
        defaults.default_replication_controller(obj)

    def validate(self, obj: Object) -> Causes:
        return validation.validate_replication_controller(obj)


class StatefulSetStrategy(WorkloadStrategy):
    """apps/v1 StatefulSet: most of its spec never changes."""

    status_always: ClassVar[StatusFields] = {"replicas": 0, "availableReplicas": 0}

    _CHANGEABLE = frozenset(
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

    def default(self, obj: Object) -> None:
        defaults.default_stateful_set(obj)

    def validate(self, obj: Object) -> Causes:
        return validation.validate_stateful_set(obj)

    def validate_update(self, new: Object, old: Object) -> Causes:
        causes = self.validate(new)
        changed = {
            field
            for field in {*new.get("spec", {}), *old.get("spec", {})} - self._CHANGEABLE
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


class DaemonSetStrategy(WorkloadStrategy):
    """apps/v1 DaemonSet."""

    status_always: ClassVar[StatusFields] = {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    }
    immutable_fields = ("spec.selector",)

    def default(self, obj: Object) -> None:
        defaults.default_daemon_set(obj)

    def validate(self, obj: Object) -> Causes:
        return validation.validate_daemon_set(obj)


class RevisionStrategy(Strategy):
    """apps/v1 ControllerRevision: its data is written once."""

    def validate_update(self, new: Object, old: Object) -> Causes:
        return immutable("data", new.get("data"), old.get("data"))
