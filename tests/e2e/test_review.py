"""The pipelines in examples/review: their commands run in a Git repository, as a user who may only read and plan."""

import base64
import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import yaml

from tests.support.federation import BIN, Federation, eventually
from tests.support.shared import new_namespace
from tests.support.sources import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.slow("real processes of git and fedctl")]
EXAMPLES = ROOT / "examples" / "review"
EQUALLY = [{"cluster": f"member-{number}", "preferences": {"weight": 1}} for number in (1, 2, 3)]
MARKER = "<!-- fedctl review -->"


@dataclass(frozen=True)
class Project:
    """A repository with a change of a Deployment that runs, and the account of a reviewer."""

    fed: Federation
    namespace: str
    folder: Path
    reviewer: Path

    def bash(self, script: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        variables = {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(self.folder), **environment}
        return subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", script],
            cwd=self.folder,
            env=variables,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def git(self, *arguments: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        subprocess.run(["git", *identity, *arguments], cwd=self.folder, check=True, capture_output=True)

    def change(self, **spec: Any) -> None:
        """Commit a change of the Deployment."""
        path = self.folder / "deploy" / "web.yaml"
        documents = list(yaml.safe_load_all(path.read_text()))
        documents[0]["spec"] |= spec
        path.write_text(yaml.safe_dump_all(documents))
        self.git("commit", "-qam", "change")


@pytest.fixture
def project(shared_federation: Federation, tmp_path: Path) -> Project:
    fed, folder = shared_federation, tmp_path / "repository"
    namespace = new_namespace(fed, "review")
    (folder / "deploy").mkdir(parents=True)
    for path in (ROOT / "examples" / "gitops" / "shop").iterdir():
        text = path.read_text().replace("namespace: shop", f"namespace: {namespace}")
        # Without weights the free capacity decides, and other tests change that between review and application.
        text = text.replace(
            "  schedulingMode: Divide\n", f"  schedulingMode: Divide\n  placement: {json.dumps(EQUALLY)}\n"
        )
        (folder / "deploy" / path.name).write_text(text)
    account = (EXAMPLES / "reviewer.yaml").read_text()
    account = account.replace("namespace: shop", f"namespace: {namespace}").replace("name: shop", f"name: {namespace}")
    (tmp_path / "account.yaml").write_text(account)
    kubectl = fed.kubectl
    kubectl("apply", "-f", str(tmp_path / "account.yaml"))
    kubectl("apply", "--server-side", "-f", str(folder / "deploy"))
    eventually(lambda: available(fed, namespace), lambda count: count == 6, what="web is available")
    reviewer = write_kubeconfig(fed, namespace, "reviewer", tmp_path)
    found = Project(fed, namespace, folder, reviewer)
    found.git("init", "-q", "-b", "main")
    found.git("add", "-A")
    found.git("commit", "-qm", "as it runs")
    found.git("update-ref", "refs/remotes/origin/main", "main")
    found.git("checkout", "-q", "-b", "change")
    found.change(replicas=9)
    return found


def write_kubeconfig(fed: Federation, namespace: str, account: str, folder: Path) -> Path:
    """Write the kubeconfig of a service account whose token is in the Secret `ACCOUNT-token`."""
    token = eventually(
        lambda: fed.api(namespace).get("secrets", f"{account}-token").get("data", {}).get("token"), bool, what="a token"
    )
    config = yaml.safe_load(fed.kubectl.kubeconfig.read_text())
    config["users"] = [{"name": config["users"][0]["name"], "user": {"token": base64.b64decode(token).decode()}}]
    config["contexts"][0]["context"]["namespace"] = namespace
    path = folder / f"{account}.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


def available(fed: Federation, namespace: str) -> int:
    return int((fed.api(namespace).get("deployments", "web").get("status") or {}).get("availableReplicas") or 0)


@contextmanager
def forge() -> Iterator[tuple[str, list[tuple[str, dict[str, str], str]]]]:
    """Serve the API of a forge that records requests: path, headers and body."""
    received: list[tuple[str, dict[str, str], str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            received.append((self.path, {key.lower(): value for key, value in self.headers.items()}, body))
            self.send_response(201)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def steps_of(name: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the variables of the job in a workflow, and the commands of its steps by name."""
    job = yaml.safe_load((EXAMPLES / name).read_text())["jobs"]["review"]
    return job["env"], {step["name"]: step["run"] for step in job["steps"] if "run" in step}


@pytest.mark.parametrize("name", ["github.yaml", "gitea.yaml"])
def test_a_workflow_comments_and_saves_a_plan_that_is_applied(name: str, project: Project) -> None:
    variables, steps = steps_of(name)
    values = {
        "github.base_ref": "main",
        "github.repository": "shop/web",
        "github.event.pull_request.number": "7",
        "github.token": "token-of-the-job",
        "secrets.REVIEWER_KUBECONFIG": project.reviewer.read_text(),
    }
    with forge() as (url, received):
        values["github.server_url"] = url

        def filled(text: str) -> str:
            return re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda found: values[found[1]], text)

        environment = {key: filled(value) for key, value in variables.items()}
        done = project.bash(filled(steps["review"]), **environment)
        assert done.returncode == 0, done.stderr
        comment = (project.folder / "comment.md").read_text()
        assert comment.startswith(MARKER)
        assert "**Passes.**" in comment
        assert "`shop/web#7`" in comment
        assert "`member-1` 2 → 3" in comment
        if name == "gitea.yaml":
            posted = project.bash(filled(steps["comment"]), **environment)
            assert posted.returncode == 0, posted.stderr
            ((path, headers, body),) = received
            assert path == "/api/v1/repos/shop/web/issues/7/comments"
            assert headers["authorization"] == "token token-of-the-job"
            assert json.loads(body)["body"] == comment
    # The reviewer may not apply it; an administrator does, and `why` names the change.
    refused = project.bash("fedctl apply-plan change.plan", KUBECONFIG=str(project.reviewer))
    assert refused.returncode == 1
    assert "cannot patch" in refused.stderr, refused.stderr
    admin = {"KUBECONFIG": str(project.fed.kubectl.kubeconfig)}
    applied = project.bash("fedctl apply-plan change.plan", **admin)
    assert applied.returncode == 0, applied.stdout + applied.stderr
    assert "as planned: deployment/web" in applied.stdout
    why = project.bash(f"fedctl why deployment/web -n {project.namespace}", **admin)
    assert "shop/web#7, of Deployment web" in why.stdout
    again = project.bash("fedctl apply-plan change.plan", **admin)
    assert again.returncode == 1
    assert "Deployment web" in again.stdout
    assert "nothing was applied" in again.stdout


def test_a_role_in_a_namespace_applies_what_was_reviewed_or_is_told_why_not(project: Project) -> None:
    fed, namespace = project.fed, project.namespace
    account = (ROOT / "examples" / "gitops" / "account.yaml").read_text()
    account = account.replace("namespace: shop", f"namespace: {namespace}").replace("name: shop", f"name: {namespace}")
    (project.folder / "account.yaml").write_text(account)
    fed.kubectl("apply", "-f", str(project.folder / "account.yaml"))
    deployer = {"KUBECONFIG": str(write_kubeconfig(fed, namespace, "deployer", project.folder))}
    review = f"fedctl --kubeconfig {project.reviewer} review --base main --out change.plan deploy"
    assert project.bash(review).returncode == 0
    # Somebody scales meanwhile: the plan is not that any more.
    fed.kubectl("scale", "deployment/web", "-n", namespace, "--replicas=4")
    stale = project.bash("fedctl apply-plan change.plan", **deployer)
    assert stale.returncode == 1, stale.stdout + stale.stderr
    assert f"Deployment web in {namespace} has changed" in stale.stdout
    assert fed.api(namespace).get("deployments", "web")["spec"]["replicas"] == 4
    assert project.bash(review).returncode == 0
    # A file that says another result than that of its writes is refused, whoever wrote it.
    saved = json.loads((project.folder / "change.plan").read_text())
    saved["expected"][0]["clusters"]["member-1"]["replicas"] += 1
    (project.folder / "forged.plan").write_text(json.dumps(saved))
    forged = project.bash("fedctl apply-plan forged.plan", **deployer)
    assert forged.returncode == 1
    assert "would have another result: member-1 3 instead of 4" in forged.stdout, forged.stdout + forged.stderr
    applied = project.bash("fedctl apply-plan change.plan", **deployer)
    assert applied.returncode == 0, applied.stdout + applied.stderr
    assert fed.api(namespace).get("deployments", "web")["spec"]["replicas"] == 9


def test_gitlab_posts_a_note(project: Project) -> None:
    job = yaml.safe_load((EXAMPLES / "gitlab-ci.yml").read_text())["review"]
    with forge() as (url, received):
        environment = {
            **job["variables"],
            "REVIEWER_KUBECONFIG": str(project.reviewer),
            "CI_MERGE_REQUEST_DIFF_BASE_SHA": "main",
            "CI_PROJECT_PATH": "shop/web",
            "CI_PROJECT_ID": "3",
            "CI_MERGE_REQUEST_IID": "7",
            "CI_API_V4_URL": f"{url}/api/v4",
            "NOTES_TOKEN": "token",
        }
        done = project.bash("\n".join(job["script"]), **environment)
        assert done.returncode == 0, done.stderr
        posted = project.bash("\n".join(job["after_script"]), **environment)
        assert posted.returncode == 0, posted.stderr
        ((path, headers, body),) = received
    assert path == "/api/v4/projects/3/merge_requests/7/notes"
    assert headers["private-token"] == "token"
    (note,) = parse_qs(body)["body"]
    assert note == (project.folder / "comment.md").read_text()
    assert "`shop/web!7`" in note


def test_hooks_of_argo_cd_compare_git_with_what_runs(project: Project) -> None:
    before, after = (
        each["spec"]["template"]["spec"]["containers"][0]
        for each in yaml.safe_load_all((EXAMPLES / "argocd-hooks.yaml").read_text())
    )

    def local(text: str) -> str:
        paths = {"/checkout/repository": str(project.folder), "/checkout": str(project.folder.parent / "checkout")}
        text = text.replace("/reviewer/kubeconfig", str(project.reviewer)).replace("-n shop", f"-n {project.namespace}")
        for path, own in paths.items():
            text = text.replace(f"{path}/", f"{own}/")
        return text

    (script,) = before["args"]
    done = project.bash(local(script))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "`member-1` 2 → 3" in done.stdout
    assert "`service/web`" not in done.stdout.partition("**Stays as it is**")[0]  # it runs as Git has it
    # A change that fits nowhere stops the synchronisation.
    project.change(replicas=100_000)
    stopped = project.bash(local(script))
    assert stopped.returncode == 1, stopped.stdout + stopped.stderr
    assert "unplaced" in stopped.stdout
    arrived = project.bash(local(" ".join(after["command"])))
    assert arrived.returncode == 0, arrived.stdout + arrived.stderr


def test_flux_names_an_annotation_that_is_ours_and_waits_for_the_review() -> None:
    first, second = yaml.safe_load_all((EXAMPLES / "flux.yaml").read_text())
    assert second["spec"]["dependsOn"] == [{"name": first["metadata"]["name"]}]
    assert first["spec"]["wait"]
    assert list(second["spec"]["commonMetadata"]["annotations"]) == ["federation.kubeadmiral.io/change"]
