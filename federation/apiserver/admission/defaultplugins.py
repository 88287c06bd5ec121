"""The admission that every kube-apiserver has without configuration, for the kinds that it concerns.

Priority, RuntimeClass, ServiceAccount, PodSecurity, DefaultStorageClass and DefaultIngressClass. Other modules have the
rest: `limitranges.py`, `namespacequota.py`, `certificates.py`, webhooks and policies; the defaults of pods include the
tolerations of DefaultTolerationSeconds, and strategies the finalizers of StorageObjectInUseProtection.

`mutate` completes an object while it is prepared, and before webhooks see it. `validate` judges it as it would be
stored. Writes of the server itself and of its process are completed and never refused. Nothing here builds an
`AdmissionRequest`: each new pod passes.

Decision: docs/decisions/0095-admission-in-the-write-path.md
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from federation.apimachinery.dotpaths import value_at
from federation.apimachinery.errors import Forbidden, invalid
from federation.apimachinery.resources import Object
from federation.apiserver.admission.followedkind import FollowedKind
from federation.apiserver.semantics import podclasses
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.semantics.podsecurity.evaluation import details, evaluate, warnings_about
from federation.apiserver.semantics.podsecurity.levels import PREFIX, Policy, is_stricter, parse_policy
from federation.apiserver.verbs.context import VerbContext, status_details
from federation.apiserver.verbs.requestoptions import WriteOptions, own_user

_STORAGE_DEFAULTS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_INGRESS_DEFAULTS: Final = ("ingressclass.kubernetes.io/is-default-class",)
_OLD_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_OLD_INGRESS_CLASS: Final = "kubernetes.io/ingress.class"
_TEMPLATES: Final = {
    "podtemplates": "template",
    "replicationcontrollers": "spec.template",
    "replicasets.apps": "spec.template",
    "deployments.apps": "spec.template",
    "statefulsets.apps": "spec.template",
    "daemonsets.apps": "spec.template",
    "jobs.batch": "spec.template",
    "cronjobs.batch": "spec.jobTemplate.spec.template",
}
"""Where kinds that PodSecurity warns about have their pod template."""
_POD_PARTS: Final = frozenset({"", "ephemeralcontainers"})
"""The subresources of pods with which containers come or change."""

_Complete = Callable[[KindInfo, Object, Object | None, WriteOptions], None]
_Judge = Callable[[KindInfo, Object, Object | None, WriteOptions, str], Awaitable[None]]


class DefaultPlugins:
    """The plugins of one registry, and the stored objects that they read."""

    def __init__(self, context: VerbContext) -> None:
        self._context = context
        self._priorities = FollowedKind(context, "/scheduling.k8s.io/priorityclasses/", podclasses.parse_priority_class)
        self._runtimes = FollowedKind(context, "/node.k8s.io/runtimeclasses/", podclasses.parse_runtime_class)
        self._accounts = FollowedKind(context, "/core/serviceaccounts/", _parse_account)
        self._policies = FollowedKind(context, "/core/namespaces/", _parse_namespace)
        self._storage = FollowedKind(
            context,
            "/storage.k8s.io/storageclasses/",
            lambda obj: podclasses.parse_default_class(obj, _STORAGE_DEFAULTS),
        )
        self._ingress = FollowedKind(
            context,
            "/networking.k8s.io/ingressclasses/",
            lambda obj: podclasses.parse_default_class(obj, _INGRESS_DEFAULTS),
        )
        self._followed: dict[str, FollowedKind[Any]] = {
            "priority-classes": self._priorities,
            "runtime-classes": self._runtimes,
            "service-accounts": self._accounts,
            "pod-security": self._policies,
            "storage-classes": self._storage,
            "ingress-classes": self._ingress,
        }
        self._complete: dict[str, _Complete] = {
            "pods": self._complete_pod,
            "persistentvolumeclaims": self._complete_claim,
            "ingresses.networking.k8s.io": self._complete_ingress,
        }
        self._judge: dict[str, _Judge] = {
            "pods": self._judge_pod,
            "namespaces": self._judge_namespace,
            "priorityclasses.scheduling.k8s.io": self._judge_priority_class,
            **dict.fromkeys(_TEMPLATES, self._judge_template),
        }
        context.defaults = self

    async def load(self) -> None:
        """Load the stored objects."""
        await asyncio.gather(*(followed.load() for followed in self._followed.values()))

    def loops(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """Return the background loops by name; each runs until cancelled."""
        return {f"admission-{name}": followed.run for name, followed in self._followed.items()}

    def mutate(self, info: KindInfo, obj: Object, old: Object | None, options: WriteOptions) -> None:
        """Complete an object of valid types that has its defaults; Forbidden."""
        if (complete := self._complete.get(info.group_resource)) is not None:
            complete(info, obj, old, options)

    async def validate(
        self, info: KindInfo, obj: Object, old: Object | None, options: WriteOptions, subresource: str
    ) -> None:
        """Judge a user's object as it would be stored; Forbidden, Invalid. Adds warnings and audit annotations."""
        judge = self._judge.get(info.group_resource)
        if judge is not None and is_judged(options):
            await judge(info, obj, old, options, subresource)

    def _complete_pod(self, info: KindInfo, pod: Object, old: Object | None, options: WriteOptions) -> None:
        spec = pod["spec"]
        if old is not None:
            podclasses.keep_priority(spec, old["spec"])
            return
        name = spec.get("priorityClassName") or ""
        found = self._priorities.get(name) if name else None
        runtime_name = spec.get("runtimeClassName") or ""
        runtime = self._runtimes.get(runtime_name) if runtime_name else None
        if is_judged(options):
            if name and found is None:
                raise _forbidden(info, pod, f"no PriorityClass with name {name} was found")
            if runtime_name and runtime is None:
                raise _forbidden(info, pod, f'pod rejected: RuntimeClass "{runtime_name}" not found')
            self._use_account(info, pod)
        if found is None:
            name, found = ("", podclasses.NO_CLASS) if name else podclasses.default_priority(self._priorities.items())
        text = podclasses.set_priority(spec, name, found) or podclasses.set_runtime(spec, runtime)
        if text and is_judged(options):
            raise _forbidden(info, pod, text)

    def _use_account(self, info: KindInfo, pod: Object) -> None:
        """Take the image pull secrets of the pod's service account; Forbidden if it does not exist."""
        spec, namespace = pod["spec"], pod["metadata"].get("namespace", "")
        name = spec.get("serviceAccountName") or "default"
        secrets = self._accounts.get(name, namespace)
        if secrets is None and name != "default":  # which each namespace gets a moment after its creation
            text = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
            raise _forbidden(info, pod, text)
        if secrets and not spec.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [dict(secret) for secret in secrets]

    def _complete_claim(self, info: KindInfo, claim: Object, old: Object | None, options: WriteOptions) -> None:
        del info, options
        annotations = claim["metadata"].get("annotations") or {}
        if old is None and claim["spec"].get("storageClassName") is None and _OLD_STORAGE_CLASS not in annotations:
            name = podclasses.newest_default(self._storage.items())
            if name is not None:
                claim["spec"]["storageClassName"] = name

    def _complete_ingress(self, info: KindInfo, ingress: Object, old: Object | None, options: WriteOptions) -> None:
        del info, options
        annotations = ingress["metadata"].get("annotations") or {}
        spec = ingress.get("spec") or {}
        if old is None and spec.get("ingressClassName") is None and _OLD_INGRESS_CLASS not in annotations:
            name = podclasses.newest_default(self._ingress.items())
            if name is not None:
                ingress["spec"] = {**spec, "ingressClassName": name}

    async def _judge_pod(
        self, info: KindInfo, pod: Object, old: Object | None, options: WriteOptions, subresource: str
    ) -> None:
        metadata, spec = pod["metadata"], pod["spec"]
        policy = self._policies.get(metadata.get("namespace", "")) if subresource in _POD_PARTS else None
        if policy is not None and (old is None or _has_new_images(spec, old["spec"])):
            self._enforce(info, pod, policy, options)
        if old is None and spec.get("overhead") is not None:
            runtime = self._runtimes.get(spec.get("runtimeClassName") or "")
            if text := podclasses.overhead_problem(spec, runtime):
                raise _forbidden(info, pod, text)

    def _enforce(self, info: KindInfo, pod: Object, policy: Policy, options: WriteOptions) -> None:
        metadata, spec = pod["metadata"], pod["spec"]
        options.audit_annotations[f"{PREFIX}enforce-policy"] = str(policy.enforce)
        if violations := evaluate(policy.enforce, metadata, spec):
            raise _forbidden(info, pod, f'violates PodSecurity "{policy.enforce}": {details(violations)}')
        _report(policy, metadata, spec, options)

    async def _judge_template(
        self, info: KindInfo, obj: Object, old: Object | None, options: WriteOptions, subresource: str
    ) -> None:
        del old
        policy = None if subresource else self._policies.get(obj["metadata"].get("namespace", ""))
        template = value_at(obj, _TEMPLATES[info.group_resource]) if policy is not None and policy.reports else None
        if policy is not None and isinstance(template, dict):
            _report(policy, template.get("metadata") or {}, template.get("spec") or {}, options)

    async def _judge_namespace(
        self, info: KindInfo, namespace: Object, old: Object | None, options: WriteOptions, subresource: str
    ) -> None:
        if subresource:
            return
        name = namespace["metadata"].get("name", "")
        policy, causes = parse_policy(namespace["metadata"].get("labels"))
        before, causes_before = parse_policy((old or {}).get("metadata", {}).get("labels"))
        if causes and causes != causes_before:
            raise invalid(info.resource.kind, info.resource.group, name, causes)
        if old is not None and is_stricter(policy.enforce, before.enforce):
            pods = await self._context.store.list(f"/core/pods/{name}/")
            found = [encoding.decode(entry.value) for entry in pods.entries]
            options.warnings.extend(warnings_about(policy.enforce, name, found))

    async def _judge_priority_class(
        self, info: KindInfo, obj: Object, old: Object | None, options: WriteOptions, subresource: str
    ) -> None:
        del old, options, subresource
        default, _ = podclasses.default_priority(self._priorities.items())
        if obj.get("globalDefault") and default not in ("", obj["metadata"].get("name")):
            text = f"PriorityClass {default} is already marked as default. Only one default can exist"
            raise _forbidden(info, obj, text)


