"""Attacks on the buttons that steer a change of a policy in waves: users without rights, old and invented forms."""

from pathlib import Path
from typing import Any

import pytest
from tests.attacks.test_ui_actions import BOB, browser, confirm, hidden_of, submit
from tests.attacks.test_ui_approval import fields
from tests.support.manifests import a_policy
from tests.support.world import World, a_world
from tests.unit.apiserver.rbacobjects import grant, rule, user, wait_allowed
from tests.unit.web.test_delivery import served

from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import CONFIGMAPS
from federation.apiserver.auth.identity import Attributes, User

pytestmark = pytest.mark.slow("a policy changes four times in waves")
POLICY = "core.kubeadmiral.io/v1alpha1/propagationpolicies/default/careful"
STEERING = ("roll-back-change", "approve-wave", "pause-waves", "resume-waves", "abort-change")
KINDS = [{"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"part": "careful"}}}]


async def change(world: World, cluster: str) -> None:
    await world.merge(PROPAGATION_POLICIES, "careful", {"spec": {"placement": [{"cluster": cluster}]}})
    await world.settle()


async def policy(world: World) -> Any:
    return await world.find(PROPAGATION_POLICIES, "careful")


async def state(world: World) -> tuple[int, str]:
    record = (await policy(world))["status"]["changeRollout"]
    return record.get("revision", 0), record["state"]


async def test_a_change_is_steered_with_the_users_rights_and_only_as_it_was_shown(tmp_path: Path) -> None:
    async with a_world(members=("east", "west")) as world:
        waves = [{"name": "few", "objects": 1, "pauseAfter": True}]
        careful = a_policy({}, placement=[{"cluster": "east"}], changeRollout={"waves": waves}, resourceSelectors=KINDS)
        careful["metadata"]["name"] = "careful"
        await world.create(PROPAGATION_POLICIES, careful)
        for name in ("a", "b", "c"):
            await world.create(
                CONFIGMAPS, {"metadata": {"name": name, "namespace": "default", "labels": {"part": "careful"}}}
            )
        await world.settle()
        async with served(world, tmp_path) as (parts, admin), browser(parts) as page, browser(parts, BOB) as bob:
            for action in STEERING:  # no change, so nothing to steer
                assert (await page.get(f"/ui/act/{action}/{POLICY}")).status_code == 404
            await change(world, "west")
            await world.until_equal(lambda: state(world), (1, "Progressing"))

            # Who may read it sees no button, and a form that he makes himself is refused.
            await grant(admin, rule("get", "propagationpolicies", group=PROPAGATION_POLICIES.group), to=user("bob"))
            reading = Attributes(
                "get",
                PROPAGATION_POLICIES.group,
                "v1alpha1",
                "propagationpolicies",
                namespace="default",
                name="careful",
            )
            await wait_allowed(parts, User("bob", ("system:authenticated",)), reading)
            assert 'aria-label="Actions"' not in (await bob.get(f"/ui/objects/{POLICY}")).text
            assert "You may not do this" in (await bob.get(f"/ui/act/abort-change/{POLICY}")).text
            forged = {**await fields(bob, "/ui/plan"), "revision": "1", "wave": "remaining"}
            for action in ("approve-wave", "pause-waves", "abort-change"):
                for step in ("plan", "apply"):
                    answer = await bob.post(f"/ui/act/{action}/{POLICY}", data={**forged, "step": step})
                    assert answer.status_code in (403, 422), action
                    assert "forbidden" in answer.text

            # The administrator sees what may be done now, and the wave that waits.
            shown = (await page.get(f"/ui/objects/{POLICY}")).text
            assert [action for action in STEERING if f"/ui/act/{action}/" in shown] == [
                "roll-back-change", "approve-wave", "pause-waves", "abort-change",
            ]  # fmt: skip
            assert "Wave remaining of change 1 starts" in (await page.get(f"/ui/act/approve-wave/{POLICY}")).text

            # A form about another change or another wave does nothing, whether it is old or invented.
            old = hidden_of((await submit(page, "approve-wave", POLICY)).text)
            await change(world, "east")  # back to the last good version: complete at once
            await change(world, "west")
            revision, _ = await state(world)
            for action, wrong in (
                ("approve-wave", {}),
                ("approve-wave", {"revision": str(revision), "wave": "few"}),
                ("abort-change", {"revision": "99999999999999999999"}),
                ("abort-change", {"revision": "-1"}),
            ):
                answer = await page.post(f"/ui/act/{action}/{POLICY}", data={**old, **wrong})
                assert answer.status_code in (404, 422), answer.text[-500:]
                assert "nothing was done" in answer.text
            assert not {"approvedWave", "abort"} & set((await policy(world))["spec"]["changeRollout"])

            # Each button writes what `fedctl rollout` writes.
            for action, is_paused in (("pause-waves", True), ("resume-waves", False)):
                assert (await confirm(page, action, POLICY)).headers["location"].endswith(f"?done={action}")
                assert (await policy(world))["spec"]["changeRollout"]["paused"] is is_paused
            assert (await confirm(page, "approve-wave", POLICY)).status_code == 303
            await world.until_equal(lambda: state(world), (revision, "Complete"))
            await change(world, "east")
            aborted = await submit(page, "abort-change", POLICY)
            assert "The objects that have it, 1 by now, return to the policy as it was before" in aborted.text
            assert (await confirm(page, "abort-change", POLICY)).status_code == 303
            await world.until_equal(lambda: state(world), (revision + 1, "RolledBack"))
            assert (await policy(world))["spec"]["placement"] == [{"cluster": "east"}], "the spec is the user's"
