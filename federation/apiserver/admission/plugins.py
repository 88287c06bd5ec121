"""Admission plugins: admission in code, for resources that RBAC alone cannot protect, as kube-apiserver's own plugins.

The composition root registers plugins (`Registry.add_admission_plugin`). The chain calls them for creates and updates
of their resources, subresources and dry runs included, but not for writes of this process.
"""

from dataclasses import replace
from typing import Protocol, runtime_checkable

from federation.apimachinery.resources import Object
from federation.apiserver.admission.requests import AdmissionRequest
from federation.apiserver.semantics.cel.authorizer import Decide


class AdmissionPlugin(Protocol):
    """Admits the writes of some resources."""

    @property
    def resources(self) -> frozenset[str]:
        """The resources, as `Resource.group_resource`."""
        ...

    def mutate(self, request: AdmissionRequest) -> Object:
        """Return the object to write; called before webhooks. It may change the request's object."""
        ...

    async def validate(self, request: AdmissionRequest, access: Decide) -> None:
        """Raise an ApiError to refuse the object as it would be stored; called before policies and webhooks.

        `access` decides about the requester's permissions. The object is stored only if the state that it replaces
        has not changed meanwhile; otherwise the plugin is called again. It may read the registry.
        """
        ...


class ValidatingPlugin:
    """The base of plugins that change nothing."""

    def mutate(self, request: AdmissionRequest) -> Object:
        """Return the object as it is."""
        return request.obj or {}


@runtime_checkable
class DeletionProtection(Protocol):
    """A plugin that may also refuse deletions, whoever asks: users, the collector of a namespace, the end of a kind."""

    @property
    def resources(self) -> frozenset[str]:
        """The resources, as `Resource.group_resource`."""
        ...

    def deletion_problem(self, obj: Object) -> str:
        """Return why the object must not be deleted, with the remedy; "" if it may."""
        ...


class PluginPair:
    """Two plugins of the same resources; the second sees what the first made of the object."""

    def __init__(self, first: AdmissionPlugin, second: AdmissionPlugin) -> None:
        self._first = first
        self._second = second

    @property
    def resources(self) -> frozenset[str]:
        """The resources of both."""
        return self._first.resources & self._second.resources

    def mutate(self, request: AdmissionRequest) -> Object:
        """Return the object after both."""
        return self._second.mutate(replace(request, obj=self._first.mutate(request)))

    async def validate(self, request: AdmissionRequest, access: Decide) -> None:
        """Raise what either raises."""
        await self._first.validate(request, access)
        await self._second.validate(request, access)
