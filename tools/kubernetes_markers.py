"""Struct tags and markers of the Kubernetes API that the official client's models lack; used by `generate_schema.py`.

The models have names, types, required fields and descriptions. They lack packages, 64-bit integers, quantities, the
merge keys and strategies of lists and maps, and structs held by value. A field is written `Type.field`, with the API
version of the type only if two packages share the name. The source is the Go types of k8s.io/api, release 1.37.
"""

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


CORE: Final = "io.k8s.api.core.v1"
META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
EXTENSIONS: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"

# The Go package of each group. The order matters: a type that several groups use is in the first one listed.
PACKAGES: Final = {
    ("", "v1"): CORE,
    ("apps", "v1"): "io.k8s.api.apps.v1",
    ("batch", "v1"): "io.k8s.api.batch.v1",
    ("autoscaling", "v1"): "io.k8s.api.autoscaling.v1",
    ("autoscaling", "v2"): "io.k8s.api.autoscaling.v2",
    ("policy", "v1"): "io.k8s.api.policy.v1",
    ("networking.k8s.io", "v1"): "io.k8s.api.networking.v1",
    ("rbac.authorization.k8s.io", "v1"): "io.k8s.api.rbac.v1",
    ("storage.k8s.io", "v1"): "io.k8s.api.storage.v1",
    ("scheduling.k8s.io", "v1"): "io.k8s.api.scheduling.v1",
    ("node.k8s.io", "v1"): "io.k8s.api.node.v1",
    ("discovery.k8s.io", "v1"): "io.k8s.api.discovery.v1",
    ("coordination.k8s.io", "v1"): "io.k8s.api.coordination.v1",
    ("events.k8s.io", "v1"): "io.k8s.api.events.v1",
    ("authentication.k8s.io", "v1"): "io.k8s.api.authentication.v1",
    ("authorization.k8s.io", "v1"): "io.k8s.api.authorization.v1",
    ("certificates.k8s.io", "v1"): "io.k8s.api.certificates.v1",
    ("flowcontrol.apiserver.k8s.io", "v1"): "io.k8s.api.flowcontrol.v1",
    ("resource.k8s.io", "v1"): "io.k8s.api.resource.v1",
    ("admissionregistration.k8s.io", "v1"): "io.k8s.api.admissionregistration.v1",
    ("apiextensions.k8s.io", "v1"): EXTENSIONS,
    ("apiregistration.k8s.io", "v1"): "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1",
}

# Kinds with a list kind of the same name plus "List".
LISTED: Final = {
    ("", "v1"): "ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume PersistentVolumeClaim Pod"
    " PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount",
    ("apps", "v1"): "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
    ("batch", "v1"): "CronJob Job",
    ("autoscaling", "v1"): "HorizontalPodAutoscaler",
    ("autoscaling", "v2"): "HorizontalPodAutoscaler",
    ("policy", "v1"): "PodDisruptionBudget",
    ("networking.k8s.io", "v1"): "IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR",
    ("rbac.authorization.k8s.io", "v1"): "ClusterRole ClusterRoleBinding Role RoleBinding",
    ("storage.k8s.io", "v1"): "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment"
    " VolumeAttributesClass",
    ("scheduling.k8s.io", "v1"): "PriorityClass",
    ("node.k8s.io", "v1"): "RuntimeClass",
    ("discovery.k8s.io", "v1"): "EndpointSlice",
    ("coordination.k8s.io", "v1"): "Lease",
    ("events.k8s.io", "v1"): "Event",
    ("certificates.k8s.io", "v1"): "CertificateSigningRequest",
    ("flowcontrol.apiserver.k8s.io", "v1"): "FlowSchema PriorityLevelConfiguration",
    ("resource.k8s.io", "v1"): "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice",
    ("admissionregistration.k8s.io", "v1"): "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding"
    " MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding"
    " ValidatingWebhookConfiguration",
    ("apiextensions.k8s.io", "v1"): "CustomResourceDefinition",
    ("apiregistration.k8s.io", "v1"): "APIService",
}
SINGLE: Final = {
    ("", "v1"): "Binding",
    ("autoscaling", "v1"): "Scale",
    ("policy", "v1"): "Eviction",
    ("authentication.k8s.io", "v1"): "TokenRequest TokenReview SelfSubjectReview",
    ("authorization.k8s.io", "v1"): "LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview"
    " SubjectAccessReview",
}
META_KINDS: Final = ("Status", "DeleteOptions", "APIGroup", "APIGroupList", "APIResourceList", "APIVersions")

