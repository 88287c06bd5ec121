"""Take the pictures in docs/ui again.

    make pictures                                         every screen: light, dark, wide and on a phone
    .venv/bin/python -m tools.pictures graph map --look mobile
    .venv/bin/python -m tools.pictures --fleet DIR        on the fleet that runs there, for work on screens

It needs Chromium, and Pillow to reduce colours, which `make pictures` installs. The fleet is that of
`tools/picturefleet.py`. A screen that cannot be opened is named, and the exit code is 1. Look at each picture before
it is committed: a picture can be taken of a page that is wrong.
"""

import argparse
import io
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias

from playwright.sync_api import Error, Page, sync_playwright
from tests.browser.pages import CHROMIUM, OBJECT
from tests.support.federation import Kubectl, fedctl

from tools.picturefleet import ROOT, running_fleet

try:
    from PIL import Image  # it is not among the packages of the tests
except ImportError:
    sys.exit(f"error: Pillow is missing: {sys.executable} -m pip install pillow")

OUTPUT = ROOT / "docs" / "ui"
HEIGHT, COLOURS = 1100, 128
"""Longer pages are cut. Few colours make small files: 36 kB on average."""
_PATIENCE_MS = 120_000
"""For one step; a machine with other work is slow."""
Opener: TypeAlias = Callable[[Page, str], object]
LOOKS: Mapping[str, tuple[Literal["light", "dark"], int, int]] = {
    "light": ("light", 1280, 860),
    "dark": ("dark", 1280, 860),
    "wide": ("light", 1920, 1080),
    "mobile": ("light", 390, 844),
}
POLICY = """apiVersion: core.kubeadmiral.io/v1alpha1
kind: PropagationPolicy
metadata: {name: divide-nginx, namespace: default}
spec:
  schedulingMode: Divide
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {app: nginx}}}]
"""


def address(path: str) -> Opener:
    """Return the opener of a page that needs no input; it waits until the page is live."""

    def open_it(page: Page, url: str) -> None:
        answer = page.goto(url + path)
        if answer is None or answer.status != 200:
            raise Error(f"{path} answers {answer and answer.status}")
        if page.locator("[data-live]").count():
            page.wait_for_selector("#live-state[data-state=on]")

    return open_it


def following(path: str, selector: str, *views: str) -> Opener:
    """Return the opener of the page behind a link of another page, and of one of its views."""

    def open_it(page: Page, url: str) -> None:
        page.goto(url + path)
        page.locator(selector).first.click()
        for view in views:
            page.get_by_role("navigation", name="Views").get_by_role("link", name=view).click()
        page.wait_for_load_state()

    return open_it


def drain_plan(page: Page, url: str) -> None:
    page.goto(f"{url}/ui/plan?cluster=member-2&action=drain")
    page.get_by_role("button", name="Show the plan").click()
    page.locator(".outcome").first.wait_for()


def new_policy(page: Page, url: str) -> None:
    page.goto(f"{url}/ui/newpolicy")
    page.get_by_label("Name", exact=True).fill("everything-blue")
    page.get_by_label("With these labels; empty").fill("app=web")
    page.get_by_role("button", name="Show what it does").click()
    page.get_by_role("heading", name="Create it").wait_for()


def new_cluster(page: Page, url: str) -> None:
    page.goto(f"{url}/ui/addcluster")
    page.get_by_label("Name of the cluster").fill("paris")
    page.get_by_label("Labels, for").fill("region=eu")
    page.get_by_role("button", name="Make a token").click()
    page.locator("#command").wait_for()


def scale_form(page: Page, url: str) -> None:
    page.goto(f"{url}/ui/act/scale/apps/v1/deployments/default/nginx")
    page.get_by_label("Replicas").fill("12")
    page.get_by_role("button", name="Show what happens").click()
    page.get_by_role("heading", name="What happens").wait_for()


def several(page: Page, url: str) -> None:
    page.goto(f"{url}/ui/objects?namespace=shop&kind=Deployment")
    for box in page.locator("td.pick input").all()[:4]:
        box.check()
    page.get_by_role("button", name="Restart").click()
    page.wait_for_load_state()


def shell(page: Page, url: str) -> None:
    following(OBJECT, ".pods a", "Terminal")(page, url)
    page.get_by_role("button", name="Open").click()
    page.get_by_text("Connected.").wait_for()
    for line, answer in (("hostname", "nginx-"), ("echo hello", "hello"), ("nosuch", "not found")):
        page.keyboard.type(line + "\n")
        page.locator(".xterm-rows > div", has_text=answer).last.wait_for()


def replay(page: Page, url: str) -> None:
    page.goto(f"{url}/ui/replay")
    page.locator("#manifests").fill(POLICY)
    page.get_by_role("button", name="Replay").click(no_wait_after=True)
    page.locator("#result").wait_for()


