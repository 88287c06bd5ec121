"""Objects of a member as the control plane reads them, for `fedctl import` and `fedctl adopt`."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from federation.api.federatedtype import FederatedType
from federation.apimachinery.errors import ConfigurationError, Forbidden, NotFound, UnknownName
from federation.apimachinery.resources import NAMESPACES, Object, Resource
from federation.client.storedkinds import StoredKinds
from federation.planning.federatedobject.imported import import_problem, is_made_by_cluster
from federation.terminal.kubeconfigcontext import get_json

if TYPE_CHECKING:
    from federation.client.http import HTTPClient

_PATH = "/federation/v1/memberobjects"


class Found(NamedTuple):
    """An object of a member."""

    resource: Resource
    live: Object

    @property
    def namespace(self) -> str:
        """The namespace, "" without one."""
        return str(self.live["metadata"].get("namespace") or "")

    @property
    def name(self) -> str:
        """The name."""
        return str(self.live["metadata"]["name"])

    @property
    def title(self) -> str:
        """`deployment/web`."""
        return f"{self.resource.kind.lower()}/{self.name}"


class NamespaceContent(NamedTuple):
    """The content of a member's namespace: what can be imported, and the others with the reason."""

    found: list[Found]
    left: dict[str, str]


async def read_member(
    host: "HTTPClient", resource: Resource, cluster: str, namespace: str, name: str = "", selector: str = ""
) -> list[Found]:
    """Return one object of a member, or those that a label selector matches; ConfigurationError without the right.

    They are in the version of the resource if the member serves it.
    """
    query = {"cluster": cluster, "group": resource.group, "kind": resource.kind, "name": name}
    query["version"] = resource.version
    query |= {"labelSelector": selector, "namespace": namespace if resource.namespaced else ""}
    try:
        answer = await get_json(host, _PATH, {key: value for key, value in query.items() if value})
    except Forbidden as error:
        raise ConfigurationError(
            f"objects of members are read with the right to `get` federatedclusters/proxy: {error.message}"
        ) from error
    assert isinstance(answer, dict)
    return [Found(resource._replace(version=item["apiVersion"].rpartition("/")[2]), item) for item in answer["items"]]


async def read_namespace(
    host: "HTTPClient", types: Iterable[FederatedType], cluster: str, namespace: str
) -> NamespaceContent:
    """Return the objects of all federated kinds, workloads last, so that what they need is taken over first."""
    try:
        await read_member(host, NAMESPACES, cluster, "", namespace)
    except NotFound as error:
        raise UnknownName(f"there is no namespace {namespace} in {cluster}") from error
    found: list[Found] = []
    left: dict[str, str] = {}
    stored = StoredKinds(host.transport)
    for type_ in sorted(types, key=lambda type_: (bool(type_.paths.replicas_spec), type_.resource.plural)):
        if not type_.resource.namespaced:
            continue
        try:
            listed = await read_member(host, await stored.stored_in(type_.resource), cluster, namespace)
        except NotFound:
            continue  # the member does not serve the kind
        for each in listed:
            if is_made_by_cluster(each.live):
                continue
            if problem := import_problem(each.live):
                left[each.title] = problem
            else:
                found.append(each)
    return NamespaceContent(found, left)
