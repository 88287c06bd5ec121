"""The steps for one Project: write what it makes as its author, remove what it does not make any more, report.

Everything that gives rights is written as the user who wrote the Project last, and must be admitted from its other
authors, too, so nobody gives more than he has (docs/decisions/0086-wishes-are-carried-out-as-their-author.md). What is
removed is removed by the control plane itself.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from federation.api import names
from federation.api.resources import FEDERATED_RESOURCE_QUOTAS, PROJECTS
from federation.apimachinery import conditions
from federation.apimachinery.errors import ApiError, Forbidden, NotFound
from federation.apimachinery.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    NAMESPACES,
    ROLE_BINDINGS,
    Object,
    UserInfo,
)
from federation.features.projects.names import (
    EVENT_PROJECT_REFUSED,
    PROJECT,
    PROJECT_MANAGER,
    READY,
    REASON_APPLIED,
    REASON_FORBIDDEN,
    REASON_OTHER_HOST,
    REASON_REFUSED,
    REASON_TAKEN,
)
from federation.features.projects.rules import RIGHTS, Made, made_by
from federation.planning.authors import authors_of
from federation.planning.projects.projectindex import ProjectIndex
from federation.runtime.controller import DONE, Result
from federation.runtime.events import WARNING
from federation.runtime.host import Host
from federation.runtime.informer import Informer
from federation.runtime.onbehalf import apply_for

_REMOVED = (ROLE_BINDINGS, FEDERATED_RESOURCE_QUOTAS, CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES)
_REPAIR_S = 300.0
"""Time after which changes by others are repaired."""
_LEAVING_S = 15.0
_CLUSTERS_MAX = 1000
_PROBLEMS_MAX = 5
Leaving = Callable[[str], Mapping[str, int]]
"""Returns how many objects of a project's namespaces are in clusters that left it, by cluster."""


