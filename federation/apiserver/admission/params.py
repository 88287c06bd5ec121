"""Parameter objects of a policy's binding, read from the store by name or label selector."""

from federation.apimachinery.errors import FederationError, NotFound
from federation.apimachinery.resources import Object
from federation.apimachinery.selectors import compile_label_selector
from federation.apiserver.admission.policies import ParamRef
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.verbs.context import VerbContext


class ParamsError(FederationError):
    """The binding's parameters are missing or misconfigured; the message is kube-apiserver's."""


def param_info(context: VerbContext, param_kind: tuple[str, str] | None) -> KindInfo | None:
    """Return the kind of a policy's parameters, None for a policy without; ParamsError when it is not served."""
    if param_kind is None:
        return None
    api_version, kind = param_kind
    group, _, version = api_version.rpartition("/")
    try:
        return context.kinds.by_kind(group, version, kind)
    except NotFound as error:
        raise ParamsError(f"failed to find resource referenced by paramKind: '{api_version}, Kind={kind}'") from error


async def collect_params(
    context: VerbContext, info: KindInfo | None, wanted: ParamRef | None, namespace: str
) -> list[Object | None]:
    """Return the parameter objects, one evaluation for each; [None] for a policy or binding without parameters."""
    if info is None or wanted is None:
        return [None]
    if info.resource.namespaced:
        namespace = wanted.namespace or namespace
        if not namespace:
            raise ParamsError("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
    elif wanted.namespace:
        raise ParamsError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
    if wanted.name:
        entry = await context.store.get(info.key(namespace, wanted.name))
        values = [] if entry is None else [entry.value]
    else:
        selector = compile_label_selector(wanted.selector or {}, is_validated=True)
        page = await context.store.list(info.collection(namespace))
        values = [
            entry.value
            for entry in page.entries
            if selector.matches(encoding.decode_metadata(entry.value).get("labels"))
        ]
    found: list[Object | None] = [encoding.decode(value) for value in await context.list_from_storage(info, values)]
    if not found and wanted.denies_absence:
        raise ParamsError("no params found for policy binding with `Deny` parameterNotFoundAction")
    return found
