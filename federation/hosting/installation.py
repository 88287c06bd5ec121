"""Install what the host needs, by server-side apply; it may be repeated, and by several processes at the same time.

An administrator's kubeconfig installs everything and then acts as the account. A process that runs as the account
itself brings the definitions up to date and leaves its own rights to the administrator who granted them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

import orjson
import structlog

from federation.api import names
from federation.apimachinery.clock import Clock
from federation.apimachinery.definitions import lacking_fields
from federation.apimachinery.errors import (
    ApiError,
    ConfigurationError,
    Forbidden,
    NotFound,
    ServiceUnavailable,
    TooManyRequests,
    Unauthorized,
)
from federation.apimachinery.listening import Patience
from federation.apimachinery.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CRDS,
    NAMESPACES,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    Object,
    Resource,
)
from federation.client.client import Client, PatchType
from federation.hosting.manifests import USER, Rules, definitions, host_manifests

_log = structlog.get_logger(__name__)
_REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_RESOURCES = {
    each.kind: each
    for each in (NAMESPACES, SERVICE_ACCOUNTS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, ROLES, ROLE_BINDINGS)
}
_LACKING_MAX = 20
"""Fields that a log line names."""
_SERVED_S = 30.0
"""How long the host may take to serve a new definition."""
_POLL_S = 0.1


async def own_user(client: Client) -> str:
    """Return the user that the host sees; ConfigurationError when it accepts no credentials or is too old."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    code, answer = await client.raw("POST", _REVIEW, body=body)
    if code == Unauthorized.code:
        raise ConfigurationError("the host refuses the credentials of --host-kubeconfig: they are expired or revoked")
    if code == NotFound.code:
        raise ConfigurationError("the host serves no SelfSubjectReview: it must be Kubernetes 1.28 or newer")
    if code not in (200, 201):
        raise ConfigurationError(f"the host answered {code} to the question who we are: {answer[:200].decode()!r}")
    status = orjson.loads(answer).get("status") or {}
    return str((status.get("userInfo") or {}).get("username") or "")


async def refuse_federation(client: Client) -> None:
    """Raise ConfigurationError if the API server is a federation's own, whose controllers would fight with ours."""
    code, _ = await client.raw("GET", "/federation/v1/openapi.json")
    if code == 200:
        raise ConfigurationError("the host is the API server of another federation; choose one without controllers")


async def install_rights(client: Client, tenant_rules: Rules) -> None:
    """Create or update namespace, account and rights; ConfigurationError when these credentials may not."""
    for manifest in host_manifests(tenant_rules):
        try:
            await _apply(client, _RESOURCES[manifest["kind"]], manifest)
        except Forbidden as error:
            raise ConfigurationError(
                f"this user may not create what the federation needs on the host ({error.message}); use the kubeconfig"
                f" of an administrator, or let one apply what `fedctl host-manifests` prints, and use a kubeconfig of"
                f" {USER}"
            ) from error


async def install_definitions(client: Client, clock: Clock) -> None:
    """Create or update the definitions, and wait until the host serves them; ConfigurationError when it does not.

    Definitions of OpenKruise that lack our label are OpenKruise's; they stay as they are.
    """
    wanted = definitions()
    await asyncio.gather(*(_ensure_definition(client, manifest) for manifest in wanted))
    patience = Patience(clock, _SERVED_S)
    while waiting := await _not_served(client, wanted):
        if patience.is_over():
            raise ConfigurationError(f"the host does not serve {', '.join(waiting)} after {_SERVED_S:g} s")
        await clock.sleep(_POLL_S)


async def while_preparing(clock: Clock, work: Callable[[], Awaitable[None]]) -> None:
    """Do the work, which may be repeated, and repeat it while the host answers that it prepares a definition's storage.

    It does that again, for a moment, when a definition that it serves already was changed.
    """
    patience = Patience(clock, _SERVED_S)
    while True:
        try:
            return await work()
        except TooManyRequests:
            if patience.is_over():
                raise
        await clock.sleep(_POLL_S)


async def _ensure_definition(client: Client, manifest: Object) -> None:
    name = manifest["metadata"]["name"]
    try:
        found = await client.get(CRDS, name)
    except NotFound:
        found = None
    ours = manifest["metadata"].get("labels") or {}
    if found is not None and not ours.items() <= (found["metadata"].get("labels") or {}).items():
        lacking = lacking_fields(found, manifest)[:_LACKING_MAX]
        _log.warning("definition of another project is used as it is", name=name, removes=lacking)
        return
    await _apply(client, CRDS, manifest)


async def _not_served(client: Client, wanted: Iterable[Object]) -> list[str]:
    """Return the names of the definitions whose objects cannot be listed yet."""
    definitions_by_name = {each["metadata"]["name"]: each for each in wanted}
    answers = await asyncio.gather(*(_is_served(client, each) for each in definitions_by_name.values()))
    return [name for name, is_served in zip(definitions_by_name, answers, strict=True) if not is_served]


async def _is_served(client: Client, definition: Object) -> bool:
    spec = definition["spec"]
    version = next(each["name"] for each in spec["versions"] if each["served"])
    resource = Resource(spec["group"], version, spec["names"]["kind"], spec["names"]["plural"])
    try:
        await client.list(resource, limit=1)
    except (NotFound, TooManyRequests, ServiceUnavailable):
        return False  # API servers answer 429 while they prepare the storage of a new kind
    return True


async def _apply(client: Client, resource: Resource, manifest: Object) -> None:
    metadata = manifest["metadata"]
    try:
        await client.patch(
            resource,
            metadata["name"],
            manifest,
            namespace=metadata.get("namespace", ""),
            patch_type=PatchType.APPLY,
            field_manager=names.FIELD_MANAGER,
            force=True,
        )
    except Forbidden:
        raise
    except ApiError as error:
        raise ConfigurationError(f"{resource.kind} {metadata['name']}: the host refuses it: {error.message}") from error