# Prefixes of client classes whose bare name occurs in several packages.
PREFIXES: Final = {
    "Core": "",
    "Events": "events.k8s.io",
    "Discovery": "discovery.k8s.io",
    "Rbac": "rbac.authorization.k8s.io",
    "Storage": "storage.k8s.io",
    "Authentication": "authentication.k8s.io",
    "Admissionregistration": "admissionregistration.k8s.io",
    "Apiextensions": "apiextensions.k8s.io",
    "Apiregistration": "apiregistration.k8s.io",
    "Authorization": "authorization.k8s.io",
    "Resource": "resource.k8s.io",
    "Flowcontrol": "flowcontrol.apiserver.k8s.io",
}
META_TYPES: Final = _words(
    "APIGroup APIGroupList APIResource APIResourceList APIVersions Condition DeleteOptions FieldSelectorAttributes"
    " FieldSelectorRequirement FieldsV1 GroupVersionForDiscovery LabelSelector LabelSelectorRequirement ListMeta"
    " ManagedFieldsEntry MicroTime ObjectMeta OwnerReference Patch Preconditions ServerAddressByClientCIDR Status"
    " StatusCause StatusDetails Time WatchEvent"
)

# Types of the core package that only kinds of other packages use.
CORE_TYPES: Final = frozenset({"TopologySelectorTerm", "TopologySelectorLabelRequirement"})
# Fields behind a feature gate that is off by default, and fields that only a later release has: a cluster prunes them.
UNRELEASED: Final = _words(
    "JobSpec.scheduling TokenRequestSpec.attestations HorizontalPodAutoscalerCondition.observedGeneration"
    " ClusterTrustBundleProjection.user ConfigMapVolumeSource.defaultUser DownwardAPIVolumeFile.user"
    " DownwardAPIVolumeSource.defaultUser EmptyDirVolumeSource.mode GRPCAction.mode HTTPGetAction.protocol"
    " KeyToPath.user NodeSpec.podPreemptionPolicy NodeSystemInfo.runningInUserNamespace"
    " PersistentVolumeClaimStatus.healthStatus PodCertificateProjection.user PodSpec.evictionResponders"
    " PodStatus.volumeHealth PodStatus.nodeAllocatableResourceClaimStatuses ProjectedVolumeSource.defaultUser"
    " SecretVolumeSource.defaultUser ServiceAccountTokenProjection.user VolumeMount.bindMountOptions CSINode.status"
    " Device.nodeAllocatableResources DeviceCounterConsumption.compatibilityGroups"
    " DeviceRequestAllocationResult.skipNodeOperations DeviceSubRequest.derivedAttributes"
    " ExactDeviceRequest.derivedAttributes ResourceSliceSpec.partitionTypeAttribute"
    " ResourceSliceSpec.skipNodeOperations"
)

