"""The CA publisher: ConfigMaps with the server's CA certificate, for pods and for aggregated API servers.

`kube-root-ca.crt` in every namespace is what kube-controller-manager publishes in other clusters; a controller manager
that runs beside this server and publishes another CA keeps its own. `kube-system/extension-apiserver-authentication`
holds the CA of client certificates, and how aggregated API servers recognise the requests that this server forwards:
the CA and name of its client certificate and the headers that name the user. Entries that other processes on the same
store added to it are kept.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import orjson
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import ApiError, InternalError, NotFound
from federation.apimachinery.resources import CONFIGMAPS, Object
from federation.apimachinery.tasks import Supervisor
from federation.apiserver.registry.registry import Registry
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.store.interface import EventType
from federation.apiserver.verbs.requestoptions import WriteOptions

ROOT_CA = "kube-root-ca.crt"
AUTHENTICATION_NAMESPACE, AUTHENTICATION = "kube-system", "extension-apiserver-authentication"
CONTROLLER_MANAGER = "kube-controller-manager"
_DESCRIPTION = "kubernetes.io/description"
_DESCRIPTION_TEXT = (
    "The CA certificate with which clients in the cluster verify the Kubernetes API server. It proves no other server's"
    " identity."
)
_NAMESPACES: Final = "/core/namespaces/"
_CONFIGMAPS: Final = "/core/configmaps/"
_PUBLISHED: Final = (f"/{ROOT_CA}", f"/{AUTHENTICATION_NAMESPACE}/{AUTHENTICATION}")
_OPTIONS = WriteOptions(field_manager="federation-apiserver")
_HEADERS: Final = {
    "requestheader-username-headers": "X-Remote-User",
    "requestheader-uid-headers": "X-Remote-Uid",
    "requestheader-group-headers": "X-Remote-Group",
    "requestheader-extra-headers-prefix": "X-Remote-Extra-",
}
_CONTENDED: Final = {403, 404, 409}
"""Another writer was first, or the namespace is ending; the next event has the newer state."""


@dataclass(frozen=True, slots=True)
class FrontProxyTrust:
    """How aggregated API servers recognise this server."""

    ca: Callable[[], bytes]
    """Returns the PEM of the CA of the client certificate."""
    name: str
    """The common name of the client certificate."""


class CAPublisher:
    """Keeps the ConfigMaps of one registry; `ca` returns the PEM of the CA certificate."""

    def __init__(
        self, registry: Registry, *, ca: Callable[[], bytes], clock: Clock, front_proxy: FrontProxyTrust | None = None
    ) -> None:
        self._registry = registry
        self._ca = ca
        self._front_proxy = front_proxy
        self._clock = clock
        self._is_changed = asyncio.Event()

    def ca_changed(self) -> None:
        """Publish the CA again, because it was renewed."""
        self._is_changed.set()

    async def run(self) -> None:
        """Publish until cancelled."""
        supervisor = Supervisor(self._clock)
        supervisor.add("ca-namespaces", self._follow_namespaces)
        supervisor.add("ca-configmaps", self._follow_configmaps)
        supervisor.add("ca-publication", self._publish_changes)
        await supervisor.run()

    async def _follow_namespaces(self) -> None:
        revision = await self._registry.revision()
        self._is_changed.set()  # what was written before this watch is not in it
        async for batch in self._registry.store.watch(_NAMESPACES, revision):
            for event in batch:
                if event.type is EventType.CREATED:
                    await self._publish_root_ca(event.key.removeprefix(_NAMESPACES))

    async def _follow_configmaps(self) -> None:
        revision = await self._registry.revision()
        self._is_changed.set()
        async for batch in self._registry.store.watch(_CONFIGMAPS, revision):
            for event in batch:
                if not event.key.endswith(_PUBLISHED):
                    continue
                namespace, _, name = event.key.removeprefix(_CONFIGMAPS).partition("/")
                if name == ROOT_CA and event.type is not EventType.CREATED:
                    await self._publish_root_ca(namespace)
                elif (namespace, name) == (AUTHENTICATION_NAMESPACE, AUTHENTICATION):
                    await self._publish_authentication()

    async def _publish_changes(self) -> None:
        while True:
            await self._is_changed.wait()
            self._is_changed.clear()
            await self._publish_authentication()
            await self._publish_everywhere()

    async def _publish_everywhere(self) -> None:
        page = await self._registry.store.list(_NAMESPACES)
        namespaces = [
            entry.key.removeprefix(_NAMESPACES)
            for entry in page.entries
            if not encoding.decode_metadata(entry.value).get("deletionTimestamp")
        ]
        for namespace in namespaces:
            await self._publish_root_ca(namespace)
            await asyncio.sleep(0)  # thousands of namespaces must not delay requests

    async def _publish_root_ca(self, namespace: str) -> None:
        data = {"ca.crt": self._ca().decode()}
        try:
            live = await self._read(namespace, ROOT_CA)
        except InternalError:
            return  # a damaged ConfigMap must not stop the work on the other namespaces
        if live is None:
            annotations = {_DESCRIPTION: _DESCRIPTION_TEXT}
            await self._write(namespace, {"metadata": {"name": ROOT_CA, "annotations": annotations}, "data": data})
        elif not is_published(live, data):
            annotations = {_DESCRIPTION: _DESCRIPTION_TEXT, **(live["metadata"].get("annotations") or {})}
            changed = {**live, "metadata": {**live["metadata"], "annotations": annotations}, "data": data}
            await self._write(namespace, changed, is_new=False)

    async def _publish_authentication(self) -> None:
        namespace, config_map = AUTHENTICATION_NAMESPACE, AUTHENTICATION
        live = await self._read(namespace, config_map)
        known = (live or {}).get("data") or {}
        now = self._clock.now()
        data = {**known, "client-ca-file": combine(known.get("client-ca-file") or "", self._ca().decode(), now)}
        if (proxy := self._front_proxy) is not None:
            name = "requestheader-client-ca-file"
            data[name] = combine(known.get(name) or "", proxy.ca().decode(), now)
            for name, value in {**_HEADERS, "requestheader-allowed-names": proxy.name}.items():
                data[name] = add_to_list(known.get(name) or "", value)
        if live is None:
            await self._write(namespace, {"metadata": {"name": config_map, "namespace": namespace}, "data": data})
        elif data != known:
            await self._write(namespace, {**live, "data": data}, is_new=False)

    async def _read(self, namespace: str, name: str) -> Object | None:
        try:
            value = await self._registry.get(self._registry.kinds.lookup("", "v1", CONFIGMAPS.plural), namespace, name)
        except NotFound:
            return None
        live: Object = orjson.loads(value)
        return live

    async def _write(self, namespace: str, obj: Object, *, is_new: bool = True) -> None:
        info = self._registry.kinds.lookup("", "v1", CONFIGMAPS.plural)
        try:
            if is_new:
                await self._registry.create(info, namespace, obj, _OPTIONS)
            else:
                await self._registry.update(info, namespace, obj["metadata"]["name"], obj, _OPTIONS)
        except ApiError as error:
            if error.code not in _CONTENDED:
                raise


def is_published(live: Object, data: Object) -> bool:
    """Return True if a root CA ConfigMap is correct, or belongs to a controller manager, which publishes its own."""
    metadata = live["metadata"]
    if any(
        entry.get("manager") == CONTROLLER_MANAGER and "f:data" in (entry.get("fieldsV1") or {})
        for entry in metadata.get("managedFields") or ()
    ):
        return True
    return live.get("data") == data and bool((metadata.get("annotations") or {}).get(_DESCRIPTION))


def combine(known: str, own: str, now: datetime) -> str:
    """Return the PEM of the known certificates that have not expired, and of the server's own."""
    texts = dict.fromkeys(certificate for certificate in (*_unexpired(known, now), *_unexpired(own, now)))
    return "".join(texts)


def add_to_list(known: str, own: str) -> str:
    """Return a JSON list of texts with `own` in it; what is no such list is replaced."""
    try:
        listed = orjson.loads(known) if known else []
    except orjson.JSONDecodeError:
        listed = []
    texts = [text for text in listed if isinstance(text, str)] if isinstance(listed, list) else []
    return orjson.dumps(list(dict.fromkeys([*texts, own]))).decode()


def _unexpired(pem: str, now: datetime) -> Iterator[str]:
    try:
        certificates = x509.load_pem_x509_certificates(pem.encode()) if pem.strip() else []
    except ValueError:
        return  # whatever a user wrote there is replaced
    for certificate in certificates:
        if certificate.not_valid_after_utc > now:
            yield certificate.public_bytes(Encoding.PEM).decode()
