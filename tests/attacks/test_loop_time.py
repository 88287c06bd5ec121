"""Attack: one user's costly requests, such as dry runs of large objects, which store nothing, hold the event loop."""

from pathlib import Path

from tests.attacks.test_ui import ADMIN
from tests.unit.apiserver.conftest import connect, running

from federation.apiserver.auth.clientcertificates import Peer
from federation.apiserver.http.app import AppOptions
from federation.apiserver.http.looptime import LoopTimeOptions


async def test_who_used_up_his_time_is_refused_and_others_are_not(tmp_path: Path) -> None:
    # With less than nothing as burst, the first request uses it up, however fast it is.
    options = AppOptions(loop_time=LoopTimeOptions(free_s=0, burst_s=-1, rest_s_max=0))
    async with (
        running(tmp_path, options) as parts,
        connect(parts.app, Peer("tenant", ())) as tenant,
        connect(parts.app, Peer("other", ())) as other,
        connect(parts.app, ADMIN) as admin,
    ):
        assert (await tenant.get("/apis")).status_code == 200
        refused = await tenant.get("/apis")
        assert refused.status_code == 429
        assert refused.json()["message"].startswith("your requests took the server long to compute")
        assert int(refused.headers["retry-after"]) >= 1
        assert (await other.get("/apis")).status_code == 200
        for _ in range(3):
            assert (await admin.get("/api/v1/secrets")).status_code == 200