class Reconciler:
    """Handles one Project per call."""

    def __init__(
        self,
        host: Host,
        sources: Informer,
        index: ProjectIndex,
        clusters: Callable[[str], list[str]],
        leaving: Leaving,
        *,
        gives_rights: bool,
    ) -> None:
        """`clusters` returns the clusters of a project; without `gives_rights` its members get none."""
        self._client = host.client
        self._recorder = host.recorder
        self._clock = host.clock
        self._sources = sources
        self._index = index
        self._clusters = clusters
        self._leaving = leaving
        self._gives_rights = gives_rights

    async def reconcile(self, name: str) -> Result:
        """Bring what the Project makes up to date; a deleted Project leaves its namespaces without the label."""
        source = self._sources.get("", name)
        if source is None:
            await self._release(name, {})
            return DONE
        if source["metadata"].get("deletionTimestamp"):
            return DONE
        namespaces, taken = self._own_namespaces(name, source)
        clusters = self._clusters(name)
        made = [
            each for each in made_by(source, namespaces, clusters) if self._gives_rights or each.resource not in RIGHTS
        ]
        problems = await self._apply(source, made)
        await self._remove_others(name, made)
        await self._release(name, dict.fromkeys(namespaces, source))
        leaving = self._leaving(name)
        await self._report(source, clusters, leaving, self._verdict(source, problems, taken))
        return Result(requeue_after_s=_LEAVING_S if leaving else _REPAIR_S)

    def _own_namespaces(self, name: str, source: Object) -> tuple[list[str], list[str]]:
        """Return the namespaces that are the project's, and those that an older project has."""
        own, taken = list[str](), list[str]()
        for namespace in source["spec"]["namespaces"]:
            owner = self._index.of(namespace)
            (own if owner is not None and owner.name == name else taken).append(namespace)
        return own, taken

    async def _apply(self, source: Object, made: Iterable[Made]) -> list[ApiError]:
        """Write everything as the authors; return what was refused. Nothing is tried in a refused namespace."""
        authors, problems, missing = authors_of(source), list[ApiError](), set[str]()
        for each in made:
            resource, namespace, name = each.key
            if namespace in missing:
                continue
            try:
                await self._write(authors, each)
            except ApiError as error:
                if error.retryable:
                    raise
                problems.append(error)
                if resource == NAMESPACES:
                    missing.add(name)
        return problems

    async def _write(self, authors: list[UserInfo], made: Made) -> None:
        if not authors:
            raise Forbidden(f"its authors are not recorded, so {made.obj['kind']} is not written; write the spec anew")
        await apply_for(authors, self._client, made.resource, made.obj, field_manager=PROJECT_MANAGER)

    async def _remove_others(self, name: str, made: Iterable[Made]) -> None:
        wanted = {each.key for each in made}
        for resource in _REMOVED:
            for obj in (await self._client.list(resource, label_selector=f"{PROJECT}={name}")).items:
                metadata = obj["metadata"]
                key = (resource, metadata.get("namespace", ""), metadata["name"])
                if key not in wanted and _is_owned(obj, name):
                    await self._delete(obj, key[1], key[2], resource)

    async def _delete(self, obj: Object, namespace: str, name: str, resource: Any) -> None:
        try:
            await self._client.delete(resource, name, namespace, uid=obj["metadata"]["uid"])
        except NotFound:
            return

    async def _release(self, name: str, kept: Mapping[str, Object]) -> None:
        """Take the label, and the ownership if the Project exists, from namespaces that are not its own any more."""
        for namespace in (await self._client.list(NAMESPACES, label_selector=f"{PROJECT}={name}")).items:
            if namespace["metadata"]["name"] in kept:
                continue
            metadata: Object = {"labels": {PROJECT: None}}
            if self._sources.get("", name) is not None:
                references = namespace["metadata"].get("ownerReferences") or ()
                others = [each for each in references if (each.get("kind"), each.get("name")) != (PROJECTS.kind, name)]
                metadata["ownerReferences"] = others or None
            try:
                await self._client.patch(
                    NAMESPACES,
                    namespace["metadata"]["name"],
                    {"metadata": {"uid": namespace["metadata"]["uid"], **metadata}},
                    field_manager=PROJECT_MANAGER,
                )
            except NotFound:
                continue

    def _verdict(self, source: Object, problems: list[ApiError], taken: list[str]) -> tuple[str, str, str]:
        """Return status, reason and message of the condition Ready."""
        if problems:
            reason = REASON_FORBIDDEN if any(isinstance(each, Forbidden) for each in problems) else REASON_REFUSED
            shown = [each.message for each in problems[:_PROBLEMS_MAX]]
            more = f"; and {len(problems) - len(shown)} more" if len(problems) > len(shown) else ""
            return "False", reason, "; ".join(shown) + more
        if taken:
            return "False", REASON_TAKEN, f"an older Project has the namespaces {', '.join(taken)}"
        if source["spec"].get("members") and not self._gives_rights:
            text = "on this host the control plane cannot write as the author: write RoleBindings for the members"
            return "False", REASON_OTHER_HOST, text
        return "True", REASON_APPLIED, "all of it is in force"

    async def _report(
        self, source: Object, clusters: list[str], leaving: Mapping[str, int], verdict: tuple[str, str, str]
    ) -> None:
        before = source.get("status") or {}
        status, reason, message = verdict
        stated = conditions.set_condition(
            before.get("conditions"), type_=READY, status=status, reason=reason, message=message, now=self._clock.now()
        )
        if status == "False" and stated is not before.get("conditions"):
            text = {"apiVersion": PROJECTS.api_version, "kind": PROJECTS.kind, **source}
            self._recorder.event(text, WARNING, EVENT_PROJECT_REFUSED, message)
        wanted = {
            "clusters": clusters[:_CLUSTERS_MAX] or None,
            "conditions": stated,
            "leaving": [{"name": name, "objects": leaving[name]} for name in sorted(leaving)] or None,
        }
        if {field: value for field, value in wanted.items() if value is not None} != before:
            await self._client.patch_status(PROJECTS, source, wanted, field_manager=names.FIELD_MANAGER)


def _is_owned(obj: Object, name: str) -> bool:
    """Return whether the Project made the object: a tenant may write the label."""
    references = obj["metadata"].get("ownerReferences") or ()
    return any((each.get("kind"), each.get("name")) == (PROJECTS.kind, name) for each in references)
