"""The repair of drift while the host is away, against a member's API server in this process."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from federation.agent.deliveredfile import DeliveredFile
from federation.agent.repair import Repair, RepairOptions
from federation.api import names
from federation.api.federatedtype import default_type_configs, parse_configs
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import ClusterUnreachable, NotFound
from federation.apimachinery.resources import DEPLOYMENTS, SECRETS, Object, Resource
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.client.client import Client, PatchType
from federation.client.local import LocalClient

OPTIONS = RepairOptions(away_s=60.0)
TYPES = parse_configs(default_type_configs())
CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps")


class Member:
    """A member, its agent's repair, and for how long the host has been away."""

    def __init__(self, registry: Registry, folder: Path, clock: ManualClock) -> None:
        self.clock = clock
        self.client = LocalClient(registry, user_agent="test")
        self.folder = folder
        self.away_s: float | None = None
        self.repair = self.new_agent()

    def new_agent(self, options: RepairOptions = OPTIONS) -> Repair:
        async def connect() -> Client:
            return self.client

        return Repair(DeliveredFile(self.folder), connect, lambda: self.away_s, self.clock, options)

    async def deliver(self, resource: Resource, name: str, **content: Any) -> Object:
        """Apply an object as sync does."""
        metadata = {"name": name, "namespace": "default", "labels": {names.MANAGED_LABEL: "true"}}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **content}
        apply = {"patch_type": PatchType.APPLY, "field_manager": names.FIELD_MANAGER, "force": True}
        return await self.client.patch(resource, name, body, namespace="default", **apply)  # type: ignore[arg-type]

    async def edit(self, resource: Resource, name: str, patch: Object) -> None:
        await self.client.patch(resource, name, patch, namespace="default", field_manager="kubectl-edit")

    async def data(self, name: str) -> Any:
        return (await self.client.get(CONFIG_MAPS, name, "default"))["data"]


@pytest.fixture
async def member(tmp_path: Path) -> AsyncIterator[Member]:
    clock = ManualClock()
    registry = Registry(MemoryStore(), clock=clock)
    await registry.start()
    running = asyncio.ensure_future(registry.run())
    made = Member(registry, tmp_path, clock)
    made.repair.set_types(TYPES)
    yield made
    running.cancel()
    await asyncio.wait([running])


async def test_drift_is_repaired_when_the_host_has_been_away_for_long(member: Member) -> None:
    await member.deliver(CONFIG_MAPS, "settings", data={"a": "1", "b": "2"})
    await member.repair.step()
    member.away_s = 1.0
    await member.edit(CONFIG_MAPS, "settings", {"data": {"a": "changed", "b": None, "c": "theirs"}})
    await member.repair.step()
    assert await member.data("settings") == {"a": "changed", "c": "theirs"}
    member.away_s = 60.0
    await member.repair.step()
    assert await member.data("settings") == {"a": "1", "b": "2", "c": "theirs"}
    revision = (await member.client.get(CONFIG_MAPS, "settings", "default"))["metadata"]["resourceVersion"]
    await member.repair.step()
    after = await member.client.get(CONFIG_MAPS, "settings", "default")
    assert after["metadata"]["resourceVersion"] == revision


async def test_a_lost_label_and_a_deleted_object_come_back(member: Member) -> None:
    for name in ("unlabelled", "deleted"):
        await member.deliver(CONFIG_MAPS, name, data={"a": "1"})
    await member.repair.step()
    member.away_s = 60.0
    await member.repair.step()
    await member.edit(CONFIG_MAPS, "unlabelled", {"metadata": {"labels": None}, "data": {"a": "2"}})
    await member.client.delete(CONFIG_MAPS, "deleted", "default")
    await member.repair.step()
    assert await member.data("deleted") == {"a": "1"}
    found = await member.client.get(CONFIG_MAPS, "unlabelled", "default")
    assert (found["data"], found["metadata"]["labels"]) == ({"a": "1"}, {names.MANAGED_LABEL: "true"})


async def test_what_the_host_released_in_a_short_return_is_not_taken_back(member: Member) -> None:
    for name in ("released", "deleted"):
        await member.deliver(CONFIG_MAPS, name, data={"a": "1"})
    await member.repair.step()
    member.away_s = 60.0
    await member.repair.step()
    # The host is back for less than a step of the agent.
    released = {"metadata": {"labels": {names.MANAGED_LABEL: None}}}
    await member.client.patch(CONFIG_MAPS, "released", released, namespace="default", field_manager=names.FIELD_MANAGER)
    await member.client.delete(CONFIG_MAPS, "deleted", "default")
    for member.away_s in (5.0, 70.0):
        await member.repair.step()
    found = await member.client.get(CONFIG_MAPS, "released", "default")
    assert names.MANAGED_LABEL not in (found["metadata"].get("labels") or {})
    with pytest.raises(NotFound):
        await member.data("deleted")


