"""Attacks on the pages of pods and logs: hostile addresses and parameters, and users without rights."""

import httpx
import pytest
from tests.attacks.test_ui import ADMIN, FRAME, MARKUP, Tags, logged_in
from tests.support.apiserver import Parts

from federation.apiserver.auth.clientcertificates import Peer
from federation.web.ui.credentials import Credentials

POD = "/ui/pods/default/web-1"
LOGS = "/ui/objects/apps/v1/deployments/default/web/logs"


async def a_pod(admin: httpx.AsyncClient) -> None:
    meta = {"name": "web-1", "namespace": "default", "annotations": {"kubeadmiral.io/cluster": MARKUP}}
    pod = {"metadata": meta, "spec": {"containers": [{"name": "app", "image": "i"}]}}
    assert (await admin.post("/api/v1/namespaces/default/pods", json=pod)).status_code == 201


@pytest.mark.parametrize(
    ("address", "status"),
    [
        (POD, 200),
        (f"{POD}?view=yaml", 200),
        (f"{POD}?view=events", 200),
        (f"{POD}?view={MARKUP}&q={MARKUP}&container={MARKUP}", 200),
        (f"{POD}?lines=0", 400),
        (f"{POD}?lines=100000", 400),
        (f"{POD}?lines=\u0663", 400),
        ("/ui/pods/default/none", 404),
        ("/ui/pods/default/%2e%2e", 400),
        ("/ui/pods/%2e%2e/secrets", 400),
        (LOGS, 404),
        ("/ui/objects/apps/v1/deployments/%2e%2e/web/logs", 400),
        ("/ui/objects/apps/v1/deployments/default/web%3fx/logs", 404),
    ],
)
async def test_addresses_and_parameters_stay_what_they_are(
    parts: Parts, admin: httpx.AsyncClient, address: str, status: int
) -> None:
    await a_pod(admin)
    async with logged_in(parts, Credentials(peer=ADMIN)) as browser:
        answer = await browser.get(address)
        assert answer.status_code == status, answer.text[-500:]
        tags = Tags()
        tags.feed(answer.text)
        assert (tags.loaded, tags.handlers) == (FRAME, [])


async def test_a_user_without_rights_sees_neither_pods_nor_logs(parts: Parts, admin: httpx.AsyncClient) -> None:
    await a_pod(admin)
    async with logged_in(parts, Credentials(peer=Peer("bob", ()))) as browser:
        for address in (POD, f"{POD}?view=yaml", LOGS):
            answer = await browser.get(address)
            assert answer.status_code == 403
            assert "containers" not in answer.text
