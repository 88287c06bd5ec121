"""Measure every screen of the web UI in a large federation, over HTTPS, as the administrator.

Starts `fedctl serve` and light members, joins them, propagates `--objects` Deployments of which each is in two members,
and waits until all are delivered, those in members that do not answer excepted. Then it asks for each screen several times, one request after the other, and measures
the time until the page has arrived; with `--browser`, also the time until Chromium has it ready for input. The last line
on standard output is one JSON object.

    python benchmarks/screens.py --members 1000 --objects 5000
    python benchmarks/screens.py --members 10 --objects 100 --browser
"""

import argparse
import asyncio
import shutil
import ssl
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
from bareclient import in_parallel
from fleet import Fleet, running_fleet, to_policy, to_workload
from propagation import NAMESPACE, conduct

from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS
from federation.features import catalogue
from federation.web.ui.uiapp import SCREENS

GOAL_S = 0.3
"""Of the server's time for a screen."""
GOAL_INTERACTIVE_S = 1.0
_OBJECT = f"/ui/objects/apps/v1/deployments/{NAMESPACE}/app-00001"
_CLUSTERS_EACH = 2
_INTERACTIVE = "() => performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"


def addresses(cluster: str) -> list[str]:
    """Return an address of every screen that is a page of its own."""
    listed = [screen.path for screen in (*SCREENS, *catalogue.feature_screens())]
    plain = [path for path in listed if "{" not in path and path != "/ui/bulk"]
    return [
        *plain,
        "/ui/objects?sort=-ready",
        "/ui/objects?name=app-000",
        f"/ui/objects?cluster={cluster}",
        "/ui/search?q=app-0001",
        f"/ui/fleet/{cluster}",
        _OBJECT,
        f"{_OBJECT}/graph",
        f"{_OBJECT}/diff",
        f"/ui/act/scale{_OBJECT.removeprefix('/ui/objects')}",
        f"/ui/decisions/apps/Deployment/{NAMESPACE}/app-00001",
    ]


async def propagate(fleet: Fleet, options: argparse.Namespace) -> None:
    """Create the Deployments, and wait until every one is delivered and ready."""
    host, clusters = fleet.host, fleet.clusters
    count = len(clusters) // _CLUSTERS_EACH

    async def create_policy(index: int) -> None:
        own = clusters[index * _CLUSTERS_EACH : (index + 1) * _CLUSTERS_EACH]
        await host.create(PROPAGATION_POLICIES, to_policy(f"pair-{index}", "Duplicate", own))

    async def create(index: int) -> None:
        await host.create(DEPLOYMENTS, to_workload(index, f"pair-{index % count}", options.replicas))

    await in_parallel(count, create_policy)
    await in_parallel(options.objects, create)
    async with asyncio.timeout(options.timeout):
        while True:
            settled = 0
            for state in ("applied", "silent"):
                _, text = await host.raw("GET", f"/federation/v1/objects?limit=1&state={state}", timeout_s=60)
                settled += httpx.Response(200, content=text).json()["counts"].get("all", 0)
            if settled >= options.objects:
                return
            await asyncio.sleep(2)


async def log_in(directory: Path, url: str) -> httpx.AsyncClient:
    """Return a client with the session of the administrator."""
    keys = directory / "members" / "host" / "pki"
    tls = ssl.create_default_context(cafile=str(keys / "ca.crt"))
    tls.load_cert_chain(keys / "admin.crt", keys / "admin.key")
    async with httpx.AsyncClient(verify=tls, base_url=url) as admin:
        code = (await admin.post("/ui/links")).json()["path"].partition("#")[2]
    plain = ssl.create_default_context(cafile=str(keys / "ca.crt"))
    client = httpx.AsyncClient(verify=plain, base_url=url, timeout=60, headers={"origin": url})
    answer = await client.post("/ui/link", data={"code": code})
    assert answer.status_code == 303, answer.text
    return client


