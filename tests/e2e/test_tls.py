"""`fedctl serve` with names, a URL and a certificate of the user's; `fedctl certs` and `fedctl ready`."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from federation.apiserver.auth.pki import Authority, load_certificate, names_of
from tests.support.federation import Federation, fedctl, start_serve

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow("servers with certificates of their own"),
    pytest.mark.xdist_group("tls"),
]


def issue(folder: Path, *names: str, age: timedelta = timedelta(0)) -> None:
    """Write ca.crt, tls.crt and tls.key, as in the Secrets of cert-manager."""
    folder.mkdir(exist_ok=True)
    now = datetime.now(UTC) - age
    authority = Authority.ensure(folder, now=now, common_name="company")
    authority.issue_server(folder / "tls.crt", folder / "tls.key", names=names, now=now)


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("company")
    issue(folder, "fed.example.com", age=timedelta(days=360))
    return folder


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory, company: Path) -> Iterator[Federation]:
    """A control plane with a certificate of the company's CA, which ends in five days."""
    files = [f"--tls-{name}-file={company / file}" for name, file in (("cert", "tls.crt"), ("key", "tls.key"))]
    directory = tmp_path_factory.mktemp("given") / "state"
    with closing(start_serve(directory, arguments=[*files, f"--tls-ca-file={company / 'ca.crt'}"])) as server:
        yield server


def test_kubectl_verifies_a_given_certificate(given: Federation, company: Path) -> None:
    cluster = yaml.safe_load(given.kubectl.kubeconfig.read_text())["clusters"][0]["cluster"]
    assert cluster["tls-server-name"] == "fed.example.com"
    who = given.kubectl.json("auth", "whoami")
    assert who["status"]["userInfo"]["username"] == "federation-admin"
    published = given.kubectl("get", "configmap", "kube-root-ca.crt", "-o", r"jsonpath={.data.ca\.crt}")
    assert published.strip() == (company / "ca.crt").read_text().strip()


def test_certs_lists_what_expires_and_fails_when_it_is_soon(given: Federation) -> None:
    soon = fedctl("certs", "--dir", str(given.directory), check=False)
    assert soon.returncode == 1, soon.stderr
    rows = {line.split("  ")[0]: line for line in soon.stdout.splitlines()}
    assert "expires soon" in rows["serving"]
    assert "fed.example.com" in rows["serving"]
    assert all(" ok " in rows[name] for name in ("serving CA", "client", "pki/ca", "pki/admin", "pki/front-proxy/ca"))
    later = fedctl("certs", "--within-days", "3", "-o", "json", KUBECONFIG=str(given.kubectl.kubeconfig))
    found = {each["name"]: each for each in json.loads(later.stdout)}
    assert found["serving"]["state"] == "ok"
    assert found["client"]["subject"] == "CN=federation-admin,O=system:masters"
    assert "pki/ca" not in found, "files are listed with --dir only"


def test_ready_prints_the_checks(given: Federation) -> None:
    done = fedctl("ready", KUBECONFIG=str(given.kubectl.kubeconfig))
    assert done.stdout.splitlines()[-1] == "readyz check passed"
    found = re.search(r"https://\S+:\d+", given.ready_line)
    assert found
    assert fedctl("ready", "--server", found[0]).stdout == done.stdout


def test_commands_name_a_server_that_does_not_answer() -> None:
    for command in ("ready", "certs"):
        options = ("--server", "https://127.0.0.1:9") if command == "ready" else ()
        done = fedctl(command, *options, check=False, KUBECONFIG="/nowhere")
        assert done.returncode == 1
        assert len(done.stderr.splitlines()) == 1, done.stderr
    assert "http" in fedctl("ready", "--server", "127.0.0.1", check=False).stderr


def test_the_own_certificate_has_the_names_and_the_kubeconfig_the_url(tmp_path: Path) -> None:
    arguments = ["--tls-san=*.fed.example.com", "--tls-san=203.0.113.7", "--advertise-url=https://api.example.com:8443"]
    with closing(start_serve(tmp_path / "state", arguments=arguments)) as server:
        assert server.ready_line.startswith("ready https://api.example.com:8443; ")
        cluster = yaml.safe_load(server.kubectl.kubeconfig.read_text())["clusters"][0]["cluster"]
        assert cluster["server"] == "https://api.example.com:8443"
    names = names_of(load_certificate(tmp_path / "state" / "pki" / "server.crt"))
    assert {"*.fed.example.com", "203.0.113.7", "api.example.com"} <= set(names)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tls-cert-file", "tls.crt"], "tls-cert-file and tls-key-file belong together; give both or neither"),
        (["--tls-san", "a b"], "tls-san: 'a b' is neither a DNS name nor an IP address"),
        (["--advertise-url", "fed.example.com"], "advertise-url: 'fed.example.com' is not of the form"),
    ],
)
def test_a_wrong_option_is_one_line(tmp_path: Path, arguments: list[str], message: str) -> None:
    done = fedctl("serve", "--dir", str(tmp_path / "state"), *arguments, check=False)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert message in line