async def test_the_last_changes_of_the_host_are_not_undone(member: Member) -> None:
    for name in ("deleted", "changed"):
        await member.deliver(CONFIG_MAPS, name, data={"a": "1"})
    await member.repair.step()
    # The host disappears before the agent has recorded these.
    await member.client.delete(CONFIG_MAPS, "deleted", "default")
    await member.clock.advance(1.0)  # the member records times of applies in whole seconds
    await member.deliver(CONFIG_MAPS, "changed", data={"a": "2"})
    await member.deliver(CONFIG_MAPS, "new", data={"a": "1"})
    member.away_s = 60.0
    await member.repair.step()
    with pytest.raises(NotFound):
        await member.data("deleted")
    await member.edit(CONFIG_MAPS, "changed", {"data": {"a": "drift"}})
    await member.edit(CONFIG_MAPS, "new", {"data": {"a": "drift"}})
    await member.repair.step()
    assert (await member.data("changed"), await member.data("new")) == ({"a": "2"}, {"a": "1"})


async def test_an_agent_that_starts_while_the_host_is_away_reads_its_file(member: Member) -> None:
    spec = {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "nginx:1"}]},
        },
    }
    await member.deliver(DEPLOYMENTS, "web", spec=spec)
    await member.repair.step()
    member.away_s = 60.0
    agent = member.new_agent()
    await agent.load()
    await member.edit(DEPLOYMENTS, "web", {"spec": {"replicas": 7}})
    await agent.step()
    found = await member.client.get(DEPLOYMENTS, "web", "default")
    assert found["spec"]["replicas"] == 2


async def test_secrets_are_not_recorded_and_the_file_is_private(member: Member) -> None:
    await member.deliver(SECRETS, "password", data={"p": "c2VjcmV0"})
    await member.deliver(CONFIG_MAPS, "settings", data={"a": "1"})
    await member.repair.step()
    file = member.folder / "delivered.json"
    assert "settings" in file.read_text()
    assert "password" not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


async def test_a_pass_has_a_limit_of_writes_and_the_record_one_of_objects(member: Member) -> None:
    agent = member.new_agent(RepairOptions(writes_max=2, objects_max=3))
    agent.set_types(TYPES)
    for number in range(4):
        await member.deliver(CONFIG_MAPS, f"cm-{number}", data={"a": "1"})
    await agent.step()
    member.away_s = 60.0
    for number in range(4):
        await member.edit(CONFIG_MAPS, f"cm-{number}", {"data": {"a": "2"}})
    left = []
    for _ in range(3):
        await agent.step()
        data = [await member.data(f"cm-{number}") for number in range(4)]
        left.append(data.count({"a": "2"}))
    assert left == [2, 1, 1]


async def test_an_object_that_another_agent_delivers_is_left_alone(member: Member) -> None:
    await member.deliver(CONFIG_MAPS, "settings", data={"a": "1"})
    await member.repair.step()
    member.away_s = 60.0
    await member.repair.step()
    await member.clock.advance(1.0)  # the member records times of applies in whole seconds
    await member.deliver(CONFIG_MAPS, "settings", data={"a": "newer"})
    for _ in range(2):
        await member.repair.step()
    assert await member.data("settings") == {"a": "newer"}


async def test_a_member_that_does_not_answer_changes_nothing(member: Member) -> None:
    await member.deliver(CONFIG_MAPS, "settings", data={"a": "1"})
    await member.repair.step()
    before = (member.folder / "delivered.json").read_bytes()

    async def refuse() -> Client:
        raise ClusterUnreachable("no answer")

    agent = Repair(DeliveredFile(member.folder), refuse, lambda: None, member.clock, OPTIONS)
    await agent.load()
    with pytest.raises(ClusterUnreachable):
        await agent.step()
    assert (member.folder / "delivered.json").read_bytes() == before


@pytest.mark.parametrize("content", ["", "{", "[]", '{"kinds": [], "objects": [[0, "u", "t", {}]]}', '{"kinds": 1}'])
def test_a_damaged_file_is_an_empty_record(tmp_path: Path, content: str) -> None:
    (tmp_path / "delivered.json").write_text(content)
    assert not DeliveredFile(tmp_path).load().objects
