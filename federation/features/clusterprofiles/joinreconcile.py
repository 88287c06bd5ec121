"""The steps that join the cluster of one ClusterProfile, and the report of a policy.

A provider's program gives credentials, the Secret of a new FederatedCluster gets them, and the cluster controller joins
with them as after `fedctl join`: the member gets an account of this control plane, whose token replaces them. From then
on nothing of the profile is followed: not its address, and not its end.
"""

import base64
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.errors import AlreadyExists, ApiError, ClusterError, ConfigurationError, NotFound
from federation.apimachinery.resources import SECRETS, Object
from federation.client.client import PatchType
from federation.client.clustersecret import secret_name_of
from federation.client.execplugin import ExecCredential
from federation.featureapi.surroundings import RunProgram
from federation.features.clusterprofiles.joinrules import (
    Access,
    JoinPolicy,
    choose_access,
    failure_of,
    first_policy,
    has_joined,
    is_given_up,
    profile_of,
    servers_of,
    title_of,
    to_cluster,
)
from federation.features.clusterprofiles.names import (
    CLUSTER_JOIN_POLICIES,
    EVENT_PROFILE_JOINED,
    EVENT_PROFILE_REFUSED,
    JOINED_PROFILE,
)
from federation.planning.clusters.accessproviders import Providers
from federation.runtime.controller import DONE, Key, Result, key_of
from federation.runtime.events import NORMAL, WARNING
from federation.runtime.host import Host
from federation.runtime.informer import Informer

_RETRY_S = 60.0
_CHANGED_RETRY_S = 5.0
"""The same for a profile that asks for something else, and after an error of the host."""
_PLUGIN_TIMEOUT_S = 30.0
_PROBLEMS_MAX = 50


@dataclass(slots=True)
class JoinState:
    """What both reconcilers know: the policies by name, and why the clusters of profiles do not join."""

    policies: dict[str, JoinPolicy] = field(default_factory=dict)
    problems: dict[Key, str] = field(default_factory=dict)


class _Sources(NamedTuple):
    clusters: Informer
    profiles: Informer


