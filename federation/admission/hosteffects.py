"""Admission of the kinds that act on an API server: what an object does not do on the host is said when it is written.

`planning/federatedobject/hosteffect.py` decides. Warnings name the object's own fields only. Policies that end the
effect of objects on the host warn as well; administrators write them (`policyselectors.py` calls `ended_effects`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from federation.api import names
from federation.apimachinery.amounts import first_of
from federation.apimachinery.effect import Effect, EffectOf, is_called
from federation.apimachinery.errors import cause, invalid
from federation.apimachinery.resources import CRDS, Object, Resource
from federation.apiserver.admission.plugins import ValidatingPlugin
from federation.apiserver.admission.requests import AdmissionRequest
from federation.apiserver.semantics.cel.authorizer import Decide
from federation.planning.federatedobject.hosteffect import ACTING, has_effect, is_servers_own, webhooks_of
from federation.scheduling.policyspec import ResourceSelector

_LABEL = f"metadata.labels[{names.ACTS_ON_HOST}]"
_SHOWN_MAX = 3


class HostEffectAdmission(ValidatingPlugin):
    """An `AdmissionPlugin`. It lives as long as the API server and keeps no state."""

    resources = frozenset(resource.group_resource for resource in (*ACTING, CRDS))

    def __init__(self, effect_of: EffectOf) -> None:
        self._effect_of = effect_of

    async def validate(self, request: AdmissionRequest, access: Decide) -> None:  # noqa: ARG002  # a plugin's signature
        """Warn about what does not act on the host; Invalid for a label that is neither "true" nor "false"."""
        obj, old = request.obj or {}, request.old
        if request.subresource or not obj:
            return
        chosen = (obj["metadata"].get("labels") or {}).get(names.ACTS_ON_HOST)
        if chosen not in (None, "true", "false"):
            text = f'Unsupported value: "{chosen}": supported values: "true", "false"'
            causes = [cause("FieldValueNotSupported", text, _LABEL)]
            raise invalid(request.resource.kind, request.resource.group, request.name, causes)
        resource = request.resource
        if is_servers_own(resource.group, resource.kind, obj):
            return
        effect = self._effect_of(resource, obj)
        text = describe_effect(resource, obj, effect)
        if text and (old is None or text != describe_effect(resource, old, self._effect_of(resource, old))):
            request.warnings.append(text)


def describe_effect(resource: Resource, obj: Mapping[str, Any], effect: Effect) -> str:
    """Return what of an object does not act on the host, and how to change that; "" if all of it acts."""
    webhooks = webhooks_of(resource, obj)
    if resource == CRDS:
        if not webhooks or is_called(webhooks[0][1], effect):
            return ""
        return (
            "the conversion webhook acts in members only: the host stores objects that need no conversion, and refuses"
            f" others; docs/operators.md says how to let the host call it ({names.ACTS_ON_HOST})"
        )
    if effect is Effect.NONE:
        return (
            f"this {resource.kind} acts in members only, where a policy or its label delivers it; set the label"
            f' {names.ACTS_ON_HOST}: "true" to let it act on the host, too'
        )
    silent = [name for name, config in webhooks if not is_called(config, effect)]
    if not silent:
        return ""
    named = first_of([f'"{name}"' for name in silent], _SHOWN_MAX)
    return (
        f"the host does not call the webhook {named}: it names a service, which the host cannot reach; select the"
        " configuration with a ClusterPropagationPolicy to let it act in members, or give clientConfig.url"
    )


def ended_effects(
    selectors: Sequence[ResourceSelector],
    stored: Mapping[Resource, Sequence[Object]],
    effect_of: EffectOf,
) -> list[str]:
    """Return a warning for each kind of which a policy with these selectors ends the effect of objects on the host.

    `stored` are the objects of the kinds that act on an API server.
    """
    found = []
    for resource, objects in stored.items():
        chosen = [each for each in selectors if each.kind == resource.group_kind]
        typed = [{"apiVersion": resource.api_version, "kind": resource.kind, **obj} for obj in objects]
        ended = sorted(
            obj["metadata"]["name"]
            for obj in typed
            if not is_servers_own(resource.group, resource.kind, obj)
            and names.ACTS_ON_HOST not in (obj["metadata"].get("labels") or {})
            and any(selector.matches(obj) for selector in chosen)
            and has_effect(resource, obj, effect_of(resource, obj))
        )
        if ended:
            shown = ", ".join(ended[:_SHOWN_MAX]) + (" and others" if len(ended) > _SHOWN_MAX else "")
            found.append(
                f"{resource.kind} {shown}: delivered to members, and without effect on the host from now on; set the"
                f' label {names.ACTS_ON_HOST}: "true" first to keep the effect'
            )
    return found


def acting_kinds(selectors: Sequence[ResourceSelector]) -> list[Resource]:
    """Return the kinds that act on an API server and that a policy selects."""
    selected = {each.kind for each in selectors}
    return [resource for resource in ACTING if resource.group_kind in selected]
