"""Commands of `fedctl` about one federation that runs: `render`, `diff`, `import`, `adopt`, `holds`, `approve`, `undo`."""

import json
import subprocess
from datetime import UTC, datetime

import orjson
import pytest
import yaml

from federation.api import names
from federation.apimachinery.resources import Object
from federation.planning.federatedobject.imported import adoption_annotations
from federation.planning.typederivation import custom_config
from tests.support.federation import Federation, Kubectl, eventually, fedctl
from tests.support.manifests import a_deployment, a_policy, an_override
from tests.support.shared import new_namespace

pytestmark = [pytest.mark.e2e, pytest.mark.slow("fedctl on a federation"), pytest.mark.xdist_group("shared")]


@pytest.fixture
def fed(shared_federation: Federation) -> Federation:
    """The federation that others use, too."""
    return shared_federation


def attempt(fed: Federation, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return fedctl(*arguments, check=False, KUBECONFIG=str(fed.kubectl.kubeconfig))


def run(fed: Federation, *arguments: str, code: int = 0) -> str:
    done = attempt(fed, *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def within(namespace: str, *manifests: Object) -> list[Object]:
    return [{**each, "metadata": {**each["metadata"], "namespace": namespace}} for each in manifests]


def test_render_and_diff_show_what_is_applied_and_what_a_member_changed(fed: Federation) -> None:
    image, namespace = "/spec/template/spec/containers/0/image", new_namespace(fed, "rendered")
    here = ("-n", namespace)
    fed.kubectl.apply(
        *within(
            namespace,
            a_policy({"member-1": 1, "member-2": 1}),
            an_override("member-2", image, "nginx:1"),
            a_deployment("web", replicas=4),
        )
    )
    eventually(
        lambda: attempt(fed, "diff", "deploy/web", *here).returncode,
        lambda code: code == 0,
        what="members without a difference",
    )
    manifest = yaml.safe_load(run(fed, "render", "deployment/web", *here, "--cluster", "member-2"))
    assert manifest["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:1"
    assert manifest["spec"]["replicas"] == 2
    assert json.loads(run(fed, "render", "deploy", "web", *here, "--cluster", "member-2", "-o", "json")) == manifest
    assert "is not placed in member-3; it is in member-1, member-2" in run(
        fed, "render", "deploy/web", *here, "--cluster", "member-3", code=1
    )
    # A change by hand is repaired at once, except where the member's administrator takes the object over.
    fed.member("member-1")("label", "deploy", "web", *here, "kubeadmiral.io/managed=false", "--overwrite")
    fed.kubectl("scale", "deploy", "web", *here, "--replicas=6")
    printed = eventually(
        lambda: attempt(fed, "diff", "deploy/web", *here).stdout,
        lambda seen: "ManagedLabelFalse" in seen and "member-2" not in seen,
        what="the difference in member-1",
    )
    assert printed.startswith("member-1\n")
    assert "+  replicas: 3" in printed
    run(fed, "diff", "deploy/web", *here, code=1)
    run(fed, "diff", "deploy/web", *here, "--cluster", "member-2")
    assert "\033[" not in printed, "colours are for terminals"
    assert '"other" not found' in run(fed, "diff", "deploy/other", *here, code=2)


def pods_of(fed: Federation, member: str, namespace: str) -> set[str]:
    items = fed.api(namespace, member=member).list("pods")["items"]
    return {item["metadata"]["uid"] for item in items if item.get("status", {}).get("phase") == "Running"}


def running_in(fed: Federation, member: str, namespace: str, *names: str) -> set[str]:
    """Create a namespace everywhere and Deployments in one member; return the uids of their two pods each."""
    fed.kubectl("create", "namespace", namespace)
    there = fed.api(namespace, member=member)
    eventually(lambda: there.find("namespaces", namespace), bool, what="the namespace in the member")
    for deployment in within(namespace, *(a_deployment(name, replicas=2, team="shop") for name in names)):
        there.create("deployments", deployment)
    return eventually(lambda: pods_of(fed, member, namespace), lambda seen: len(seen) == 2 * len(names))


def test_workloads_of_a_member_are_imported_without_restarting_a_pod(fed: Federation) -> None:
    before = running_in(fed, "member-2", "imported", "one", "two")
    shown = run(fed, "import", "--from-cluster", "member-2", "deploy/one", "-n", "imported", "--dry-run")
    assert "only the federation's label and annotations are added" in shown
    assert fed.kubectl("get", "deploy,pp", "-n", "imported") == ""
    # An import that ended in the middle has created one of them, and not its policy.
    [half] = within("imported", a_deployment("two", replicas=2, team="shop"))
    half["metadata"]["labels"]["kubeadmiral.io/propagation-policy-name"] = "import-member-2"
    half["metadata"]["annotations"] = adoption_annotations({}, ["member-2"])
    fed.kubectl.apply(half)
    printed = run(fed, "import", "--from-cluster", "member-2", "deployment", "-l", "team=shop", "-n", "imported")
    assert "deployment/one imported from member-2" in printed
    assert "deployment/two: its import goes on" in printed
    assert "deployment/two imported from member-2" in printed
    fed.kubectl("rollout", "status", "deploy/one", "-n", "imported", "--timeout=90s")
    assert pods_of(fed, "member-2", "imported") == before
    run(fed, "diff", "deploy/one", "-n", "imported")
    source = fed.kubectl.json("get", "deploy", "one", "-n", "imported")
    assert source["metadata"]["labels"]["kubeadmiral.io/propagation-policy-name"] == "import-member-2"
    for member in ("member-1", "member-3"):
        assert fed.member(member)("get", "deploy", "-n", "imported") == ""
    again = run(fed, "import", "--from-cluster", "member-2", "deploy/one", "-n", "imported", code=1)
    assert "a federation manages it already" in again
    # What is imported is managed: a change on the host arrives.
    fed.kubectl("scale", "deploy/one", "-n", "imported", "--replicas=3")
    fed.kubectl("rollout", "status", "deploy/one", "-n", "imported", "--timeout=90s")
    eventually(lambda: len(pods_of(fed, "member-2", "imported")), lambda count: count == 5)


def test_a_namespace_is_imported_with_what_its_workloads_need_and_can_be_moved(fed: Federation) -> None:
    there = fed.member("member-2")
    there("create", "namespace", "whole")
    there("label", "namespace", "whole", "team=shop")
    there("create", "configmap", "settings", "-n", "whole", "--from-literal=a=1")
    there("create", "service", "clusterip", "web", "-n", "whole", "--tcp=80")
    there("create", "priorityclass", "gold", "--value=1000")
    there("run", "debug", "-n", "whole", "--image=busybox")
    deployment = a_deployment("web", replicas=2)
    deployment["spec"]["template"]["spec"]["volumes"] = [{"name": "s", "configMap": {"name": "settings"}}]
    deployment["spec"]["template"]["spec"]["priorityClassName"] = "gold"
    there.apply(*within("whole", deployment))
    before = eventually(lambda: pods_of(fed, "member-2", "whole"), lambda seen: len(seen) == 3)

    alone = run(fed, "import", "--from-cluster", "member-2", "deployment/web", "-n", "whole", "--dry-run")
    assert "left in member-2: service/web, which exposes deployment/web: import it with" in alone
    assert "1 object can be" in alone, "the namespace, which the host lacks, is made with it"
    shown = run(fed, "import", "--from-cluster", "member-2", "namespace/whole", "--dry-run")
    assert "left in member-2: pod/debug: it has no controller" in shown
    assert "deployment/web needs in each cluster that it moves to: PriorityClass gold" in shown
    assert "nothing was imported: --dry-run; 3 objects can be" in shown
    assert "kube-root-ca.crt" not in shown
    assert fed.kubectl("get", "namespace", "whole", "--ignore-not-found") == ""
    printed = run(fed, "import", "--from-cluster", "member-2", "namespace/whole")
    for title in ("configmap/settings", "deployment/web", "service/web"):
        assert f"{title} imported from member-2" in printed
    fed.kubectl("rollout", "status", "deploy/web", "-n", "whole", "--timeout=90s")
    assert pods_of(fed, "member-2", "whole") == before
    assert fed.kubectl.json("get", "namespace", "whole")["metadata"]["labels"]["team"] == "shop"

    patch = '{"metadata":{"labels":{"division":"anyhow"}},"spec":{"schedulingMode":"Divide","placement":null}}'
    fed.kubectl("patch", "pp", "import-member-2", "-n", "whole", "--type=merge", "-p", patch)
    refused = run(fed, "migrate", "deployment/web", "-n", "whole", "--to", "member-3", code=1)
    assert "member-3 has no PriorityClass gold, which deployment/web needs" in refused
    late = ("--leave-behind", "--timeout", "8")
    waited = run(fed, "migrate", "deployment/web", "-n", "whole", "--to", "member-3", *late, code=1)
    assert "deployment/web in whole: 0 of 2 replicas run in member-3: " in waited
    assert "no PriorityClass with name gold was found" in waited
    fed.member("member-3")("create", "priorityclass", "gold", "--value=1000")
    moved = run(fed, "migrate", "deployment/web", "-n", "whole", "--to", "member-3")
    assert "running: deployment/web in whole: 2 in member-3" in moved
    assert fed.api("whole", member="member-3").get("services", "web")["spec"]["selector"] == {"app": "web"}
    eventually(lambda: len(pods_of(fed, "member-3", "whole")), lambda count: count == 2)
    settings = eventually(lambda: fed.api("whole", member="member-3").find("configmaps", "settings"), bool)
    assert settings["data"] == {"a": "1"}
    again = run(fed, "import", "--from-cluster", "member-3", "namespace/none", code=2)
    assert "there is no namespace none in member-3" in again


def test_workloads_of_karmada_and_kubeadmiral_are_imported_once_those_are_off(fed: Federation) -> None:
    before = running_in(fed, "member-2", "moved", "from-karmada", "from-kubeadmiral")
    there = fed.member("member-2")
    there("label", "deploy", "from-karmada", "-n", "moved", "karmada.io/managed=true", "work.karmada.io/name=web-1")
    there("annotate", "deploy", "from-karmada", "-n", "moved", "resourcetemplate.karmada.io/uid=1")
    there("label", "deploy", "from-kubeadmiral", "-n", "moved", "kubeadmiral.io/managed=true")
    importing = ("import", "--from-cluster", "member-2", "-n", "moved")
    assert "Karmada delivered it" in run(fed, *importing, "deploy/from-karmada", code=1)

    # The API server of the federation stands for that of Karmada: what counts are the Leases there.
    fed.kubectl("create", "namespace", "karmada-system")
    metadata = {"name": "karmada-controller-manager", "namespace": "karmada-system"}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
    spec = {"holderIdentity": "a", "leaseDurationSeconds": 3600}
    fed.kubectl.apply({**lease, "spec": {**spec, "renewTime": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"}})
    checked = (*importing, "deploy/from-karmada", "--previous-host", str(fed.kubectl.kubeconfig))
    assert "Karmada still runs: Lease karmada-system/karmada-controller-manager" in run(fed, *checked, code=1)
    fed.kubectl.apply({**lease, "spec": {**spec, "renewTime": "2026-01-01T00:00:00.000000Z"}})
    shown = run(fed, *checked, "--dry-run")
    assert "Karmada is off: no Lease of it is renewed" in shown
    assert "only the federation's label and annotations are added" in shown
    assert "deployment/from-karmada imported from member-2" in run(fed, *checked)

    gone = (*importing, "deploy/from-kubeadmiral", "--previous-host", "gone")
    assert "deployment/from-kubeadmiral imported from member-2" in run(fed, *gone)
    assert pods_of(fed, "member-2", "moved") == before
    source = fed.kubectl.json("get", "deploy", "from-karmada", "-n", "moved")
    assert not [key for key in (*source["metadata"]["labels"], *source["metadata"]["annotations"]) if "karmada" in key]


def test_an_import_that_would_restart_pods_is_refused(fed: Federation) -> None:
    before = running_in(fed, "member-1", "refused", "web")
    image = an_override("member-1", "/spec/template/spec/containers/0/image", "nginx:2")
    image["metadata"]["namespace"] = "refused"
    fed.kubectl.apply(image)
    refused = run(fed, "import", "--from-cluster", "member-1", "deploy/web", "-n", "refused", code=1)
    assert "the pods would restart" in refused
    assert "spec.template.spec.containers" in refused
    assert fed.kubectl("get", "deploy,pp", "-n", "refused") == ""
    assert pods_of(fed, "member-1", "refused") == before
    run(fed, "import", "--from-cluster", "member-1", "deploy/web", "-n", "refused", "--allow-restart")
    eventually(lambda: pods_of(fed, "member-1", "refused") & before, lambda seen: not seen)


def test_what_stands_in_the_way_of_an_object_is_adopted(fed: Federation) -> None:
    before = running_in(fed, "member-3", "adopted", "web")
    fed.kubectl.apply(*within("adopted", a_policy({"member-3": 1}), a_deployment("web", replicas=2, team="shop")))
    eventually(
        lambda: run(fed, "why", "deploy/web", "-n", "adopted"),
        lambda seen: "AlreadyExists" in seen,
        what="the refusal to take it over",
    )
    assert "nothing was adopted" in run(fed, "adopt", "deploy/web", "-n", "adopted", "--dry-run")
    fed.kubectl("set", "image", "deploy/web", "web=nginx:2", "-n", "adopted")
    eventually(
        lambda: attempt(fed, "adopt", "deploy/web", "-n", "adopted", "--dry-run").stderr,
        lambda seen: "the pods would restart" in seen,
        what="the refusal to restart pods",
    )
    fed.kubectl("set", "image", "deploy/web", "web=nginx:1.27", "-n", "adopted")
    eventually(
        lambda: attempt(fed, "adopt", "deploy/web", "-n", "adopted", "--dry-run").returncode,
        lambda code: code == 0,
    )
    assert "deployment/web adopted in member-3" in run(fed, "adopt", "deploy/web", "-n", "adopted")
    assert pods_of(fed, "member-3", "adopted") == before
    fed.kubectl("rollout", "status", "deploy/web", "-n", "adopted", "--timeout=90s")
    assert "nothing is in its way" in run(fed, "adopt", "deploy/web", "-n", "adopted", code=1)


def settings_in(fed: Federation, member: str, namespace: str) -> set[str]:
    return set(fed.api(namespace, member=member).names("configmaps", labelSelector="team=held"))


def test_a_change_that_would_empty_a_cluster_is_held_approved_and_undone(fed: Federation) -> None:
    fed.kubectl("create", "namespace", "held")
    policy = a_policy({"member-1": 1, "member-2": 1}, name="copies", schedulingMode="Duplicate")
    policy["metadata"]["namespace"] = "held"
    policy["spec"]["resourceSelectors"] = [{"apiVersion": "v1", "kind": "ConfigMap"}]
    everything = {f"settings-{number:02}" for number in range(12)}
    manifests = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "held", "labels": {"team": "held"}},
        }
        for name in sorted(everything)
    ]
    fed.kubectl.apply(policy, *manifests)
    for member in ("member-1", "member-2"):
        eventually(lambda there=member: settings_in(fed, there, "held"), lambda seen: seen == everything)

    policy["spec"]["placement"] = [{"cluster": "member-2"}]
    fed.kubectl.apply(policy)

    def holds() -> list[Object]:
        """Return the holds of the policy: others are of other tests."""
        return [each for each in json.loads(run(fed, "holds", "-o", "json")) if "held/copies" in json.dumps(each)]

    (hold,) = eventually(
        holds, lambda seen: [each["spec"]["count"] for each in seen] == [12], what="a hold of all twelve"
    )
    name = hold["metadata"]["name"]
    assert "PropagationPolicy held/copies" in run(fed, "holds")
    assert "ConfigMap held/settings-00" in fed.kubectl("get", "placementhold", name, "-o", "yaml")
    host = fed.api("held")
    eventually(
        lambda: {event["reason"] for event in host.list("events")["items"]},
        lambda seen: "PlacementHeld" in seen,
        what="an event",
    )
    eventually(
        lambda: (host.get("federatedobjects", "settings-00-configmaps").get("status") or {}).get("conditions", ()),
        lambda seen: ("Scheduled", "False", "Held") in {(c["type"], c["status"], c.get("reason")) for c in seen},
        what="the condition of a held object",
    )
    assert settings_in(fed, "member-1", "held") == everything

    assert "--reason" in run(fed, "approve", name, code=2)
    assert "not found" in run(fed, "approve", "other", "--reason", "planned", code=2)
    assert "approved: 12 objects" in run(fed, "approve", name, "--reason", "planned")
    eventually(lambda: settings_in(fed, "member-1", "held"), lambda seen: not seen, what="the approved move")
    approved = run(fed, "holds")
    assert "approved by" in approved
    assert "planned" in approved
    assert "was approved by" in run(fed, "approve", name, "--reason", "again", code=1)

    assert "ConfigMap held/settings-03" in run(fed, "undo", "configmap/settings-03", "-n", "held")
    eventually(lambda: settings_in(fed, "member-1", "held"), lambda seen: seen == {"settings-03"})
    run(fed, "undo", "propagationpolicy/copies", "-n", "held")
    eventually(lambda: settings_in(fed, "member-1", "held"), lambda seen: seen == everything)
    assert settings_in(fed, "member-2", "held") == everything
    assert "no move is recorded" in run(fed, "undo", "configmap/settings-03", "-n", "held", code=1)


def _version(name: str, *fields: str, storage: bool) -> Object:
    pods = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    properties = {"template": pods, **{field: {"type": "string"} for field in fields}}
    spec = {"type": "object", "properties": properties}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {"name": name, "served": True, "storage": storage, "schema": schema}


def test_import_adopt_and_migrate_keep_the_fields_of_the_stored_version(fed: Federation) -> None:
    group, here = "versions.example.com", ("-n", "versions")
    kind = {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"}
    versions = [_version("v1beta1", "size", storage=False), _version("v1", "size", "color", storage=True)]
    definition: Object = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gadgets.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": kind, "versions": versions},
    }
    config = custom_config(definition, "v1beta1")
    fed.kubectl.apply(definition, {**config, "metadata": {"name": f"gadgets.{group}"}})
    fed.kubectl("create", "namespace", "versions")
    run(fed, "join", "--update-credentials", "member-2", "--kubeconfig", str(fed.member("member-2").kubeconfig))
    there = fed.member("member-2")
    there.apply(definition)
    there("wait", "--for=condition=Established", f"crd/gadgets.{group}", "--timeout=60s")
    eventually(lambda: fed.api("", member="member-2").find("namespaces", "versions"), bool, what="the namespace")
    gadgets = {
        name: {
            "apiVersion": f"{group}/v1",
            "kind": "Gadget",
            "metadata": {"name": name, "namespace": "versions"},
            "spec": {"size": "s", "color": "blue", "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}},
        }
        for name in ("imported", "adopted")
    }
    there.apply(*gadgets.values())

    def specs(kubectl: Kubectl) -> dict[str, Object]:
        items = kubectl.json("get", f"gadgets.v1.{group}", *here)["items"]
        return {each["metadata"]["name"]: each["spec"] for each in items}

    kept = {name: gadget["spec"] for name, gadget in gadgets.items()}
    importing = ("import", "--from-cluster", "member-2", "gadget/imported", *here)
    eventually(lambda: attempt(fed, *importing).returncode, lambda code: code == 0, what="an import")
    gadgets["adopted"]["metadata"]["labels"] = {"kubeadmiral.io/propagation-policy-name": "import-member-2"}
    fed.kubectl.apply(gadgets["adopted"])
    eventually(lambda: attempt(fed, "adopt", "gadget/adopted", *here).returncode, lambda code: code == 0)
    assert specs(there) == specs(fed.kubectl) == kept
    assert "no member had to change" in run(fed, "migrate", "gadget/adopted", *here, "--to", "member-2")
    written = fed.kubectl.json("get", f"gadgets.v1.{group}/adopted", *here)
    assert orjson.loads(written["metadata"]["annotations"][names.PLACEMENTS]) == [{"cluster": "member-2"}]
    assert specs(there) == specs(fed.kubectl) == kept
    fed.kubectl("delete", f"gadgets.v1.{group}/imported", *here, "--cascade=orphan", "--timeout=60s")
    assert specs(there) == kept
    assert specs(fed.kubectl) == {"adopted": kept["adopted"]}
    fed.kubectl("delete", "namespace", "versions", "--timeout=90s")
    fed.kubectl("delete", f"federatedtypeconfig/gadgets.{group}", f"crd/gadgets.{group}", "--timeout=90s")
