// What dashboards ask of an API server: the official JavaScript client, and the requests that Headlamp sends itself.
// tests/e2e/test_javascript_client.py starts the servers and sets both variables. It runs `node --test` on this file.

import assert from "node:assert/strict";
import { Writable } from "node:stream";
import { after, before, test } from "node:test";

import * as k8s from "@kubernetes/client-node";
import WebSocket from "ws";

const WAIT_MS = 20_000;
const NAMESPACE = "dashboards";
const host = configFrom(process.env.HOST_KUBECONFIG);
const member = configFrom(process.env.MEMBER_KUBECONFIG);
const core = host.makeApiClient(k8s.CoreV1Api);
const apps = host.makeApiClient(k8s.AppsV1Api);
let token = "";

function configFrom(file) {
  const config = new k8s.KubeConfig();
  config.loadFromFile(file);
  return config;
}

function configMap(name, data = {}) {
  return { metadata: { name, labels: { of: "dashboards" } }, data };
}

function deployment(name) {
  const labels = { app: name };
  const template = { metadata: { labels }, spec: { containers: [{ name: "main", image: "nginx" }] } };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace: NAMESPACE },
    spec: { replicas: 1, selector: { matchLabels: labels }, template },
  };
}

function withType(contentType) {
  return k8s.setHeaderOptions("Content-Type", contentType);
}

/** Send one request with the bearer token of a dashboard, as a dashboard's server passes it on from the browser. */
async function request(method, path, { body, headers = {} } = {}) {
  const { server, caData } = host.getCurrentCluster();
  const { request: send } = await import("node:https");
  const text = body === undefined ? undefined : JSON.stringify(body);
  const options = {
    method,
    ca: Buffer.from(caData, "base64"),
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json", ...headers },
  };
  return await new Promise((resolve, reject) => {
    const sent = send(new URL(path, server), options, async (response) => {
      const pieces = [];
      for await (const piece of response) pieces.push(piece);
      resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(pieces) });
    });
    sent.on("error", reject);
    sent.end(text);
  });
}

/** The messages of one WebSocket, one after the other. */
class Messages {
  constructor(socket) {
    this.socket = socket;
    this.arrived = [];
    this.waiting = [];
    socket.on("message", (data, isBinary) => this.put({ data, isBinary }));
    socket.on("close", () => this.put(null));
  }

  put(message) {
    const waiting = this.waiting.shift();
    if (waiting) waiting(message);
    else this.arrived.push(message);
  }

  async next() {
    if (this.arrived.length) return this.arrived.shift();
    return await new Promise((resolve) => this.waiting.push(resolve));
  }
}

/** Connect as Headlamp does: a subprotocol for bytes, its own ones, and the token as one more. */
async function connect(config, path, { subprotocols = [], bearer = "" } = {}) {
  const { server, caData } = config.getCurrentCluster();
  const { certData, keyData } = config.getCurrentUser();
  const url = new URL(server.replace(/^http/, "ws") + path);
  const offered = ["base64.binary.k8s.io", ...subprotocols];
  if (bearer) offered.push(`base64url.bearer.authorization.k8s.io.${Buffer.from(bearer).toString("base64url")}`);
  const own = bearer ? {} : { cert: Buffer.from(certData, "base64"), key: Buffer.from(keyData, "base64") };
  const options = { ca: Buffer.from(caData, "base64"), origin: new URL(server).origin, ...own };
  const socket = new WebSocket(url, offered, options);
  const messages = new Messages(socket);
  await new Promise((resolve, reject) => {
    socket.on("open", resolve);
    socket.on("unexpected-response", (_, response) => {
      const pieces = [];
      response.on("data", (piece) => pieces.push(piece));
      response.on("end", () => {
        const text = Buffer.concat(pieces).toString();
        reject(Object.assign(new Error(`${response.statusCode} ${text}`), { code: response.statusCode }));
      });
    });
    socket.on("error", reject);
  });
  return messages;
}

