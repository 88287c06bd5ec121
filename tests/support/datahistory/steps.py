"""The steps of a history: what users and administrators do, what fails, and how it is repaired.

Each step has a random generator of its own, so that a history without some of its steps does the same in the others.
"""

import asyncio
import copy
import random
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from datetime import timedelta
from typing import Any

from federation.api import names
from federation.api.resources import (
    CHANGE_FREEZES,
    CLUSTER_PROPAGATION_POLICIES,
    CLUSTER_TAINT_POLICIES,
    DELIVERY_SUSPENSIONS,
    FEDERATED_CLUSTERS,
    FEDERATED_RESOURCE_QUOTAS,
    FEDERATED_TYPE_CONFIGS,
    OVERRIDE_POLICIES,
    PLACEMENT_HOLDS,
    PROJECTS,
    PROPAGATION_POLICIES,
)
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.errors import FederationError, Unauthorized
from federation.apimachinery.resources import CRDS, PERSISTENT_VOLUME_CLAIMS, Object, Resource
from federation.cli import joining
from federation.cli.databases import marking
from federation.simulator.controllers.names import SIMULATOR_READY
from tests.support.datahistory import apps
from tests.support.datahistory.apps import APPS, COUNTED, App, policy_of
from tests.support.datahistory.judge import Judge, cluster_of, on_host
from tests.support.faults import StoreCopy, copy_of
from tests.support.manifests import an_override
from tests.support.world import World
from tests.support.worldmember import Member

WAITS_S = (0.3, 2, 2, 2, 12, 12, 12, 45, 70, 330)
"""How long a history waits between two steps: the last is longer than the toleration of a lost cluster."""
MOVES_NOTHING = frozenset(
    {"revoke", "mend", "restart", "kill", "days", "create", "edit", "delete"}
    | {"orphan", "version", "approve", "back_up", "uncordon"}
)
"""Steps that give no replica a reason to move; while credentials fail, others explain replicas in two clusters."""
DAYS_S = (3600, 7 * 3600, 25 * 3600, 3 * 86400)
_CHUNKS, _CHUNK_S = 8, 8.0
"""Long times pass in so many jumps, with so many seconds of small steps after each."""