class JoinReconciler:
    """Joins the cluster of one profile per call."""

    def __init__(
        self,
        host: Host,
        sources: tuple[Informer, Informer],
        providers: Providers,
        run_program: RunProgram,
        state: JoinState,
    ) -> None:
        self._client = host.client
        self._recorder = host.recorder
        self._clock = host.clock
        self._sources = _Sources(*sources)
        self._providers = providers
        self._run_program = run_program
        self._state = state
        self._asked: dict[Key, tuple[Access, float]] = {}
        """What a provider was last asked for the cluster of a profile, and when."""

    def forget(self, key: Key) -> None:
        """Let the provider be asked again at once: what has been asked for is gone."""
        self._asked.pop(key, None)

    async def reconcile(self, key: Key) -> Result:
        """Let the cluster join, or report why it does not."""
        profile = self._sources.profiles.get(*key)
        policy = None if profile is None else first_policy(self._state.policies.values(), profile)
        if profile is None or policy is None or profile["metadata"].get("deletionTimestamp"):
            self._state.problems.pop(key, None)
            self.forget(key)
            return DONE
        try:
            result = await self._join(key, profile, policy)
        except (ConfigurationError, ApiError, ClusterError) as problem:
            self._refuse(key, profile, str(problem))
            if not problem.retryable:
                return Result(requeue_after_s=_RETRY_S)
            self.forget(key)
            return Result(requeue_after_s=_CHANGED_RETRY_S)
        self._state.problems.pop(key, None)
        return result

    async def _join(self, key: Key, profile: Object, policy: JoinPolicy) -> Result:
        name, title = profile["metadata"]["name"], title_of(profile)
        cluster = self._sources.clusters.get("", name)
        if cluster is not None:
            if profile_of(cluster) != title:
                raise ConfigurationError(f'the name is that of another cluster; unjoin "{name}" or rename the profile')
            if cluster["metadata"].get("deletionTimestamp"):
                return DONE  # its end brings the profile back here
            if cluster["spec"]["apiEndpoint"] not in servers_of(profile):
                raise ConfigurationError(
                    "the profile does not have the address with which the cluster joined any more; the cluster keeps"
                    f" {cluster['spec']['apiEndpoint']}. If it has moved:"
                    f" fedctl join --update-credentials {name} --kubeconfig FILE"
                )
            if has_joined(cluster):
                self.forget(key)
                return DONE
            if is_given_up(cluster):
                # It did not answer, or took no credentials, for ten minutes. Nothing of it is there: it begins again.
                await self._client.delete(FEDERATED_CLUSTERS, name, uid=cluster["metadata"]["uid"])
                return DONE
        joins_at = None if cluster is None else str(cluster["spec"]["apiEndpoint"])
        access = choose_access(profile, self._providers, policy, joins_at)
        self._reject_duplicate(name, access)
        if (wait_s := self._pause_s(key, access)) > 0:
            return Result(requeue_after_s=wait_s)
        secret = await self._secret_of(name, title)
        plugin = self._providers[access.provider].plugin
        self._asked[key] = access, self._clock.monotonic()
        found = await self._run_program(plugin, access.connection, access.config, timeout_s=_PLUGIN_TIMEOUT_S)
        if cluster is None:
            wanted = to_cluster(profile, policy, access.connection.server)
            await self._client.create(FEDERATED_CLUSTERS, wanted, field_manager=names.FIELD_MANAGER)
            text = f"the cluster joins by policy {policy.name} with credentials of {access.provider}"
            self._recorder.event(profile, NORMAL, EVENT_PROFILE_JOINED, text)
        await self._write_secret(name, title, access, found, secret)
        return Result(requeue_after_s=_RETRY_S)

    def _pause_s(self, key: Key, access: Access) -> float:
        """Return for how many seconds the program must not run: a changed profile waits shortly, the same longer."""
        if key not in self._asked:
            return 0.0
        asked, at_s = self._asked[key]
        return at_s + (_RETRY_S if asked == access else _CHANGED_RETRY_S) - self._clock.monotonic()

    def _reject_duplicate(self, name: str, access: Access) -> None:
        for other in self._sources.clusters.list():
            is_there = other["spec"].get("apiEndpoint", "").rstrip("/") == access.connection.server
            if is_there and other["metadata"]["name"] != name and other["spec"].get("syncMode") != names.SYNC_MODE_PULL:
                raise ConfigurationError(f'{access.connection.server} has joined as "{other["metadata"]["name"]}"')

    async def _secret_of(self, name: str, title: str) -> Object | None:
        """Return the Secret of an earlier attempt; ConfigurationError if there is another one."""
        secret_name = secret_name_of(name)
        try:
            secret = await self._client.get(SECRETS, secret_name, names.SYSTEM_NAMESPACE)
        except NotFound:
            return None
        if profile_of(secret) != title:
            raise ConfigurationError(
                f"the Secret {names.SYSTEM_NAMESPACE}/{secret_name} is not of this profile; delete it"
            )
        return secret

    async def _write_secret(
        self, name: str, title: str, access: Access, found: ExecCredential, before: Object | None
    ) -> None:
        values = {
            names.SECRET_CA: access.connection.ca_data,
            names.SECRET_BOOTSTRAP_TOKEN: b"" if found.certificate else found.token.encode(),
            names.SECRET_CLIENT_CERTIFICATE: found.certificate,
            names.SECRET_CLIENT_KEY: found.key,
        }
        data = {key: base64.b64encode(value).decode() if value else None for key, value in values.items()}
        metadata = {"name": secret_name_of(name), "namespace": names.SYSTEM_NAMESPACE}
        if before is not None:
            patch = {"metadata": {"resourceVersion": before["metadata"]["resourceVersion"]}, "data": data}
            await self._client.patch(
                SECRETS,
                metadata["name"],
                patch,
                patch_type=PatchType.MERGE,
                namespace=names.SYSTEM_NAMESPACE,
                field_manager=names.FIELD_MANAGER,
            )
            return
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {**metadata, "annotations": {JOINED_PROFILE: title}},
            "type": "Opaque",
            "data": {key: value for key, value in data.items() if value is not None},
        }
        try:
            await self._client.create(SECRETS, secret, field_manager=names.FIELD_MANAGER)
        except AlreadyExists:
            raise ConfigurationError(f"the Secret {metadata['name']} was created meanwhile; delete it") from None

    def _refuse(self, key: Key, profile: Object, problem: str) -> None:
        if self._state.problems.get(key) != problem:
            self._state.problems[key] = problem
            self._recorder.event(profile, WARNING, EVENT_PROFILE_REFUSED, problem)


class JoinReport:
    """Writes the status of one ClusterJoinPolicy per call."""

    def __init__(
        self,
        host: Host,
        policies: Informer,
        profiles: Callable[[], Iterable[Object]],
        cluster: Callable[[str], Object | None],
        state: JoinState,
    ) -> None:
        self._client = host.client
        self._policies = policies
        self._profiles = profiles
        self._cluster = cluster
        self._state = state

    async def reconcile(self, name: str) -> Result:
        """Write the status if it changes."""
        policy, compiled = self._policies.get("", name), self._state.policies.get(name)
        if policy is None or compiled is None or policy["metadata"].get("deletionTimestamp"):
            return DONE
        status = self._status(compiled)
        if {field: value for field, value in status.items() if value is not None} != (policy.get("status") or {}):
            await self._client.patch_status(CLUSTER_JOIN_POLICIES, policy, status, field_manager=names.FIELD_MANAGER)
        return DONE

    def _status(self, compiled: JoinPolicy) -> Object:
        problems = [{"profile": "", "message": compiled.problem}] if compiled.problem else []
        selected = joined = 0
        for profile in sorted(self._profiles(), key=title_of):
            if first_policy(self._state.policies.values(), profile) is not compiled:
                continue
            selected += 1
            metadata = profile["metadata"]
            cluster = self._cluster(metadata["name"])
            own = cluster if cluster is not None and profile_of(cluster) == title_of(profile) else None
            joined += own is not None and has_joined(own)
            text = self._state.problems.get(key_of(profile)) or ""
            text = text or (failure_of(own) if own is not None else "")
            if text:
                problems.append({"profile": title_of(profile), "message": text})
        return {"selected": selected, "joined": joined, "problems": problems[:_PROBLEMS_MAX] or None}
