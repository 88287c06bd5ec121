"""One look at one step of a move: what its members show, and what has to be made there.

Each step may be repeated after a crash at any line: it reads what is there, makes what is missing, and is done when the
members show it. A member that does not answer is waited for; how long, `rules/transitions.py` says.
"""

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType

import orjson

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery import conditions, dotpaths
from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ApiError, ClusterError, InvalidInput
from federation.apimachinery.resources import PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES, GroupKind, Object
from federation.featureapi.surroundings import GateTransport
from federation.features.volumemoves import oldvolumes, snapshots, volsync
from federation.features.volumemoves.rules.choice import choose_way, claims_to_move, old_problem, taken_names
from federation.features.volumemoves.rules.moverecord import Phase, VolumeMove, Way, Wish
from federation.features.volumemoves.rules.transitions import DONE, Outcome
from federation.features.volumemoves.site import Site
from federation.runtime.members import Members

_HOOK_TIMEOUT_S = 30.0
_HEADERS = {"Content-Type": "application/json", "User-Agent": "federation-volume-move"}
_WAYS: Mapping[str, ModuleType] = {Way.SNAPSHOT: snapshots, Way.VOLSYNC: volsync, Way.OLD: oldvolumes}
FindCluster = Callable[[str], Object | None]


class Stage:
    """One federated object with its move. It lives for one reconcile."""

    def __init__(
        self,
        members: Members,
        find: FindCluster,
        transport: GateTransport,
        federated: Object,
        type_: FederatedType,
        move: VolumeMove,
        wish: Wish,
    ) -> None:
        self._members = members
        self._find = find
        self._transport = transport
        self._template = federated["spec"]["template"]
        self._namespace = str(federated["metadata"].get("namespace") or "")
        self._type = type_
        self._move = move
        self._wish = wish

    async def look(self) -> Outcome:
        """Return what became of the step; a member that does not answer or refuses is named."""
        try:
            match self._move.phase:
                case Phase.PREPARE:
                    return await self._prepare()
                case Phase.QUIESCE:
                    return await (self._post("Quiesce") if self._wish.quiesce_url else self._stopped())
                case Phase.COPY:
                    return await self._copy()
                case Phase.STOP:
                    return await self._stopped()
                case Phase.VERIFY:
                    return await self._verify()
                case Phase.SWITCHED:
                    return await self._switched()
                case Phase.UNDO:
                    return await self._undo()
                case Phase.FAILED:
                    return await self._cleaned((self._source(),))
        except (ApiError, ClusterError, InvalidInput) as error:
            return Outcome(message=str(error))
        return Outcome(message="the scheduler lets it go")

    async def _prepare(self) -> Outcome:
        """Look whether the move can succeed, while the workload runs on."""
        move, wish = self._move, self._wish
        for cluster in (move.source, move.target):
            if not self._is_ready(cluster):
                return Outcome(message=f"{cluster} is not ready")
        way, problem = choose_way(wish, move.source, self._kinds(move.source), move.target, self._kinds(move.target))
        if problem:
            return Outcome(message=problem)
        source, target = self._source(), self._target()
        claims, problem = claims_to_move(self._template, await source.claims())
        uids = {claim["metadata"]["name"]: claim["metadata"]["uid"] for claim in claims}
        if not problem and way == Way.OLD:
            problem = old_problem(move, await target.claims())
        elif not problem and (taken := taken_names(await target.claims(), uids, move.id)):
            problem = f"{move.target} has claims of these names: {', '.join(taken)}; delete them there"
            if any(old.cluster == move.target for old in move.kept):
                problem += ", by the approval of the PlacementHold about the old volumes, or use them with method Old"
        for claim in claims if not problem and way != Way.OLD else ():
            problem = problem or await self._class_problem(way, source, target, claim)
        return Outcome(message=problem) if problem else Outcome(is_done=True, way=way, claims=uids)

    async def _class_problem(self, way: str, source: Site, target: Site, claim: Object) -> str:
        name = claim["spec"].get("storageClassName")
        wanted = self._wish.storage_classes.get(name, name) if name else ""
        if wanted and await target.get(STORAGE_CLASSES, wanted) is None:
            return f"{target.cluster} has no StorageClass {wanted}; create it, or name another one in storageClasses"
        return await snapshots.problem_of(self._wish, source, target, claim) if way == Way.SNAPSHOT else ""

    async def _post(self, phase: str) -> Outcome:
        """Call the user's hook."""
        metadata = self._template["metadata"]
        body = {"phase": phase, "cluster": self._move.source, "namespace": self._namespace, "name": metadata["name"]}
        body |= {"kind": self._template["kind"], "move": self._move.id}
        connection = Connection(self._wish.quiesce_url)
        answer = await self._transport.post(connection, orjson.dumps(body), _HEADERS, timeout_s=_HOOK_TIMEOUT_S)
        if answer.status in (200, 201, 202, 204):
            return DONE
        problem = answer.problem(f"HTTP status {answer.status}", hidden="the hook did not accept")
        return Outcome(message=f"quiesceURL: {problem}")

    async def _stopped(self) -> Outcome:
        """Look whether nothing uses the volumes in the source: no replicas are wanted, and no pod has a claim."""
        source = self._source()
        live = await source.get(self._type.resource, self._template["metadata"]["name"])
        if live is not None:
            wanted = dotpaths.get(live, self._type.paths.replicas_spec)
            observed = (live.get("status") or {}).get("observedGeneration") or 0
            if wanted or observed < live["metadata"]["generation"]:
                return Outcome(message=f"it is being stopped in {source.cluster}")
        if users := await source.users(self._move.claims):
            return Outcome(message=f"pods in {source.cluster} use its claims: {', '.join(users[:5])}")
        return DONE

    async def _copy(self) -> Outcome:
        source, target, way = self._source(), self._target(), _WAYS[self._move.way]
        claims, problem = await self._present(source)
        if problem:
            return Outcome(message=problem, is_impossible=True)
        return _to_outcome(
            claims, [await way.copy_claim(self._move, self._wish, source, target, claim) for claim in claims]
        )

    async def _verify(self) -> Outcome:
        """Look once more at everything that the switch relies on."""
        source, target, way = self._source(), self._target(), _WAYS[self._move.way]
        claims, problem = await self._present(source)
        if problem:
            return Outcome(message=problem, is_impossible=True)
        for claim in claims:
            if owners := claim["metadata"].get("ownerReferences"):
                text = f"{owners[0]['kind']} {owners[0]['name']} would delete claim {claim['metadata']['name']}"
                return Outcome(message=f"{text} in {source.cluster}")
        checks = [await way.verify_claim(self._move, source, target, claim) for claim in claims]
        outcome = _to_outcome(claims, checks)
        return outcome if not outcome.is_done else await self._stopped()

    async def _present(self, source: Site) -> tuple[list[Object], str]:
        """Return the claims in the source; what was deleted or made again cannot be copied any more."""
        found = []
        for name, uid in self._move.claims.items():
            claim = await source.get(PERSISTENT_VOLUME_CLAIMS, name)
            if claim is None or claim["metadata"]["uid"] != uid or claim["metadata"].get("deletionTimestamp"):
                return [], f"claim {name} in {source.cluster} is gone"
            found.append(claim)
        return found, ""

    async def _switched(self) -> Outcome:
        """Wait until the workload runs in the target and is gone in the source, and remove what the copy needed."""
        source, target, name = self._source(), self._target(), self._template["metadata"]["name"]
        live = await target.get(self._type.resource, name)
        wanted = dotpaths.get(live, self._type.paths.replicas_spec) if live is not None else None
        ready = dotpaths.get(live, ("status", "readyReplicas")) if live is not None else None
        if wanted is None or (ready or 0) < wanted:
            return Outcome(message=f"it does not run in {target.cluster} yet")
        if await source.get(self._type.resource, name) is not None:
            return Outcome(message=f"it is not gone from {source.cluster} yet")
        return await self._cleaned((source, target))

    async def _undo(self) -> Outcome:
        """Remove all that the move made. The workload is in the source, and nothing ran in the target.

        What is left in a source that does not answer is removed later: it must not keep the workload from failing over.
        """
        move = self._move
        if not move.way:
            return DONE
        if self._find(move.target) is not None:
            target = self._target()
            outcome = await self._cleaned((target,))
            gone = [await target.remove(PERSISTENT_VOLUME_CLAIMS, name) for name in move.claims if outcome.is_done]
            if not (outcome.is_done and all(gone)):
                return Outcome(message=outcome.message)
        if self._find(move.source) is None:
            return DONE
        if not self._is_ready(move.source):
            return Outcome(is_done=True, is_unclean=True)
        outcome = await self._cleaned((self._source(),))
        if outcome.is_done and self._wish.quiesce_url:
            await self._post("Resume")
        return outcome

    async def _cleaned(self, sites: Sequence[Site]) -> Outcome:
        way = _WAYS[self._move.way]
        for site in sites:
            if not await way.clean(self._move, site):
                return Outcome(message=f"what the copy needed in {site.cluster} is not gone yet")
        return DONE

    def _source(self) -> Site:
        return Site(self._members.client(self._move.source), self._move.source, self._namespace, self._move.id)

    def _target(self) -> Site:
        return Site(self._members.client(self._move.target), self._move.target, self._namespace, self._move.id)

    def _is_ready(self, cluster: str) -> bool:
        status = (self._find(cluster) or {}).get("status") or {}
        return conditions.is_true(status.get("conditions"), names.CLUSTER_READY)

    def _kinds(self, cluster: str) -> set[GroupKind]:
        found = ((self._find(cluster) or {}).get("status") or {}).get("apiResourceTypes") or ()
        return {GroupKind(each.get("group") or "", each["kind"]) for each in found}


def _to_outcome(claims: Sequence[Object], problems: Sequence[str]) -> Outcome:
    """Return done if no claim has a problem, else the first one and how many there are."""
    found = [(claim["metadata"]["name"], text) for claim, text in zip(claims, problems, strict=True) if text]
    if not found:
        return DONE
    name, text = found[0]
    return Outcome(message=f"{len(found)} of {len(claims)} claims to go; {name}: {text}")
