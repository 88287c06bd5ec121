"""The clusters that a tenant's words are compared with: a warning about another one would tell that it exists."""

from collections.abc import Awaitable, Callable, Sequence

from federation.api.resources import FEDERATED_CLUSTERS, PROJECTS
from federation.apimachinery.resources import Object, Resource
from federation.planning.projects.projectindex import ProjectIndex


async def clusters_of(
    list_objects: Callable[[Resource, str], Awaitable[Sequence[Object]]], namespace: str
) -> list[Object]:
    """Return the FederatedClusters of a namespace's project, all of them without a project or a namespace."""
    clusters = list(await list_objects(FEDERATED_CLUSTERS, ""))
    project = ProjectIndex(await list_objects(PROJECTS, "")).of(namespace) if namespace else None
    if project is None:
        return clusters
    return [each for each in clusters if project.has(each["metadata"]["name"], each["metadata"].get("labels") or {})]