before(async () => {
  await core.createNamespace({ body: { metadata: { name: NAMESPACE } } });
  const account = { name: "dashboard", namespace: NAMESPACE };
  await core.createNamespacedServiceAccount({ namespace: NAMESPACE, body: { metadata: { name: account.name } } });
  const rbac = host.makeApiClient(k8s.RbacAuthorizationV1Api);
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "edit" };
  const body = { metadata: { name: "dashboard" }, roleRef, subjects: [{ kind: "ServiceAccount", ...account }] };
  await rbac.createNamespacedRoleBinding({ namespace: NAMESPACE, body });
  const review = { spec: { audiences: [], expirationSeconds: 600 } };
  const issued = await core.createNamespacedServiceAccountToken({ ...account, body: review });
  token = issued.status.token;
});

after(async () => {
  await core.deleteNamespace({ name: NAMESPACE });
});

test("a list arrives in pages", { timeout: WAIT_MS }, async () => {
  for (const name of ["page-1", "page-2", "page-3"]) {
    await core.createNamespacedConfigMap({ namespace: NAMESPACE, body: configMap(name) });
  }
  const selection = { namespace: NAMESPACE, labelSelector: "of=dashboards", limit: 2 };
  const first = await core.listNamespacedConfigMap(selection);
  assert.equal(first.items.length, 2);
  assert.equal(first.metadata.remainingItemCount ?? 1, 1);
  const second = await core.listNamespacedConfigMap({ ...selection, _continue: first.metadata._continue });
  assert.equal(second.items.length, 1);
  assert.equal(second.metadata._continue ?? "", "");
  await core.deleteCollectionNamespacedConfigMap({ namespace: NAMESPACE, labelSelector: "of=dashboards" });
});

test("an informer lists and then reports every change", { timeout: WAIT_MS }, async () => {
  const path = `/api/v1/namespaces/${NAMESPACE}/configmaps`;
  const list = () => core.listNamespacedConfigMap({ namespace: NAMESPACE, labelSelector: "of=informer" });
  const informer = k8s.makeInformer(host, path, list, "of=informer");
  const seen = [];
  const deleted = new Promise((resolve, reject) => {
    informer.on("add", (object) => seen.push(["add", object.metadata.name]));
    informer.on("update", (object) => seen.push(["update", object.data.a]));
    informer.on("delete", (object) => resolve(seen.push(["delete", object.metadata.name])));
    informer.on("error", (error) => error?.message !== "aborted" && reject(error));
  });
  await informer.start();
  const body = { metadata: { name: "watched", labels: { of: "informer" } }, data: { a: "1" } };
  await core.createNamespacedConfigMap({ namespace: NAMESPACE, body });
  const named = { name: "watched", namespace: NAMESPACE };
  await core.replaceNamespacedConfigMap({ ...named, body: { ...body, data: { a: "2" } } });
  await core.deleteNamespacedConfigMap(named);
  await deleted;
  assert.deepEqual(seen, [["add", "watched"], ["update", "2"], ["delete", "watched"]]);
  await informer.stop();
});

test("a watch of a time limit ends, with its objects and a bookmark", { timeout: WAIT_MS }, async () => {
  await core.createNamespacedConfigMap({ namespace: NAMESPACE, body: configMap("bookmarked") });
  const query = { sendInitialEvents: true, resourceVersionMatch: "NotOlderThan", allowWatchBookmarks: true, timeoutSeconds: 1 };
  const types = [];
  const path = `/api/v1/namespaces/${NAMESPACE}/configmaps`;
  const error = await new Promise((resolve) => {
    const watch = new k8s.Watch(host);
    watch.watch(path, query, (type, object) => types.push([type, object.metadata.annotations?.["k8s.io/initial-events-end"]]), resolve);
  });
  assert.ok(!error || error.name === "AbortError", String(error));
  assert.ok(types.some(([type]) => type === "ADDED"));
  assert.ok(types.some(([type, end]) => type === "BOOKMARK" && end === "true"), JSON.stringify(types));
});

