"""The one place where the store's errors become the API's.

Verbs translate only the errors whose answer needs the request: KeyExists is AlreadyExists with the object's name, a
compacted list is Expired with a fresh continue token. Every other StoreError leaves the registry through the functions
here, so its callers handle ApiErrors alone.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from federation.apimachinery.errors import (
    ApiError,
    Conflict,
    Expired,
    InternalError,
    RevisionCompacted,
    ServiceUnavailable,
    StoreError,
    StoreFull,
    ValueDamaged,
    WriteFenced,
)

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def to_api_error(error: StoreError) -> ApiError:
    """Return Kubernetes' answer: 410 for a compacted revision, 500 for a damaged object, else the 503 for retries."""
    if isinstance(error, RevisionCompacted):
        return Expired(f"too old resource version: {error}")
    if isinstance(error, ValueDamaged):
        return InternalError(
            f"the stored object is damaged and cannot be read: {error}; restore a backup, or delete the object, which"
            " works as usual, and create it again"
        )
    if isinstance(error, StoreFull):
        return ServiceUnavailable(str(error))
    if isinstance(error, WriteFenced):
        return Conflict(str(error))
    return ServiceUnavailable(f"the store does not answer: {error}")


def translated(verb: Callable[_Parameters, Awaitable[_Result]]) -> Callable[_Parameters, Awaitable[_Result]]:
    """Decorate a verb so that it raises ApiErrors instead of StoreErrors."""

    @wraps(verb)
    async def call(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        try:
            return await verb(*args, **kwargs)
        except StoreError as error:
            raise to_api_error(error) from error

    return call


async def translated_batches(batches: AsyncGenerator[_Result, None]) -> AsyncGenerator[_Result, None]:
    """Yield the batches of a watch; a StoreError ends them as an ApiError. Closing the result closes `batches`."""
    try:
        async for batch in batches:
            yield batch
    except StoreError as error:
        raise to_api_error(error) from error
    finally:
        await batches.aclose()
