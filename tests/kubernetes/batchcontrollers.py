"""The controllers of JobSet and Kueue, built from their Go modules, against a real cluster, with their webhooks.

A webhook is called at an address of this machine: nothing runs in pods here.
"""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from tests.kubernetes.build import JOB_SET, KUEUE, definitions_of
from tests.kubernetes.cluster import Cluster, Process, free_port

Manifest = dict[str, Any]


def definitions(name: str) -> list[Manifest]:
    """Return the CustomResourceDefinitions of a project, with the stored version only: no webhook converts."""
    found = []
    for path in sorted(definitions_of(name).glob("*.yaml")):
        definition = yaml.safe_load(path.read_text())
        definition["spec"].pop("conversion", None)
        definition["spec"]["versions"] = [each for each in definition["spec"]["versions"] if each["storage"]]
        found.append(definition)
    return found


def webhooks(name: str, cluster: Cluster, port: int, *paths: str) -> list[Manifest]:
    """Return the project's webhook configurations for a server at this port, with the webhooks at `paths` only."""
    bundle = base64.b64encode(cluster.pki.ca_certificate.read_bytes()).decode()
    text = (definitions_of(name).parents[1] / "webhook" / "manifests.yaml").read_text()
    found = []
    for configuration in yaml.safe_load_all(text):
        chosen = [each for each in configuration["webhooks"] if each["clientConfig"]["service"]["path"] in paths]
        for each in chosen:
            path = each["clientConfig"]["service"]["path"]
            each["clientConfig"] = {"url": f"https://127.0.0.1:{port}{path}", "caBundle": bundle}
        if chosen:
            metadata = {"name": f"{name}-{configuration['metadata']['name']}"}
            found.append({**configuration, "metadata": metadata, "webhooks": chosen})
    return found


def install(cluster: Cluster, *manifests: Manifest) -> None:
    """Apply manifests as the cluster's administrator; definitions are established afterwards."""
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(manifests))
    cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")


@contextmanager
def job_set_on(program: Path, cluster: Cluster) -> Iterator[None]:
    """Run JobSet's controller and webhooks against a cluster that has its definition, during the block."""
    folder, port = cluster.directory / JOB_SET, free_port()
    config = {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "internalCertManagement": {"enable": False},
        "leaderElection": {"leaderElect": False},
        "webhook": {"port": port, "certDir": str(_certificates(folder, cluster))},
        "metrics": {"bindAddress": f"127.0.0.1:{free_port()}", "certDir": str(folder / "certificates")},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{free_port()}"},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    command = ["env", f"KUBECONFIG={cluster.kubeconfig}", program, f"--config={folder / 'config.yaml'}"]
    paths = [f"/{verb}-jobset-x-k8s-io-v1alpha2-jobset" for verb in ("mutate", "validate")]
    process = Process(folder, command)
    try:
        install(cluster, *webhooks(JOB_SET, cluster, port, *paths))
        yield
        process.check()
    finally:
        process.close()


@contextmanager
def kueue_on(program: Path, cluster: Cluster, *, with_webhook: bool = False, **configuration: Any) -> Iterator[None]:
    """Run Kueue against a cluster during the block; with the webhook, it suspends Jobs that name a queue.

    It reads its metrics' certificate from a fixed path below /etc: a folder of ours is mounted there, for it alone.
    """
    folder, port = cluster.directory / KUEUE, free_port()
    certificates = _certificates(folder / "etc" / "kueue" / "metrics", cluster, "certs")
    config = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": "kueue-system",
        "health": {"healthProbeBindAddress": f"127.0.0.1:{free_port()}"},
        "metrics": {"bindAddress": f"127.0.0.1:{free_port()}"},
        "webhook": {"port": port, "certDir": str(certificates)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "integrations": {"frameworks": ["batch/job"]},
        "featureGates": {"VisibilityOnDemand": False},  # an aggregated API, which needs certificates of its own
        **configuration,
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    command = f"mount --bind {folder / 'etc'} /etc && exec {program} --config={folder / 'config.yaml'}"
    arguments = ["env", f"KUBECONFIG={cluster.kubeconfig}", "unshare", "-rm", "sh", "-c", command]
    arguments[-1] += " --zap-log-level=3"
    process = Process(folder, arguments)
    try:
        if with_webhook:
            install(cluster, *webhooks(KUEUE, cluster, port, "/mutate-batch-v1-job"))
        yield
        process.check()
    finally:
        process.close()


def _certificates(folder: Path, cluster: Cluster, name: str = "certificates") -> Path:
    """Return a folder with a serving certificate for this machine, as controllers read it."""
    found = folder / name
    found.mkdir(parents=True)
    for file, source in (("tls.crt", cluster.pki.serving.certificate), ("tls.key", cluster.pki.serving.key)):
        (found / file).write_bytes(source.read_bytes())
    return found