test("four kinds of patches", { timeout: WAIT_MS }, async () => {
  const named = { name: "patched", namespace: NAMESPACE };
  await apps.createNamespacedDeployment({ namespace: NAMESPACE, body: deployment("patched") });
  const json = [{ op: "replace", path: "/spec/replicas", value: 2 }];
  await apps.patchNamespacedDeployment({ ...named, body: json }, withType(k8s.PatchStrategy.JsonPatch));
  const merge = { metadata: { annotations: { kind: "merge" } } };
  await apps.patchNamespacedDeployment({ ...named, body: merge }, withType(k8s.PatchStrategy.MergePatch));
  const strategic = { spec: { template: { spec: { containers: [{ name: "second", image: "redis" }] } } } };
  await apps.patchNamespacedDeployment({ ...named, body: strategic }, withType(k8s.PatchStrategy.StrategicMergePatch));
  const applied = deployment("patched");
  applied.metadata.labels = { kind: "apply" };
  delete applied.spec.replicas;
  const apply = { ...named, body: applied, fieldManager: "dashboard", force: true };
  const result = await apps.patchNamespacedDeployment(apply, withType(k8s.PatchStrategy.ServerSideApply));
  assert.equal(result.spec.replicas, 2);
  assert.equal(result.metadata.annotations.kind, "merge");
  assert.equal(result.metadata.labels.kind, "apply");
  assert.deepEqual(result.spec.template.spec.containers.map((each) => each.name).sort(), ["main", "second"]);
  assert.ok(result.metadata.managedFields.some((each) => each.manager === "dashboard" && each.operation === "Apply"));
  // Headlamp scales with a merge patch of the subresource.
  const scaled = await apps.patchNamespacedDeploymentScale({ ...named, body: { spec: { replicas: 5 } } }, withType(k8s.PatchStrategy.MergePatch));
  assert.equal(scaled.spec.replicas, 5);
});

test("manifests of any kind", { timeout: WAIT_MS }, async () => {
  const objects = k8s.KubernetesObjectApi.makeApiClient(host);
  const policy = {
    apiVersion: "core.kubeadmiral.io/v1alpha1",
    kind: "PropagationPolicy",
    metadata: { name: "everywhere", namespace: NAMESPACE },
    spec: { schedulingMode: "Duplicate" },
  };
  await objects.create(policy);
  const changed = { ...policy, spec: { schedulingMode: "Divide" } };
  await assert.rejects(objects.patch(changed), { code: 415 }); // strategic merge, which custom resources do not have
  await objects.patch(changed, undefined, undefined, undefined, undefined, k8s.PatchStrategy.MergePatch);
  assert.equal((await objects.read(policy)).spec.schedulingMode, "Divide");
  const listed = await objects.list(policy.apiVersion, policy.kind, NAMESPACE);
  assert.deepEqual(listed.items.map((each) => each.metadata.name), ["everywhere"]);
  const custom = host.makeApiClient(k8s.CustomObjectsApi);
  const where = { group: "core.kubeadmiral.io", version: "v1alpha1", namespace: NAMESPACE, plural: "propagationpolicies" };
  assert.equal((await custom.listNamespacedCustomObject(where)).items.length, 1);
  await objects.delete(policy);
  await assert.rejects(objects.read(policy), (error) => error.code === 404 && /not found/.test(error.body));
});

test("reviews of one's own rights", { timeout: WAIT_MS }, async () => {
  const version = "/apis/authorization.k8s.io/v1";
  const resourceAttributes = { verb: "create", group: "apps", version: "v1", resource: "deployments", namespace: NAMESPACE };
  const review = (attributes) => ({ kind: "SelfSubjectAccessReview", apiVersion: "authorization.k8s.io/v1", spec: { resourceAttributes: attributes } });
  const allowed = await request("POST", `${version}/selfsubjectaccessreviews`, { body: review(resourceAttributes) });
  assert.equal(allowed.status, 201);
  assert.equal(JSON.parse(allowed.body).status.allowed, true);
  const denied = await request("POST", `${version}/selfsubjectaccessreviews`, { body: review({ verb: "list", resource: "secrets" }) });
  assert.equal(JSON.parse(denied.body).status.allowed, false);
  // Headlamp tests its log-in with this request, which names no kind.
  const rules = await request("POST", `${version}/selfsubjectrulesreviews`, { body: { spec: { namespace: NAMESPACE } } });
  assert.equal(rules.status, 201);
  assert.ok(JSON.parse(rules.body).status.resourceRules.some((rule) => rule.resources.includes("deployments")));
  const anonymous = await request("POST", `${version}/selfsubjectrulesreviews`, { body: { spec: {} }, headers: { Authorization: "Bearer none" } });
  assert.equal(anonymous.status, 401);
  const whoami = await request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", { body: {} });
  assert.equal(JSON.parse(whoami.body).status.userInfo.username, `system:serviceaccount:${NAMESPACE}:dashboard`);
});