def is_judged(options: WriteOptions) -> bool:
    """Return False for writes of the server itself and of controllers in its process."""
    return options.user is not None and options.user is not own_user


def _report(policy: Policy, metadata: Mapping[str, Any], spec: Mapping[str, Any], options: WriteOptions) -> None:
    """Add what a policy records and warns about."""
    if violations := evaluate(policy.audit, metadata, spec):
        text = f'would violate PodSecurity "{policy.audit}": {details(violations)}'
        options.audit_annotations[f"{PREFIX}audit-violations"] = text
    if violations := evaluate(policy.warn, metadata, spec):
        options.warnings.append(f'would violate PodSecurity "{policy.warn}": {details(violations)}')


def _has_new_images(spec: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Return True if containers came or have other images: other changes of a pod cannot violate a policy."""
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        before = {each.get("name"): each.get("image") for each in old.get(kind) or ()}
        after = {each.get("name"): each.get("image") for each in spec.get(kind) or ()}
        if not after.items() <= before.items():
            return True
    return False


def _forbidden(info: KindInfo, obj: Object, text: str) -> Forbidden:
    metadata = obj["metadata"]
    name = metadata.get("name") or metadata.get("generateName") or ""
    return Forbidden(f'{info.group_resource} "{name}" is forbidden: {text}', details=status_details(info, name))


def _parse_account(account: Object) -> tuple[Mapping[str, Any], ...]:
    return tuple(account.get("imagePullSecrets") or ())


def _parse_namespace(namespace: Object) -> Policy | None:
    policy, _ = parse_policy(namespace["metadata"].get("labels"))
    return None if policy.is_privileged else policy