async def measure(
    client: httpx.AsyncClient, paths: Sequence[str], rounds: int, cpu_s: Callable[[], float]
) -> dict[str, dict[str, float]]:
    """Return the first, the median and the longest time of each screen in seconds, its CPU, and the size of its page.

    The CPU is that of the control plane meanwhile, without what it uses at rest; on a busy machine the times mean little.
    """
    cpu, began = cpu_s(), time.perf_counter()
    await asyncio.sleep(10)
    at_rest = (cpu_s() - cpu) / (time.perf_counter() - began)
    found = {}
    for path in paths:
        times, size = [], 0
        cpu, start = cpu_s(), time.perf_counter()
        for _ in range(rounds):
            began = time.perf_counter()
            answer = await client.get(path)
            times.append(time.perf_counter() - began)
            size = len(answer.content)
            if answer.status_code != 200:
                raise SystemExit(f"benchmark: {path} answered {answer.status_code}: {answer.text[:300]}")
        later = times[1:] or times
        used = max(0.0, cpu_s() - cpu - at_rest * (time.perf_counter() - start)) / rounds
        found[path] = {"first": times[0], "p50": statistics.median(later), "max": max(later), "cpu": used}
        found[path]["kB"] = size / 1e3
    return found


async def measure_browser(client: httpx.AsyncClient, url: str, paths: Sequence[str]) -> Mapping[str, float]:
    """Return the time until each page is ready for input in Chromium, in seconds."""
    from playwright.async_api import async_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    found = {}
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = await browser.new_context(ignore_https_errors=True)
        await context.add_cookies([{"name": key, "value": value, "url": url} for key, value in client.cookies.items()])
        page = await context.new_page()
        for path in (paths[0], *paths):  # the first one also fetches scripts and styles
            await page.goto(url + path, wait_until="domcontentloaded")
            found[path] = float(await page.evaluate(_INTERACTIVE)) / 1000
        await browser.close()
    return found


async def run(options: argparse.Namespace, directory: Path) -> dict[str, Any]:
    async with running_fleet(options, directory / "members") as fleet:
        results: dict[str, Any] = await fleet.join(options)
        began = time.monotonic()
        await propagate(fleet, options)
        results["propagated_s"] = round(time.monotonic() - began, 1)
        print(f"joined in {results['join_s']} s, propagated in {results['propagated_s']} s", flush=True)
        url = fleet.host.connection.server
        client = await log_in(directory, url)
        paths = addresses(fleet.clusters[0])
        timed = await measure(client, paths, options.rounds, lambda: fleet.sampler.cpu_s("control"))
        interactive = await measure_browser(client, url, paths) if options.browser else {}
        await client.aclose()
    print(f"{'screen':64}{'first':>9}{'p50':>9}{'max':>9}{'CPU':>9}{'kB':>7}{'browser':>9}")
    for path, times in timed.items():
        late = times["p50"] > GOAL_S or interactive.get(path, 0) > GOAL_INTERACTIVE_S
        columns = (
            "".join(f"{times[key] * 1000:7.0f}ms" for key in ("first", "p50", "max", "cpu")) + f"{times['kB']:7.0f}"
        )
        shown = f"{interactive[path] * 1000:7.0f}ms" if path in interactive else ""
        print(f"{path[:63]:64}{columns}{shown}{'  OVER' if late else ''}")
        results[path] = round(times["p50"], 4)
    return results | {"over_goal": sum(times["p50"] > GOAL_S for times in timed.values())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=1000)
    parser.add_argument("--member-processes", type=int, default=2, help="processes that share the members")
    parser.add_argument("--objects", type=int, default=5000)
    parser.add_argument("--replicas", type=int, default=1, help="of each Deployment in each of its two members")
    parser.add_argument("--rounds", type=int, default=5, help="requests for each screen; the first is shown apart")
    parser.add_argument("--browser", action="store_true", help="also open each screen in Chromium")
    parser.add_argument("--timeout", type=float, default=900)
    parser.add_argument("--dir", type=Path, help="directory in which to keep the state")
    parser.add_argument("--profile", type=Path, help="an existing folder for a CPU profile of the control plane")
    options = parser.parse_args()
    options.deployments = options.objects
    conduct("screens", run, options, {"objects": options.objects})


if __name__ == "__main__":
    main()
