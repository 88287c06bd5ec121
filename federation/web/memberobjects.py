"""Objects of a member that the federation may not manage yet: `/federation/v1/memberobjects`, for `fedctl import`.

The control plane reads them with its own credentials, so the path needs two permissions: `get` on
`federatedclusters/proxy` of the cluster, as `nodes/proxy` in Kubernetes, and the right to read the kind in that
namespace of the host. Permission for the path alone is not enough. Only federated kinds are read. Objects that carry
values of Secrets need the right to read Secrets there, too: an import of them without the values would overwrite these.
"""

from functools import partial
from typing import Annotated, Any

import orjson
from fastapi import FastAPI, Query, Request, Response

from federation.api.resources import FEDERATED_CLUSTERS
from federation.api.secretvalues import carries_secret_values
from federation.apimachinery import nameformats
from federation.apimachinery.errors import (
    BadRequest,
    ClusterError,
    Forbidden,
    NotFound,
    ServiceUnavailable,
    is_kind_missing,
)
from federation.apimachinery.resources import SECRETS, Object, Resource
from federation.apiserver.auth.identity import Attributes
from federation.apiserver.http.nonresource import AUTHORIZE
from federation.client.client import Client
from federation.client.servedversion import in_served_version
from federation.web.delivery import DeliveryView
from federation.web.requests import ServedKinds, json_response, may_list, required_permissions

PATH = "/federation/v1/memberobjects"
_OBJECTS_MAX = 200
_Text = Annotated[str, Query(min_length=1)]


def add_routes(web: FastAPI, view: DeliveryView, kinds: ServedKinds) -> None:
    """Serve objects of members."""

    @web.get(PATH)
    async def member_objects(
        request: Request,
        cluster: _Text,
        kind: _Text,
        group: str = "",
        version: str = "",
        namespace: str = "",
        name: str = "",
        selector: Annotated[str, Query(alias="labelSelector")] = "",
    ) -> Response:
        """Return one object of a member, or those that a label selector matches, in the version if it serves that."""
        clusters = FEDERATED_CLUSTERS
        proxy = Attributes("get", clusters.group, clusters.version, clusters.plural, "proxy", name=cluster)
        readable = required_permissions(kinds, kind, group, namespace, name)
        await request.scope[AUTHORIZE]([proxy, *readable], is_path_enough=False)
        resource = view.federated_resource(group, kind)
        if resource is None or not readable:
            raise BadRequest(f"kind: {kind} is not federated, so nothing of it is read from members")
        for field, value in (("version", version), ("namespace", namespace), ("name", name)):
            if value and (problems := nameformats.path_segment(value)):
                raise BadRequest(f"{field}: {problems[0]}")
        if resource.namespaced and not namespace:
            raise BadRequest("namespace: name the namespace of the objects")
        where = namespace if resource.namespaced else ""
        try:
            client = view.client(cluster)
        except NotFound as error:
            details = {"name": cluster, "group": clusters.group, "kind": clusters.plural}
            raise NotFound(error.message, details=details) from error
        wanted = resource._replace(version=version or resource.version)
        try:
            items = await in_served_version(client, wanted, partial(_read, client, where, name, selector))
        except NotFound as error:
            lacks = f"does not serve {resource.plural}" if is_kind_missing(error) else f"has no {kind} {name}"
            raise NotFound(f"cluster {cluster} {lacks}", details={"name": name, "kind": resource.plural}) from error
        except ClusterError as error:
            raise ServiceUnavailable(f"cluster {cluster} does not answer: {error}") from error
        if carriers := [item for item in items if resource != SECRETS and carries_secret_values(orjson.dumps(item))]:
            await _check_carriers(request, carriers, where)
        return json_response(200, {"kind": "MemberObjectList", "items": items})


async def _check_carriers(request: Request, carriers: list[Object], namespace: str) -> None:
    """Raise Forbidden unless the user may list Secrets in the namespace."""
    if await may_list(request, SECRETS, namespace):
        return
    title = f"{carriers[0]['kind'].lower()}/{carriers[0]['metadata']['name']}"
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    raise Forbidden(f"{title} carries values of secrets, which the user cannot list {where}")


async def _read(client: Client, namespace: str, name: str, selector: str, resource: Resource) -> list[Object]:
    type_meta: dict[str, Any] = {"apiVersion": resource.api_version, "kind": resource.kind}
    if name:
        return [{**await client.get(resource, name, namespace), **type_meta}]
    page = await client.list(resource, namespace, label_selector=selector, limit=_OBJECTS_MAX)
    if page.continue_token:
        raise BadRequest(f"labelSelector: it matches more than {_OBJECTS_MAX} objects; write a narrower one")
    return [{**item, **type_meta} for item in page.items]