test("health, version and discovery", { timeout: WAIT_MS }, async () => {
  assert.equal((await request("GET", "/healthz")).body.toString(), "ok");
  const version = await host.makeApiClient(k8s.VersionApi).getCode();
  assert.match(version.gitVersion, /^v1\.\d+/);
  const groups = await host.makeApiClient(k8s.ApisApi).getAPIVersions();
  assert.ok(groups.groups.some((each) => each.name === "core.kubeadmiral.io"));
  const found = await apps.getAPIResources();
  const deployments = found.resources.find((each) => each.name === "deployments");
  assert.deepEqual([deployments.kind, deployments.namespaced], ["Deployment", true]);
  const crds = await host.makeApiClient(k8s.ApiextensionsV1Api).listCustomResourceDefinition();
  assert.ok(crds.items.some((each) => each.metadata.name === "propagationpolicies.core.kubeadmiral.io"));
});

test("OpenAPI version 2 and 3", { timeout: WAIT_MS }, async () => {
  const second = JSON.parse((await request("GET", "/openapi/v2")).body);
  assert.equal(second.swagger, "2.0");
  // Headlamp finds the documentation of a kind by this extension.
  const marked = Object.values(second.definitions).flatMap((each) => each["x-kubernetes-group-version-kind"] ?? []);
  for (const kind of ["Deployment", "PropagationPolicy"]) assert.ok(marked.some((each) => each.kind === kind), kind);
  const references = JSON.stringify(second).matchAll(/"\$ref":"#\/definitions\/([^"]+)"/g);
  for (const [, name] of references) assert.ok(name in second.definitions, name);
  const third = JSON.parse((await request("GET", "/openapi/v3")).body);
  for (const path of ["api/v1", "apis/apps/v1", "apis/core.kubeadmiral.io/v1alpha1"]) {
    const answer = await request("GET", third.paths[path].serverRelativeURL);
    assert.equal(answer.status, 200);
    const document = JSON.parse(answer.body);
    assert.ok(document.openapi.startsWith("3."));
    const names = JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g);
    for (const [, name] of names) assert.ok(name in document.components.schemas, name);
  }
});

test("lists as tables, and for clients that prefer Protobuf", { timeout: WAIT_MS }, async () => {
  const path = `/apis/apps/v1/namespaces/${NAMESPACE}/deployments`;
  const accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
  const table = JSON.parse((await request("GET", path, { headers: { Accept: accept } })).body);
  assert.equal(table.kind, "Table");
  assert.deepEqual(table.columnDefinitions.slice(0, 2).map((each) => each.name), ["Name", "Ready"]);
  // Go clients of the Kubernetes dashboard prefer Protobuf and take anything; they get JSON.
  const other = await request("GET", path, { headers: { Accept: "application/vnd.kubernetes.protobuf, */*" } });
  assert.equal(other.headers["content-type"], "application/json");
  assert.equal(JSON.parse(other.body).kind, "DeploymentList");
});

test("an object is created, and replaced when it exists", { timeout: WAIT_MS }, async () => {
  const path = `/apis/apps/v1/namespaces/${NAMESPACE}/deployments`;
  const body = deployment("edited");
  assert.equal((await request("POST", path, { body })).status, 201);
  assert.equal((await request("POST", path, { body })).status, 409);
  body.spec.replicas = 3;
  const replaced = await request("PUT", `${path}/edited`, { body });
  assert.equal(replaced.status, 200);
  assert.equal(JSON.parse(replaced.body).spec.replicas, 3);
  const dry = await request("DELETE", `${path}/edited?dryRun=All`);
  assert.equal(dry.status, 200);
  const invalid = await request("POST", path, { body: { ...body, spec: {} } });
  assert.equal(invalid.status, 422);
  assert.ok(JSON.parse(invalid.body).details.causes.length > 0);
});

