"""The parameter objects of a policy's binding: found by name or selector, read from the store when they are needed."""

from federation.api.resources import Object
from federation.base.errors import FederationError, NotFound
from federation.registry import encoding
from federation.registry.access import Access
from federation.registry.admission.policies import ParamRef, Policy
from federation.registry.kinds import KindInfo
from federation.registry.selectors import from_mapping


class ParamsError(FederationError):
    """The binding's parameters cannot be had; the message says why, in kube-apiserver's words."""


def param_info(access: Access, policy: Policy) -> KindInfo | None:
    """Return the kind of the policy's parameters, None when it has none; ParamsError when it is not served."""
    if policy.param_kind is None:
        return None
    api_version, kind = policy.param_kind
    group, _, version = api_version.rpartition("/")
    try:
        return access.kinds.by_kind(group, version, kind)
    except NotFound as error:
        raise ParamsError(f"failed to find resource referenced by paramKind: '{api_version}, Kind={kind}'") from error


async def collect(
    access: Access, info: KindInfo | None, wanted: ParamRef | None, namespace: str
) -> list[Object | None]:
    """Return the parameters to evaluate with, one after the other; [None] when there are none to be had."""
    if info is None or wanted is None:
        return [None]
    if info.resource.namespaced:
        namespace = wanted.namespace or namespace
        if not namespace:
            raise ParamsError("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
    elif wanted.namespace:
        raise ParamsError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
    if wanted.name:
        entry = await access.store.get(info.key(namespace, wanted.name))
        values = [] if entry is None else [entry.value]
    else:
        selector = from_mapping(wanted.selector or {})
        page = await access.store.list(info.collection(namespace))
        values = [
            entry.value for entry in page.entries if selector.matches(encoding.metadata_of(entry.value).get("labels"))
        ]
    found: list[Object | None] = [encoding.decode(value) for value in await access.present(info, values)]
    if not found and wanted.denies_absence:
        raise ParamsError("no params found for policy binding with `Deny` parameterNotFoundAction")
    return found