class Steps:
    """All steps of a history, by name."""

    def __init__(self, world: World, judge: Judge) -> None:
        self.world = world
        self.judge = judge
        self.random = random.Random(0)
        self.lost_for_ever: set[str] = set()
        self._backups: dict[int, StoreCopy] = {}
        self._host_backup: tuple[Any, StoreCopy, dict[str, Object], Object | None] | None = None
        self._removed_type: Object | None = None
        self._renames = 0
        self._definition: tuple[bool, bool] | None = None

    def all(self) -> dict[str, tuple[int, Callable[[], Awaitable[str]]]]:
        """Return the steps with their weights."""
        return {
            "create": (6, self.create),
            "scale": (4, self.scale),
            "edit": (3, self.edit),
            "delete": (2, self.delete),
            "orphan": (1, self.orphan),
            "place": (7, self.place),
            "drop_policy": (1, self.drop_policy),
            "project": (4, self.project),
            "drop_project": (1, self.drop_project),
            "label": (4, self.label),
            "taint": (3, self.taint),
            "drain": (2, self.drain),
            "uncordon": (2, self.uncordon),
            "taint_rule": (2, self.taint_rule),
            "unjoin": (5, self.unjoin),
            "delete_cluster": (1, self.delete_cluster),
            "unjoin_removing": (1, self.unjoin_removing),
            "join": (6, self.join),
            "join_renamed": (3, self.join_renamed),
            "lose": (4, self.lose),
            "lose_for_ever": (1, self.lose_for_ever),
            "mend": (4, self.mend),
            "revoke": (3, self.revoke),
            "back_up": (2, self.back_up),
            "restore_host": (2, self.restore_host),
            "restore_member": (2, self.restore_member),
            "freeze": (1, self.freeze),
            "suspend": (1, self.suspend),
            "quota": (1, self.quota),
            "spoil": (1, self.spoil),
            "remove_type": (1, self.remove_type),
            "return_type": (2, self.return_type),
            "version": (3, self.version),
            "approve": (2, self.approve),
            "restart": (3, self.restart),
            "kill": (2, self.kill),
            "days": (1, self.days),
        }

    # -- choices

    @property
    def joined(self) -> list[str]:
        """The clusters that are members."""
        return sorted(name for name in self.world.members if cluster_of(self.world, name) is not None)

    def _member(self, among: Collection[str] = ()) -> Member:
        return self.world.members[self.random.choice(sorted(among or self.world.members))]

    def _app(self, *, is_there: bool = True, among: Collection[str] = tuple(APPS)) -> App:
        found = [name for name in among if bool(self.judge.words[name].body) is is_there]
        return APPS[self.random.choice(found or list(among))]

    # -- applications

    async def create(self) -> str:
        """Create an application, its policy if it has none, and what it needs."""
        app = self._app(is_there=False)
        return await self.create_app(app)

    async def create_app(self, app: App) -> str:
        """Create this application."""
        if app.name == "disk" and on_host(self.world, apps.key_of(PERSISTENT_VOLUME_CLAIMS, apps.DISK)) is None:
            await self.world.create(PERSISTENT_VOLUME_CLAIMS, apps.the_claim_of_disk())
        if app.name == "widget" and self._definition is None:
            has_new = self.random.random() < 0.5
            self._definition = (has_new, True)
            await self.world.create(CRDS, apps.definition(has_new=has_new))
            await self.world.create(CLUSTER_PROPAGATION_POLICIES, apps.definition_policy())
        if await self.world.find(PROPAGATION_POLICIES, app.name) is None:
            await self.world.create(PROPAGATION_POLICIES, self._policy(app))
        replicas = self.random.randrange(1, 6)
        body = app.build(replicas)
        resource = self._resource(app)
        if resource == apps.WIDGETS:
            body["spec"]["colour"] = replicas
        await self.world.create(resource, {**body, "apiVersion": resource.api_version})
        self.judge.wrote(app.name, body)
        return f"create {app.name} with {replicas}"

    def _resource(self, app: App) -> Resource:
        """Return the newest version of the application's kind that the host serves."""
        if app.resource == apps.WIDGETS and not (self._definition or (False, True))[0]:
            return apps.OLD_WIDGETS
        return app.resource

    async def _write(self, app: App, patch: Object) -> None:
        await self.world.merge(self._resource(app), app.name, patch)
        self.judge.wrote(app.name, apps.merged(self.judge.words[app.name].body, patch))

    async def scale(self) -> str:
        """Scale a workload."""
        app, replicas = self._app(among=("db", "disk", "web")), self.random.randrange(1, 7)
        await self._write(app, {"spec": {"replicas": replicas}})
        return f"scale {app.name} to {replicas}"

    async def edit(self) -> str:
        """Write fields of an application's object: annotations, data, the image, a field of the newer version."""
        app, number = self._app(), self.random.randrange(100)
        patch: Object = {"metadata": {"annotations": {f"example.com/note-{number % 3}": str(number)}}}
        if app.name in ("conf", "pass"):
            patch["data"] = {f"key{number % 4}": "b25l"}
        elif app.name == "widget":
            patch["spec"] = {"size": number}
            if (self._definition or (False, True))[0]:
                patch["spec"]["colour"] = number
        elif app.name != "crunch" and number % 2:
            container = {"name": "main" if app.name == "db" else "web", "image": f"v:{number}"}
            patch["spec"] = {"template": {"spec": {"containers": [container]}}}
        await self._write(app, patch)
        return f"edit {app.name}: {patch}"

    async def delete(self) -> str:
        """Delete an application; its policy and its claims stay."""
        app = self._app()
        await self.world.user.delete(self._resource(app), app.name, "default")
        self.judge.deleted(app.name, is_kept=False)
        return f"delete {app.name}"

    async def orphan(self) -> str:
        """Delete an application's object on the host and keep its copies."""
        app = self._app()
        if self.judge.words[app.name].body:
            self.judge.deleted(app.name, is_kept=True)
        await self.world.user.delete(self._resource(app), app.name, "default", propagation_policy="Orphan")
        return f"delete {app.name} and keep its copies"

    # -- policies

    def _policy(self, app: App) -> Object:
        pick, clusters = self.random, sorted({*self.world.members, "east"})
        chosen = pick.sample(clusters, pick.randint(1, len(clusters)))
        spec: dict[str, Any] = {}
        if app.name in COUNTED and pick.random() < 0.25 and app.name != "crunch":
            spec["schedulingMode"] = "Duplicate"
        if pick.random() < 0.2:
            spec["maxClusters"] = pick.randint(1, 2)
        if pick.random() < 0.3:
            rules = ("clusterJoined", "clusterLabelsChanged", "clusterAPIResourcesChanged")
            spec["reschedulePolicy"] = {
                "rescheduleWhen": {"policyContentChanged": True, **dict.fromkeys(rules, True)},
                "replicaRescheduling": {"avoidDisruption": pick.random() < 0.5},
            }
        if pick.random() < 0.1 and app.name in ("web", "disk", "db"):
            spec["failover"] = {"application": {"tolerationSeconds": 60}}
        if pick.random() < 0.15 and app.name in ("db", "disk"):
            spec["failover"] = {**spec.get("failover", {}), "mode": "Auto"}
        if pick.random() < 0.1 and app.name == "disk":
            spec["workloadAffinity"] = {"required": [{"labelSelector": {"matchLabels": {"app": "web"}}}]}
        policy = policy_of(app, {name: pick.randint(1, 3) for name in sorted(chosen)}, **spec)
        how = pick.random()
        if how < 0.3:
            policy["spec"]["placement"] = [{"cluster": "*", "preferences": {"weight": 1}}]
        elif how < 0.45:
            policy["spec"]["clusterSelector"] = {"team": "shop"}
            del policy["spec"]["placement"]
        elif how < 0.6 and len(chosen) > 1:
            policy["spec"]["clusterGroups"] = [
                {"name": "own", "clusters": chosen[:1]},
                {"name": "rented", "clusters": chosen[1:], "when": pick.choice(("Fallback", "Overflow"))},
            ]
            del policy["spec"]["placement"]
        return policy

    async def place(self) -> str:
        """Change where an application may run."""
        app = self._app()
        policy = self._policy(app)
        held = await self.world.find(PROPAGATION_POLICIES, app.name)
        if held is None:
            await self.world.create(PROPAGATION_POLICIES, policy)
        else:
            absent = dict.fromkeys(held["spec"].keys() - policy["spec"].keys())
            await self.world.merge(PROPAGATION_POLICIES, app.name, {"spec": {**absent, **policy["spec"]}})
        return f"place {app.name}: {policy['spec']}"

    async def drop_policy(self) -> str:
        """Delete the policy of an application."""
        app = self._app()
        await self.world.user.delete(PROPAGATION_POLICIES, app.name, "default")
        return f"delete the policy of {app.name}"

    async def project(self) -> str:
        """Put the namespace into a project, or change the clusters of its project, by name or by label."""
        chosen = self.random.sample(sorted(self.world.members), self.random.randint(1, 2))
        by_name: dict[str, Any] = {"names": sorted(chosen), "selector": None}
        by_label: dict[str, Any] = {"names": None, "selector": {"matchLabels": {"team": "shop"}}}
        clusters = by_name if self.random.random() < 0.6 else by_label
        if await self.world.find(PROJECTS, "team") is None:
            clusters = {key: value for key, value in clusters.items() if value is not None}
            header = {"apiVersion": PROJECTS.api_version, "kind": "Project", "metadata": {"name": "team"}}
            await self.world.create(PROJECTS, {**header, "spec": {"namespaces": ["default"], "clusters": clusters}})
        else:
            await self.world.merge(PROJECTS, "team", {"spec": {"clusters": clusters}})
        return f"the project has {clusters}"

    async def drop_project(self) -> str:
        """Delete the project."""
        await self.world.user.delete(PROJECTS, "team")
        return "delete the project"

    # -- clusters

    async def _set_labels(self, cluster: str, labels: Object) -> None:
        await self.world.merge(FEDERATED_CLUSTERS, cluster, {"metadata": {"labels": labels}})

    async def label(self) -> str:
        """Give a cluster to the team, or take it away; sometimes two, one after the other."""
        clusters = self.random.sample(self.joined, min(len(self.joined), self.random.randint(1, 2)))
        did = []
        for cluster in clusters:
            value = self.random.choice(("shop", None))
            await self._set_labels(cluster, {"team": value})
            did.append(f"label {cluster} team={value}")
            await self.world.pass_time(self.random.choice((0.1, 1.0, 10.0)))
        return "; ".join(did)

    async def _set_taints(self, cluster: str, change: Callable[[list[Object]], list[Object]]) -> None:
        held = await self.world.user.get(FEDERATED_CLUSTERS, cluster)
        version = held["metadata"]["resourceVersion"]
        taints = change(list((held.get("spec") or {}).get("taints") or ()))
        await self.world.merge(
            FEDERATED_CLUSTERS, cluster, {"metadata": {"resourceVersion": version}, "spec": {"taints": taints}}
        )

    async def _taint(self, cluster: str, key: str, effect: str) -> None:
        taint = {"key": key, "effect": effect, "timeAdded": to_rfc3339(self.world.clock.now())}
        await self._set_taints(cluster, lambda held: [each for each in held if each["key"] != key] + [taint])

    async def taint(self) -> str:
        """Taint a cluster, or cordon it."""
        cluster = self._member(self.joined).name
        effect = self.random.choice(("NoSchedule", "NoExecute"))
        key = self.random.choice(("example.com/upgrade", names.TAINT_UNSCHEDULABLE))
        effect = "NoSchedule" if key == names.TAINT_UNSCHEDULABLE else effect
        await self._taint(cluster, key, effect)
        return f"taint {cluster} {key}:{effect}"

    async def drain(self) -> str:
        """Drain a cluster."""
        cluster = self._member(self.joined).name
        await self._taint(cluster, names.TAINT_DRAIN, "NoExecute")
        return f"drain {cluster}"

    async def uncordon(self) -> str:
        """Remove the taints of users from a cluster."""
        cluster = self._member(self.joined).name
        await self.untaint(cluster)
        return f"remove the taints of {cluster}"

    async def untaint(self, cluster: str) -> None:
        """Remove the taints of users from a cluster."""
        await self._set_taints(cluster, lambda held: [each for each in held if each["key"] in names.HEALTH_TAINTS])

    async def taint_rule(self) -> str:
        """Make a rule that taints clusters with a label, and label one of them."""
        if await self.world.find(CLUSTER_TAINT_POLICIES, "net") is None:
            spec = {
                "when": [{"clusterLabels": {"matchLabels": {"network": "sick"}}}],
                "holdSeconds": self.random.choice((0, 60)),
                "clearSeconds": 120,
                "taints": [{"key": "network", "value": "sick", "effect": "NoExecute"}],
            }
            header = {"apiVersion": CLUSTER_TAINT_POLICIES.api_version, "kind": CLUSTER_TAINT_POLICIES.kind}
            await self.world.create(CLUSTER_TAINT_POLICIES, {**header, "metadata": {"name": "net"}, "spec": spec})
        cluster, value = self._member(self.joined).name, self.random.choice(("sick", "sick", None))
        await self._set_labels(cluster, {"network": value})
        return f"a rule taints network=sick; {cluster} has network={value}"

    # -- membership

    async def _wait_for(self, work: Any, seconds: float) -> str:
        """Let time pass until a command has ended; return its error, "" for none."""
        task = asyncio.ensure_future(work)
        until_s = self.world.clock.monotonic() + seconds
        while not task.done() and self.world.clock.monotonic() < until_s:
            await self.world.pass_time(0.25)
        if not task.done():
            task.cancel()
        try:
            await task
        except FederationError as error:
            return str(error)
        except asyncio.CancelledError:
            return "interrupted"
        return ""

    async def unjoin(self) -> str:
        """Remove a cluster and keep what runs in it, by force if it does not answer."""
        member = self._member(self.joined)
        reason = "" if member.line.mode == "up" else "it is lost"
        self.judge.is_moved_by_others = True
        self.judge.keeps(member, "unjoin by force" if reason else "unjoin")
        unjoining = joining.unjoin(self.world.user, member.name, self.world.clock, 30, is_removing=False, reason=reason)
        error = await self._wait_for(unjoining, 40)
        if not reason and cluster_of(self.world, member.name) is None:
            self.judge.is_out(member)
        return f"unjoin {member.name} {reason and 'by force'} {error}"

    async def delete_cluster(self) -> str:
        """Delete a FederatedCluster with kubectl."""
        member = self._member(self.joined)
        self.judge.is_moved_by_others = True
        self.judge.keeps(member, "kubectl delete federatedcluster")
        await self.world.user.delete(FEDERATED_CLUSTERS, member.name)
        return f"kubectl delete federatedcluster {member.name}"

    async def unjoin_removing(self) -> str:
        """Remove a cluster and what runs in it."""
        member = self._member(self.joined)
        if member.line.mode != "up":
            return f"{member.name} does not answer"
        self.judge.is_moved_by_others = True
        self.judge.removed(member)
        unjoining = joining.unjoin(self.world.user, member.name, self.world.clock, 30, is_removing=True)
        error = await self._wait_for(unjoining, 40)
        return f"unjoin {member.name} and remove what it has {error}"

    async def join(self) -> str:
        """Join the clusters that are out, under the names that they had."""
        away = [name for name in sorted(self.world.members) if cluster_of(self.world, name) is None]
        away = [name for name in away if name not in self.lost_for_ever]
        for name in away:
            await self.world.join(name)
        return f"join {away}"

    async def join_renamed(self) -> str:
        """Join a cluster that is out under another name; without one, a cluster leaves first."""
        away = [name for name in sorted(self.world.members) if cluster_of(self.world, name) is None]
        away = [name for name in away if name not in self.lost_for_ever]
        did = ""
        if not away:
            did = await self.unjoin()
            away = [name for name in sorted(self.world.members) if cluster_of(self.world, name) is None]
        if not away:
            return did
        old = self.random.choice(away)
        self._renames += 1
        new = f"{old.partition('-')[0]}-{self._renames}"
        self.world.rename(old, new)
        await self.world.join(new)
        return f"{did}; join {old} as {new}"

    # -- faults

    async def lose(self) -> str:
        """Break the connection to a cluster."""
        member = self._member()
        member.line.mode = self.random.choice(("down", "hang"))
        self.judge.is_moved_by_others = True
        return f"{member.name} does not answer ({member.line.mode})"

    async def lose_for_ever(self) -> str:
        """Lose a cluster that never comes back."""
        member = self._member()
        if self.lost_for_ever:
            return "one is lost already"
        self.lost_for_ever.add(member.name)
        member.line.mode = "down"
        self.judge.is_moved_by_others = True
        return f"{member.name} is lost for ever"

    async def mend(self) -> str:
        """Repair the connections of a cluster."""
        broken = [
            name for name, each in self.world.members.items() if each.line.mode != "up" or each.line.faults.is_active
        ]
        member = self._member(set(broken) - self.lost_for_ever)
        if member.name not in self.lost_for_ever:
            member.line.heal()
        return f"{member.name} answers again"

    async def revoke(self) -> str:
        """Revoke the credentials of a cluster."""
        member = self._member()
        member.line.faults.begin(1.0, "401")
        member.line.drop_watches(Unauthorized("the token has been revoked"))
        return f"{member.name} rejects the credentials"

    async def back_up(self) -> str:
        """Back up the host and all members."""
        for member in self.world.members.values():
            self._backups[id(member)] = copy_of(member.store)
        said = {app: copy.deepcopy(words.body) for app, words in self.judge.words.items()}
        self._host_backup = self.world.clock.now(), copy_of(self.world.store), said, self._removed_type
        return "back up the host and its members"

    async def restore_host(self) -> str:
        """Restore the host from the backup, as `fedctl restore` does."""
        if self._host_backup is None:
            return await self.back_up()
        at, backup, said, self._removed_type = self._host_backup
        mark = marking(at, self.world.clock.now())
        entries = [replace(entry, value=mark(entry.key, entry.value)) for entry in backup.entries]
        self.judge.restored(said)
        await self.world.restore_host(backup._replace(entries=entries))
        definition = on_host(self.world, f"/{CRDS.group}/{CRDS.plural}/{apps.DEFINITION}")
        versions = {each["name"]: each["served"] for each in (definition or {}).get("spec", {}).get("versions", ())}
        self._definition = ("v1" in versions, versions.get("v1beta1", False)) if versions else None
        return f"restore the host as it was at {to_rfc3339(at)}"

    async def restore_member(self) -> str:
        """Restore a member from the backup."""
        found = [name for name, each in self.world.members.items() if id(each) in self._backups]
        if not found:
            return await self.back_up()
        member = self._member(found)
        self.judge.is_moved_by_others = True
        await self.world.replace_member(member.name, self._backups[id(member)])
        return f"restore {member.name} from its backup"

    async def restart(self) -> str:
        """Restart the control plane."""
        await self.world.restart()
        return "restart"

    async def kill(self) -> str:
        """Kill the control plane in the middle of what it does, and start it again after a while."""
        turns, away_s = self.random.randrange(1, 300), self.random.choice((0, 5, 60))
        for _ in range(turns):
            await asyncio.sleep(0)
        self.world.kill()
        await self.world.clock.pass_time(away_s)
        await self.world.restart()
        return f"kill the control plane after {turns} turns, start it after {away_s} s"

    async def days(self) -> str:
        """Let hours or days pass."""
        seconds = self.random.choice(DAYS_S)
        for _ in range(_CHUNKS):
            self.world.clock.skip(seconds / _CHUNKS - _CHUNK_S)
            await self.world.pass_time(_CHUNK_S)
        return f"{seconds / 3600:g} hours pass"

    # -- waits

    def _window(self, seconds: float) -> tuple[str, str]:
        now = self.world.clock.now()
        return to_rfc3339(now - timedelta(seconds=1)), to_rfc3339(now + timedelta(seconds=seconds))

    async def freeze(self) -> str:
        """Freeze changes for a while."""
        start, end = self._window(self.random.choice((60, 600)))
        spec = {"reason": "the sale", "windows": [{"start": start, "end": end}]}
        await self._put(CHANGE_FREEZES, "sale", spec, namespace="")
        return f"freeze until {end}"

    async def suspend(self) -> str:
        """Suspend the delivery to a cluster for a while."""
        _, end = self._window(self.random.choice((60, 600)))
        cluster = self._member().name
        spec = {"owner": "storage team", "reason": "volumes are copied", "until": end, "clusters": [cluster]}
        await self._put(DELIVERY_SUSPENSIONS, "copy", spec)
        return f"suspend the delivery to {cluster} until {end}"

    async def quota(self) -> str:
        """Limit the pods of the namespace."""
        pods = str(self.random.choice((2, 6, 100)))
        await self._put(FEDERATED_RESOURCE_QUOTAS, "team", {"overall": {"pods": pods}})
        return f"a quota of {pods} pods"

    async def spoil(self) -> str:
        """Let the pods of a workload never become ready in a cluster."""
        app, cluster = self._app(among=("web", "disk", "db")), self._member().name
        policy = an_override(cluster, "/spec/template/metadata/annotations", {SIMULATOR_READY: "false"}, name="spoil")
        policy["spec"]["resourceSelectors"] = [{"apiVersion": "apps/v1", "kind": app.resource.kind}]
        await self._put(OVERRIDE_POLICIES, "spoil", policy["spec"])
        await self._write(app, {"metadata": {"labels": {names.OVERRIDE_POLICY_LABEL: "spoil"}}})
        return f"{app.name} is never ready in {cluster}"

    async def _put(self, resource: Resource, name: str, spec: Object, namespace: str = "default") -> None:
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}
        if await self.world.find(resource, name, namespace) is None:
            await self.world.create(resource, body)
        else:
            await self.world.merge(resource, name, {"spec": spec}, namespace)

    # -- kinds

    async def remove_type(self) -> str:
        """Delete a FederatedTypeConfig and keep its objects."""
        if self._removed_type is not None:
            return await self.return_type()
        resource = self.random.choice(("deployments.apps", "statefulsets.apps", "configmaps"))
        self._removed_type = await self.world.user.get(FEDERATED_TYPE_CONFIGS, resource)
        self.judge.is_moved_by_others = True
        for app in APPS.values():
            if app.resource.group_resource == resource:
                self.judge.releases(app.name)
        mark = {"metadata": {"annotations": {names.ORPHAN: "all"}}}
        await self.world.merge(FEDERATED_TYPE_CONFIGS, resource, mark)
        await self.world.user.delete(FEDERATED_TYPE_CONFIGS, resource)
        return f"delete FederatedTypeConfig {resource}, keep its objects"

    async def return_type(self) -> str:
        """Create the FederatedTypeConfig again."""
        if self._removed_type is None:
            return "no type is missing"
        config = self._removed_type
        fresh = {"metadata": {"name": config["metadata"]["name"]}, "spec": config["spec"]}
        header = {"apiVersion": config["apiVersion"], "kind": config["kind"]}
        if await self.world.find(FEDERATED_TYPE_CONFIGS, config["metadata"]["name"]) is not None:
            return f"FederatedTypeConfig {config['metadata']['name']} is not gone yet"
        await self.world.create(FEDERATED_TYPE_CONFIGS, {**header, **fresh})
        self._removed_type = None
        return f"create FederatedTypeConfig {config['metadata']['name']} again"

    async def version(self) -> str:
        """Go on with the versions of the custom kind: the older one, both, the newer one."""
        if self._definition is None:
            return await self.create_app(APPS["widget"])
        following = {(False, True): (True, True), (True, True): (True, False), (True, False): (True, True)}
        self._definition = following[self._definition]
        has_new, serves_old = self._definition
        spec = apps.definition(has_new=has_new, serves_old=serves_old)["spec"]
        await self.world.merge(CRDS, apps.DEFINITION, {"spec": spec})
        return f"the definition has the newer version: {has_new}, serves the older one: {serves_old}"

    # -- approvals

    async def approve(self) -> str:
        """Approve all holds."""
        approved = []
        for hold in (await self.world.user.list(PLACEMENT_HOLDS)).items:
            if not hold["spec"].get("approval"):
                name = hold["metadata"]["name"]
                self.judge.approved(name)
                approval = {"reason": "planned", "by": "admin", "at": to_rfc3339(self.world.clock.now())}
                await self.world.merge(PLACEMENT_HOLDS, name, {"spec": {"approval": approval}}, "")
                approved.append(name)
        return f"approve {approved}"