# Types that are a scalar in JSON.
SCALARS: Final = {
    "Quantity": ("io.k8s.apimachinery.pkg.api.resource.Quantity", {"type": "string"}),
    "IntOrString": (
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        {"type": "string", "format": "int-or-string"},
    ),
    "Time": (f"{META}.Time", {"type": "string", "format": "date-time"}),
    "MicroTime": (f"{META}.MicroTime", {"type": "string", "format": "date-time"}),
    "RawExtension": ("io.k8s.apimachinery.pkg.runtime.RawExtension", {"type": "object"}),
    "FieldsV1": (f"{META}.FieldsV1", {"type": "object"}),
    "CustomResourceSubresourceStatus": (f"{EXTENSIONS}.CustomResourceSubresourceStatus", {"type": "object"}),
    "JSON": (f"{EXTENSIONS}.JSON", {}),
    "JSONSchemaPropsOrArray": (f"{EXTENSIONS}.JSONSchemaPropsOrArray", {}),
    "JSONSchemaPropsOrBool": (f"{EXTENSIONS}.JSONSchemaPropsOrBool", {}),
    "JSONSchemaPropsOrStringArray": (f"{EXTENSIONS}.JSONSchemaPropsOrStringArray", {}),
}
SCALAR_DESCRIPTIONS: Final = {
    "Quantity": "A number with a fixed-point representation and an optional suffix: 100m, 1.5, 2Gi, 5e3.",
    "IntOrString": "An int or a string; in JSON and YAML it produces or consumes the inner type.",
    "Time": "A point in time in RFC 3339 form, to the second.",
    "MicroTime": "A point in time in RFC 3339 form, to the microsecond.",
    "RawExtension": "Any object, kept as it is given.",
    "CustomResourceSubresourceStatus": "Present when the status subresource is served.",
    "FieldsV1": "A set of fields in JSON: f:<name>, v:<value>, i:<index>, k:<keys>, and . for the path itself.",
    "JSON": "Any valid JSON value.",
    "JSONSchemaPropsOrArray": "A value that can either be a JSONSchemaProps or an array of JSONSchemaProps.",
    "JSONSchemaPropsOrBool": "A JSONSchemaProps or a boolean value; the boolean defaults to true.",
    "JSONSchemaPropsOrStringArray": "A JSONSchemaProps or a string array.",
}
FIELD_TYPES: Final = {
    "IntOrString": "NetworkPolicyPort.port PodDisruptionBudgetSpec.minAvailable PodDisruptionBudgetSpec.maxUnavailable"
    " RollingUpdateStatefulSetStrategy.maxUnavailable RollingUpdateDeployment.maxUnavailable"
    " RollingUpdateDeployment.maxSurge RollingUpdateDaemonSet.maxUnavailable RollingUpdateDaemonSet.maxSurge"
    " HTTPGetAction.port TCPSocketAction.port ServicePort.targetPort",
    "Quantity": "CSIStorageCapacity.capacity CSIStorageCapacity.maximumVolumeSize HPAScalingRules.tolerance"
    " MetricTarget.value MetricTarget.averageValue MetricValueStatus.value MetricValueStatus.averageValue"
    " EmptyDirVolumeSource.sizeLimit ResourceFieldSelector.divisor"
    " CapacityRequestPolicy.default CapacityRequestPolicy.validValues CapacityRequestPolicyRange.max"
    " CapacityRequestPolicyRange.min CapacityRequestPolicyRange.step Counter.value DeviceCapacity.value",
    "MicroTime": "Event.eventTime EventSeries.lastObservedTime LeaseSpec.acquireTime LeaseSpec.renewTime",
    "RawExtension": "ControllerRevision.data WatchEvent.object OpaqueDeviceConfiguration.parameters"
    " AllocatedDeviceStatus.data",
    "FieldsV1": "ManagedFieldsEntry.fieldsV1",
    "CustomResourceSubresourceStatus": "CustomResourceSubresources.status",
    "JSON": "JSONSchemaProps.default JSONSchemaProps.example JSONSchemaProps.enum",
    "JSONSchemaPropsOrArray": "JSONSchemaProps.items",
    "JSONSchemaPropsOrBool": "JSONSchemaProps.additionalProperties JSONSchemaProps.additionalItems",
    "JSONSchemaPropsOrStringArray": "JSONSchemaProps.dependencies",
}
# Maps from resource name to quantity.
QUANTITY_MAPS: Final = _words(
    "Overhead.podFixed PersistentVolumeSpec.capacity PersistentVolumeClaimStatus.capacity"
    " PersistentVolumeClaimStatus.allocatedResources ResourceRequirements.limits ResourceRequirements.requests"
    " VolumeResourceRequirements.limits VolumeResourceRequirements.requests ContainerStatus.allocatedResources"
    " PodSpec.overhead PodStatus.allocatedResources NodeStatus.capacity NodeStatus.allocatable LimitRangeItem.max"
    " LimitRangeItem.min LimitRangeItem.default LimitRangeItem.defaultRequest LimitRangeItem.maxLimitRequestRatio"
    " ResourceQuotaSpec.hard ResourceQuotaStatus.hard ResourceQuotaStatus.used"
    " CapacityRequirements.requests DeviceRequestAllocationResult.consumedCapacity"
)
# Fields of 64 bits; every other integer has 32.
WIDE: Final = _words(
    "observedGeneration nodeAllocatableUpdatePeriodSeconds revision activeDeadlineSeconds startingDeadlineSeconds"
    " defaultUser user seconds terminationGracePeriodSeconds gid tolerationSeconds runAsUser runAsGroup fsGroup"
    " sizeBytes supplementalGroups remainingItemCount generation deletionGracePeriodSeconds gracePeriodSeconds"
    " maxLength minLength maxItems minItems maxProperties minProperties"
)
WIDE_FIELDS: Final = _words(
    "TokenRequestSpec.expirationSeconds ServiceAccountTokenProjection.expirationSeconds LinuxContainerUser.uid"
    " NodeSwapStatus.capacity storage.v1.TokenRequest.expirationSeconds DeviceAttribute.int DeviceAttribute.ints"
    " DeviceSubRequest.count ExactDeviceRequest.count ResourcePool.resourceSliceCount"
)
# Structs that Go holds by value: absent and empty are the same.
BY_VALUE: Final = _words(
    "metadata spec status podSelector loadBalancer backend port conditions regarding deprecatedSource source roleRef"
    " target scaleTargetRef describedObject metric current user userInfo template updateStrategy strategy jobTemplate"
    " resources state lastState podAffinityTerm preference kubeletEndpoint daemonEndpoints nodeInfo involvedObject"
    " clientConfig names acceptedNames priorityLevelConfiguration limitResponse devices pool"
)
POINTERS: Final = _words(
    "NetworkPolicyPeer.podSelector ContainerStatus.user ReplicationControllerSpec.template ContainerStatus.resources"
    " PodSpec.resources PodStatus.resources WebhookConversion.clientConfig PodSpec.schedulingGroup Subject.user"
)
STRUCTS_ATOMIC: Final = _words(
    "MatchResources NamedRuleWithOperations ParamKind ParamRef Variable autoscaling.v1.CrossVersionObjectReference"
    " ConfigMapKeySelector EndpointAddress EndpointPort FileKeySelector LocalObjectReference"
    " NodeSelector NodeSelectorTerm ObjectFieldSelector ObjectReference ResourceFieldSelector ScopeSelector"
    " SecretKeySelector SecretReference TopologySelectorTerm TypedLocalObjectReference ServiceBackendPort RoleRef"
    " rbac.v1.Subject LabelSelector OwnerReference"
)
MAPS_ATOMIC: Final = _words(
    "PodSpec.nodeSelector ReplicationControllerSpec.selector ServiceSpec.selector Scheduling.nodeSelector"
)
# Map keys of lists for server-side apply; "" is a set, every other list is atomic.
LISTS: Final = {
    "MutatingWebhookConfiguration.webhooks": "name",
    "ValidatingWebhookConfiguration.webhooks": "name",
    "MutatingWebhook.matchConditions": "name",
    "ValidatingWebhook.matchConditions": "name",
    "ValidatingAdmissionPolicyBindingSpec.validationActions": "",
    "ValidatingAdmissionPolicySpec.matchConditions": "name",
    "ValidatingAdmissionPolicySpec.variables": "name",
    "ValidatingAdmissionPolicyStatus.conditions": "type",
    "DaemonSetStatus.conditions": "type",
    "DeploymentStatus.conditions": "type",
    "ReplicaSetStatus.conditions": "type",
    "StatefulSetStatus.conditions": "type",
    "HorizontalPodAutoscalerStatus.conditions": "type",
    "PodFailurePolicyOnExitCodesRequirement.values": "",
    "UncountedTerminatedPods.failed": "",
    "UncountedTerminatedPods.succeeded": "",
    "CertificateSigningRequestStatus.conditions": "type",
    "Container.env": "name",
    "Container.ports": "containerPort protocol",
    "Container.volumeDevices": "devicePath",
    "Container.volumeMounts": "mountPath",
    "ContainerRestartRuleOnExitCodes.values": "",
    "ContainerStatus.allocatedResourcesStatus": "name",
    "ContainerStatus.volumeMounts": "mountPath",
    "EphemeralContainer.env": "name",
    "EphemeralContainer.ports": "containerPort protocol",
    "EphemeralContainer.volumeDevices": "devicePath",
    "EphemeralContainer.volumeMounts": "mountPath",
    "NamespaceStatus.conditions": "type",
    "NodeSpec.podCIDRs": "",
    "NodeStatus.addresses": "type",
    "NodeStatus.conditions": "type",
    "PersistentVolumeClaimStatus.conditions": "type",
    "PodSpec.containers": "name",
    "PodSpec.ephemeralContainers": "name",
    "PodSpec.hostAliases": "ip",
    "PodSpec.imagePullSecrets": "name",
    "PodSpec.initContainers": "name",
    "PodSpec.resourceClaims": "name",
    "PodSpec.schedulingGates": "name",
    "PodSpec.topologySpreadConstraints": "topologyKey whenUnsatisfiable",
    "PodSpec.volumes": "name",
    "PodStatus.conditions": "type",
    "PodStatus.podIPs": "ip",
    "PodStatus.resourceClaimStatuses": "name",
    "ReplicationControllerStatus.conditions": "type",
    "ResourceRequirements.claims": "name",
    "ResourceStatus.resources": "resourceID",
    "ServiceAccount.secrets": "name",
    "ServiceSpec.ports": "port protocol",
    "ServiceStatus.conditions": "type",
    "Endpoint.addresses": "",
    "PodDisruptionBudgetStatus.conditions": "type",
    "CSIDriverSpec.volumeLifecycleModes": "",
    "CSINodeSpec.drivers": "name",
    "CustomResourceDefinitionStatus.conditions": "type",
    "JSONSchemaProps.x-kubernetes-validations": "rule",
    "APIServiceStatus.conditions": "type",
    "MutatingAdmissionPolicySpec.matchConditions": "name",
    "FlowSchemaStatus.conditions": "type",
    "PriorityLevelConfigurationStatus.conditions": "type",
    "NonResourcePolicyRule.nonResourceURLs": "",
    "NonResourcePolicyRule.verbs": "",
    "ResourcePolicyRule.apiGroups": "",
    "ResourcePolicyRule.namespaces": "",
    "ResourcePolicyRule.resources": "",
    "ResourcePolicyRule.verbs": "",
    "ServiceCIDRStatus.conditions": "type",
    "AllocatedDeviceStatus.conditions": "type",
    "ResourceClaimStatus.devices": "driver device pool shareID",
    "ResourceClaimStatus.reservedFor": "uid",
    "ObjectMeta.finalizers": "",
    "ObjectMeta.ownerReferences": "uid",
}
# Patch strategies for strategic merge patch: "strategy" or "strategy key".
PATCHES: Final = {
    "PodDisruptionBudgetSpec.selector": "replace",
    "PodDisruptionBudgetStatus.conditions": "merge type",
    "CSINodeSpec.drivers": "merge name",
    "HorizontalPodAutoscalerStatus.conditions": "merge type",
    "StatefulSetStatus.conditions": "merge type",
    "DeploymentSpec.strategy": "retainKeys",
    "DeploymentStatus.conditions": "merge type",
    "DaemonSetStatus.conditions": "merge type",
    "ReplicaSetStatus.conditions": "merge type",
    "JobStatus.conditions": "merge type",
    "PersistentVolumeClaimStatus.conditions": "merge type",
    "Container.ports": "merge containerPort",
    "Container.env": "merge name",
    "Container.volumeMounts": "merge mountPath",
    "Container.volumeDevices": "merge devicePath",
    "EphemeralContainer.ports": "merge containerPort",
    "EphemeralContainer.env": "merge name",
    "EphemeralContainer.volumeMounts": "merge mountPath",
    "EphemeralContainer.volumeDevices": "merge devicePath",
    "ContainerStatus.volumeMounts": "merge mountPath",
    "ContainerStatus.allocatedResourcesStatus": "merge name",
    "PodSpec.volumes": "merge,retainKeys name",
    "PodSpec.initContainers": "merge name",
    "PodSpec.containers": "merge name",
    "PodSpec.ephemeralContainers": "merge name",
    "PodSpec.imagePullSecrets": "merge name",
    "PodSpec.hostAliases": "merge ip",
    "PodSpec.topologySpreadConstraints": "merge topologyKey",
    "PodSpec.schedulingGates": "merge name",
    "PodSpec.resourceClaims": "merge,retainKeys name",
    "PodStatus.conditions": "merge type",
    "PodStatus.hostIPs": "merge ip",
    "PodStatus.podIPs": "merge ip",
    "PodStatus.resourceClaimStatuses": "merge,retainKeys name",
    "ReplicationControllerStatus.conditions": "merge type",
    "ServiceStatus.conditions": "merge type",
    "ServiceSpec.ports": "merge port",
    "ServiceAccount.secrets": "merge name",
    "NodeSpec.podCIDRs": "merge",
    "NodeStatus.conditions": "merge type",
    "NodeStatus.addresses": "merge type",
    "NamespaceStatus.conditions": "merge type",
    "ValidatingAdmissionPolicySpec.matchConditions": "merge name",
    "ValidatingAdmissionPolicySpec.variables": "merge name",
    "ValidatingWebhookConfiguration.webhooks": "merge name",
    "MutatingWebhookConfiguration.webhooks": "merge name",
    "ValidatingWebhook.matchConditions": "merge name",
    "MutatingWebhook.matchConditions": "merge name",
    "JSONSchemaProps.x-kubernetes-validations": "merge rule",
    "APIServiceStatus.conditions": "merge type",
    "MutatingAdmissionPolicySpec.matchConditions": "merge name",
    "FlowSchemaStatus.conditions": "merge type",
    "PriorityLevelConfigurationStatus.conditions": "merge type",
    "ServiceCIDRStatus.conditions": "merge type",
    "ResourceClaimStatus.reservedFor": "merge uid",
    "ObjectMeta.ownerReferences": "merge uid",
    "ObjectMeta.finalizers": "merge",
}
# Defaults of map keys.
DEFAULTS: Final = {"ContainerPort.protocol": "TCP", "ServicePort.protocol": "TCP", "DeviceToleration.operator": "Equal"}
# Enums; the values are those that validation accepts.
ENUMS: Final = {
    "Container.imagePullPolicy": "Always IfNotPresent Never",
    "EphemeralContainer.imagePullPolicy": "Always IfNotPresent Never",
    "Container.terminationMessagePolicy": "FallbackToLogsOnError File",
    "EphemeralContainer.terminationMessagePolicy": "FallbackToLogsOnError File",
    "ContainerPort.protocol": "SCTP TCP UDP",
    "HTTPGetAction.scheme": "HTTP HTTPS",
    "PodSpec.restartPolicy": "Always Never OnFailure",
    "PodSpec.dnsPolicy": "ClusterFirst ClusterFirstWithHostNet Default None",
    "PodSpec.preemptionPolicy": "Never PreemptLowerPriority",
    "Toleration.operator": "Equal Exists Gt Lt",
    "Toleration.effect": "NoExecute NoSchedule PreferNoSchedule",
    "Taint.effect": "NoExecute NoSchedule PreferNoSchedule",
    "TopologySpreadConstraint.whenUnsatisfiable": "DoNotSchedule ScheduleAnyway",
    "TopologySpreadConstraint.nodeAffinityPolicy": "Honor Ignore",
    "TopologySpreadConstraint.nodeTaintsPolicy": "Honor Ignore",
    "NodeSelectorRequirement.operator": "DoesNotExist Exists Gt In Lt NotIn",
    "LabelSelectorRequirement.operator": "DoesNotExist Exists In NotIn",
    "ServiceSpec.type": "ClusterIP ExternalName LoadBalancer NodePort",
    "ServiceSpec.sessionAffinity": "ClientIP None",
    "ServiceSpec.externalTrafficPolicy": "Cluster Local",
    "ServiceSpec.internalTrafficPolicy": "Cluster Local",
    "ServiceSpec.ipFamilyPolicy": "PreferDualStack RequireDualStack SingleStack",
    "ServicePort.protocol": "SCTP TCP UDP",
    "DeploymentStrategy.type": "Recreate RollingUpdate",
    "StatefulSetUpdateStrategy.type": "OnDelete RollingUpdate",
    "StatefulSetSpec.podManagementPolicy": "OrderedReady Parallel",
    "DaemonSetUpdateStrategy.type": "OnDelete RollingUpdate",
    "JobSpec.completionMode": "Indexed NonIndexed",
    "CronJobSpec.concurrencyPolicy": "Allow Forbid Replace",
    "PersistentVolumeSpec.persistentVolumeReclaimPolicy": "Delete Recycle Retain",
    "PersistentVolumeSpec.volumeMode": "Block Filesystem",
    "PersistentVolumeClaimSpec.volumeMode": "Block Filesystem",
    "HTTPIngressPath.pathType": "Exact ImplementationSpecific Prefix",
    "PodDisruptionBudgetSpec.unhealthyPodEvictionPolicy": "AlwaysAllow IfHealthyBudget",
    "CustomResourceDefinitionSpec.scope": "Cluster Namespaced",
    "CustomResourceConversion.strategy": "None Webhook",
}
# Fields that are required in the models but optional for the server, which uses Go's zero value.
NOT_ENFORCED: Final = _words(
    "StatefulSetSpec.serviceName EndpointSlice.endpoints NetworkPolicySpec.podSelector PriorityClass.value"
    " ControllerRevision.revision CustomResourceDefinitionVersion.served CustomResourceDefinitionVersion.storage"
    " Event.metadata Event.involvedObject Event.eventTime RoleRef.apiGroup ControllerRevision.data"
    " ResourceAttributes.verb EventSeries.count FlowSchema.spec PriorityLevelConfiguration.spec DeviceClass.spec"
    " ResourceClaim.spec ResourceClaimTemplate.spec ResourceClaimTemplateSpec.spec"
    " LimitedPriorityLevelConfiguration.limitResponse"
)
