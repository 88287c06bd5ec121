"""The permissions of a requester for writes of another verb than their request, such as an apply that creates."""

from collections.abc import Mapping
from typing import Any

from federation.apimachinery.errors import Forbidden, ServiceUnavailable
from federation.apiserver.semantics.cel.authorizer import AccessCheck
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.verbs.context import VerbContext, status_details


def check_access(
    context: VerbContext,
    info: KindInfo,
    verb: str,
    namespace: str,
    name: str,
    requester: Mapping[str, Any],
    *,
    subresource: str = "",
) -> None:
    """Raise Forbidden unless the authorizer, if any, lets the user do that; ServiceUnavailable without roles."""
    if context.authorize is None:
        return
    resource = info.resource
    # The authorizer counts a Namespace as being in its own namespace.
    scope = name if info.prefix == "/core/namespaces/" else namespace
    check = AccessCheck(verb, resource.group, resource.plural, subresource, scope, name)
    decision = context.authorize(requester, check)
    if decision.error:
        raise ServiceUnavailable(f'the rights of user "{requester["username"]}" cannot be checked: {decision.error}')
    if not decision.is_allowed:
        where = f'in the namespace "{scope}"' if scope else "at the cluster scope"
        plural = f"{resource.plural}/{subresource}" if subresource else resource.plural
        raise Forbidden(
            f'{info.group_resource} "{name}" is forbidden: User "{requester["username"]}" cannot {verb} resource'
            f' "{plural}" in API group "{resource.group}" {where}'
            + (f": {decision.reason}" if decision.reason else ""),
            details=status_details(info, name),
        )
