"""Attacks on plans in the web UI: hostile manifests, forged forms, users without the rights, secrets in diffs."""

import asyncio
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from tests.attacks.test_ui import ADMIN, FRAME, MARKUP, OWN, Tags, logged_in
from tests.attacks.test_ui_approval import fields, hidden_fields
from tests.support.apiserver import Parts
from tests.support.manifests import a_policy
from tests.support.world import World, a_world
from tests.unit.web.test_delivery import served

from federation.admission.deviceselectors import selects
from federation.api.resources import FEDERATED_CLUSTERS, PROPAGATION_POLICIES
from federation.apimachinery.clock import parse_rfc3339, to_rfc3339
from federation.apimachinery.errors import TooManyRequests
from federation.apimachinery.resources import CONFIGMAPS, SECRETS
from federation.apiserver.auth.clientcertificates import Peer
from federation.features.catalogue import decision_chain
from federation.plans.planner import Planners
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.whatif.state import ObjectSet
from federation.web.ui.credentials import Credentials

LAUGHS = "a: &a [1]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(9)
)
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: own, namespace: default}\nstringData: {password: topsecret}\n"


async def plan(browser: httpx.AsyncClient, **form: str) -> httpx.Response:
    hidden = await fields(browser, "/ui/plan")
    return await browser.post("/ui/plan", data={**hidden, **form})


@pytest.mark.parametrize(
    ("manifests", "says"),
    [
        ("[" * 100_000, "exceeded max depth"),
        (LAUGHS, "excessive aliasing"),
        ("- " * 100_000 + "a", "exceeded max depth"),
        ("kind: !!python/object/apply:os.system [id]", "Manifests"),
        ("a: 1\n---\n" * 300, "Manifests"),
        ("x" * (1 << 20) + "yz", "more than 1024 KiB"),
        (MARKUP, "Manifests"),
        ("", "Paste a manifest"),
    ],
    ids=["deep", "laughs", "deepblocks", "python", "many", "large", "markup", "empty"],
)
async def test_hostile_manifests_are_refused_on_the_page(parts: Parts, manifests: str, says: str) -> None:
    async with logged_in(parts, Credentials(peer=ADMIN), **OWN) as browser:
        answer = await plan(browser, manifests=manifests)
        assert answer.status_code in (400, 404, 422), answer.text[-500:]
        tags = Tags()
        tags.feed(answer.text)
        assert says in tags.text
        assert tags.loaded == FRAME


async def test_writes_that_move_nothing_are_those_that_were_shown(tmp_path: Path) -> None:
    """No cluster has this object, so the plan has the same result whatever is written."""
    async with a_world(members=("east",), has_workloads=False) as world:
        await world.settle()
        async with served(world, tmp_path) as (parts, _), logged_in(parts, Credentials(peer=ADMIN), **OWN) as browser:
            settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {mode: %s}\n"
            form = hidden_fields((await plan(browser, manifests=settings % "shown")).text)
            other = {**form, "manifests": settings % "other", "step": "apply"}
            assert "no longer the plan that you saw" in (await browser.post("/ui/plan", data=other)).text
            assert (await world.user.list(CONFIGMAPS, "default")).items == []
            same = {**form, "manifests": settings % "shown", "step": "apply"}
            assert (await browser.post("/ui/plan", data=same)).status_code == 200
            (made,) = (await world.user.list(CONFIGMAPS, "default")).items
            assert made["data"] == {"mode": "shown"}


async def test_a_plan_is_applied_later_with_the_times_that_it_was_asked_with(tmp_path: Path) -> None:
    async with a_world(members=("east", "west"), has_workloads=False) as world:
        await world.settle()
        async with served(world, tmp_path) as (parts, _), logged_in(parts, Credentials(peer=ADMIN), **OWN) as browser:
            asked = {"cluster": "west", "action": "drain"}
            form = hidden_fields((await plan(browser, **asked)).text)
            earlier = to_rfc3339(parse_rfc3339(form["at"]) - timedelta(minutes=5))
            form = {**hidden_fields((await plan(browser, **asked, at=earlier)).text), **asked, "step": "apply"}
            assert "no longer the plan" in (await browser.post("/ui/plan", data={**form, "at": ""})).text
            assert await taints(world) == []
            assert "Applied." in (await browser.post("/ui/plan", data=form)).text
            assert await taints(world) != []


async def test_a_plan_that_rests_keeps_no_other_user_waiting() -> None:
    """The server lets a user rest for what he used, in the middle of a plan: nobody else waits for him."""
    async with a_world(members=(), has_workloads=False) as world:
        planners = Planners(load_plugins(selects=selects), decision_chain(), None, world.clock)
        nothing = ObjectSet({})
        async with planners.of(world.user, "tenant") as resting:
            async with asyncio.timeout(60), planners.of(world.user, "other") as planner:
                assert not (await planner.plan(nothing, [])).changed
            with pytest.raises(TooManyRequests, match="another plan"):
                async with planners.of(world.user, "tenant"):
                    pass
            assert not (await resting.plan(nothing, [])).changed
        async with planners.of(world.user, "tenant"):
            pass


async def test_a_plan_changes_nothing_and_only_its_own_form_applies_it(tmp_path: Path) -> None:
    async with a_world(members=("east", "west"), has_workloads=False) as world:
        kinds = [{"apiVersion": "v1", "kind": "Secret"}]
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}, resourceSelectors=kinds))
        secret = {"metadata": {"name": "own", "namespace": "default"}, "stringData": {"password": "oldsecret"}}
        await world.create(SECRETS, secret)
        await world.settle()
        async with served(world, tmp_path) as (parts, _):
            async with logged_in(parts, Credentials(peer=ADMIN), **OWN) as browser:
                asked = {"manifests": SECRET, "cluster": "west", "action": "taint", "taint": "a=b:NoSchedule"}
                shown = await plan(browser, **asked)
                assert shown.status_code == 200
                for value in ("dG9wc2VjcmV0", "b2xkc2VjcmV0", "oldsecret"):
                    assert value not in shown.text, "values of Secrets are masked"
                assert "***" in shown.text
                for metadata, says in (
                    ("name: ../../x", "metadata.name"),
                    ("name: a, namespace: ../x", "metadata.namespace"),
                ):
                    answer = await plan(browser, manifests=f"apiVersion: v1\nkind: Secret\nmetadata: {{{metadata}}}\n")
                    assert answer.status_code == 422
                    assert says in answer.text.partition('role="alert"')[2][:300]
                for wrong in ({"fingerprint": "x"}, {"fingerprint": ""}):
                    answer = await plan(browser, **asked, step="apply", **wrong)
                    assert "no longer the plan that you saw" in answer.text
                assert (await browser.post("/ui/plan", data={**asked, "step": "apply"})).status_code == 403
                assert await taints(world) == []
            async with logged_in(parts, Credentials(peer=Peer("bob", ())), **OWN) as browser:
                for form in (asked, {"manifests": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"}):
                    answer = await plan(browser, **form)
                    assert answer.status_code in (403, 422)
                    assert "forbidden" in answer.text
            assert await taints(world) == []
            assert (await world.user.list(CONFIGMAPS, "default")).items == []


async def taints(world: World) -> list[str]:
    """Return the keys of the taints of the cluster that the plan is about."""
    cluster = await world.user.get(FEDERATED_CLUSTERS, "west")
    return [taint["key"] for taint in cluster["spec"].get("taints") or ()]