test("a watch by WebSocket continues a list", { timeout: WAIT_MS }, async () => {
  const path = `/api/v1/namespaces/${NAMESPACE}/configmaps`;
  const list = JSON.parse((await request("GET", path)).body);
  const query = `?watch=1&resourceVersion=${list.metadata.resourceVersion}`;
  const messages = await connect(host, path + query, { bearer: token });
  assert.equal(messages.socket.protocol, "base64.binary.k8s.io");
  const pong = new Promise((resolve) => messages.socket.on("pong", resolve));
  messages.socket.ping();
  await pong;
  await request("POST", path, { body: configMap("by-socket") });
  await request("DELETE", `${path}/by-socket`);
  for (const type of ["ADDED", "DELETED"]) {
    const { data, isBinary } = await messages.next();
    assert.equal(isBinary, false);
    const event = JSON.parse(data);
    assert.deepEqual([event.type, event.object.metadata.name], [type, "by-socket"]);
  }
  messages.socket.close();
  await assert.rejects(connect(host, `/api/v1/secrets?watch=1`, { bearer: token }), { code: 403 });
});

test("logs and exec with the official client", { timeout: WAIT_MS }, async () => {
  const pieces = [];
  const sink = () => new Writable({ write: (piece, _, done) => done(pieces.push(piece) && null) });
  const logged = sink();
  const ended = new Promise((resolve) => logged.on("finish", resolve));
  await new k8s.Log(member).log("default", "web", "nginx", logged, { tailLines: 2 });
  await ended;
  assert.match(Buffer.concat(pieces).toString(), /nginx of web on node-1: alive .*\n.*\n$/);
  pieces.length = 0;
  const status = await new Promise((resolve, reject) => {
    const exec = new k8s.Exec(member);
    exec.exec("default", "web", "nginx", ["sh", "-c", "exit 7"], sink(), sink(), null, false, resolve).catch(reject);
  });
  assert.equal(status.details.causes[0].message, "7");
});

test("a watch of a member by WebSocket", { timeout: WAIT_MS }, async () => {
  const messages = await connect(member, "/api/v1/namespaces/default/pods?watch=1");
  const event = JSON.parse((await messages.next()).data);
  assert.deepEqual([event.type, event.object.metadata.name], ["ADDED", "web"]);
  messages.socket.close();
});

test("a log by WebSocket", { timeout: WAIT_MS }, async () => {
  const path = "/api/v1/namespaces/default/pods/web/log?container=nginx&previous=false&tailLines=3&timestamps=true";
  const once = await connect(member, path);
  let text = "";
  for (let message = await once.next(); message; message = await once.next()) {
    assert.equal(message.isBinary, false);
    text += Buffer.from(message.data.toString(), "base64");
  }
  assert.equal(text.match(/Z nginx of web/g).length, 3);
  const followed = await connect(member, `${path}&follow=true`);
  await followed.next();
  assert.match(Buffer.from((await followed.next()).data.toString(), "base64").toString(), /alive/);
  followed.socket.close();
  await assert.rejects(connect(member, path.replace("nginx", "none")), /400.*container none is not valid for pod web/);
});

test("exec by WebSocket, with the subprotocols of a browser's terminal", { timeout: WAIT_MS }, async () => {
  const query = "command=sh&container=nginx&stdin=1&stdout=1&stderr=1&tty=1";
  const subprotocols = ["v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"];
  const shell = await connect(member, `/api/v1/namespaces/default/pods/web/exec?${query}`, { subprotocols });
  assert.equal(shell.socket.protocol, "v4.channel.k8s.io");
  shell.socket.send(Buffer.from("\x04" + JSON.stringify({ Width: 80, Height: 24 })));
  shell.socket.send(Buffer.from("\x00echo from-the-browser\r"));
  let text = "";
  while (!/from-the-browser[^]*from-the-browser/.test(text)) text += (await shell.next()).data.subarray(1);
  shell.socket.close();
});