SCREENS: Mapping[str, Opener] = {
    "addcluster": new_cluster,
    "attention": address("/ui/attention"),
    "bulk": several,
    "capacity": address("/ui/capacity"),
    "cluster": address("/ui/fleet/member-1"),
    "decision": address("/ui/decisions/apps/Deployment/default/nginx"),
    "decisions": address("/ui/decisions"),
    "diff": address(f"{OBJECT}/diff"),
    "fleet": address("/ui/fleet"),
    "graph": address(f"{OBJECT}/graph"),
    "hold": following("/ui/attention", "a[href*='/ui/holds/']"),
    "logs": address(f"{OBJECT}/logs"),
    "loss": address("/ui/capacity?without=member-2"),
    "map": address("/ui/map"),
    "namespaces": address("/ui/namespaces"),
    "newpolicy": new_policy,
    "object": address(OBJECT),
    "objects": address("/ui/objects"),
    "overview": address("/ui/overview"),
    "plan": drain_plan,
    "pod": following(OBJECT, ".pods a", "Logs"),
    "policies": address("/ui/policies"),
    "policy": address("/ui/objects/core.kubeadmiral.io/v1alpha1/propagationpolicies/default/divide-nginx"),
    "policychange": address("/ui/objects/core.kubeadmiral.io/v1alpha1/propagationpolicies/settings/settings"),
    "projects": address("/ui/projects"),
    "queue": address("/ui/queues/default/team"),
    "queues": address("/ui/queues"),
    "replay": replay,
    "rollout": following("/ui/rollouts", "tbody th a"),
    "rollouts": address("/ui/rollouts"),
    "rules": address("/ui/rules"),
    "scale": scale_form,
    "search": address("/ui/search?q=web"),
    "terminal": shell,
    "timeline": address("/ui/timeline"),
    "login": address("/ui/login"),
}
"""The last one is opened without the session of the others."""


def take(kubeconfig: Path, screens: Sequence[str], looks: Sequence[str], output: Path) -> list[str]:
    """Take the pictures of screens in some looks, and return what went wrong."""
    kubectl = Kubectl(kubeconfig)
    url = kubectl("config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")
    failed = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context, stranger = (browser.new_context(ignore_https_errors=True) for _ in range(2))
        for each in (context, stranger):
            each.set_default_timeout(_PATIENCE_MS)
        user, anonymous = context.new_page(), stranger.new_page()
        user.goto(fedctl("ui", "--kubeconfig", str(kubeconfig)).stdout.splitlines()[0])
        user.get_by_role("button", name="Continue").click()
        user.wait_for_url("**/ui/overview")
        for name in screens:
            page = anonymous if name == "login" else user
            try:
                show(page, "light")
                SCREENS[name](page, url)
                for look in looks:
                    show(page, look)
                    save(page.screenshot(full_page=True), output / f"{name}-{look}.png")
                sys.stdout.write(f"{name}\n")
                sys.stdout.flush()
            except Error as error:
                failed.append(f"{name}: {error.message.splitlines()[0]}")
        browser.close()
    return failed


def show(page: Page, look: str) -> None:
    """Show a page in a look; without reduced motion, colours would be on their way when it is taken."""
    scheme, width, height = LOOKS[look]
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": height})
    page.evaluate("window.scrollTo(0, 0)")


def save(picture: bytes, file: Path) -> None:
    """Write a picture with the most frequent of its colours; others become the nearest of those."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image = image.crop((0, 0, image.width, min(image.height, HEIGHT)))
    frequent = sorted(image.getcolors(image.width * image.height), reverse=True)[:COLOURS]
    values = [value for _, colour in frequent for value in colour]
    palette = Image.new("P", (1, 1))
    palette.putpalette(values + values[:3] * (256 - len(frequent)))
    image.quantize(palette=palette, dither=Image.Dither.NONE).save(file, optimize=True)


@contextmanager
def fleet(directory: Path | None) -> Iterator[Path]:
    """Yield the kubeconfig of the fleet that runs in a folder, or of a new one that ends with the pictures."""
    if directory is not None:
        yield directory / "kubeconfig"
        return
    with tempfile.TemporaryDirectory() as folder, running_fleet(Path(folder) / "fleet") as running:
        yield running.kubectl.kubeconfig


def main(arguments: Sequence[str]) -> int:
    """Take the pictures; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("screens", nargs="*", metavar="SCREEN", help=f"{', '.join(SCREENS)}; default: all")
    parser.add_argument("--look", action="append", choices=list(LOOKS), help="default: all")
    parser.add_argument("--fleet", type=Path, metavar="DIR", help="the folder of a fleet that runs")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="DIR")
    options = parser.parse_args(arguments)
    if unknown := set(options.screens) - set(SCREENS):
        parser.error(f"no such screen: {', '.join(sorted(unknown))}")
    options.output.mkdir(parents=True, exist_ok=True)
    with fleet(options.fleet) as kubeconfig:
        failed = take(kubeconfig, options.screens or list(SCREENS), options.look or list(LOOKS), options.output)
    sys.stderr.writelines(f"{line}\n" for line in failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
