"""The write of a decision, with the claim that it makes on the quotas of the namespace."""

from federation.apimachinery.errors import NotFound
from federation.apimachinery.objectshape import revision_of
from federation.apimachinery.resources import Object
from federation.controllers.schedule.decider import AttemptContext, Decider
from federation.controllers.schedule.reporting import WRITER
from federation.runtime.federatedobjects import FederatedObjects


async def write_with_claim(
    objects: FederatedObjects,
    decider: Decider,
    context: AttemptContext,
    base: Object,
    patch: Object | None,
    joint: str = "",
) -> Object:
    """Send a patch of `base`, if any, with the claim; return the resulting object, or NotFound if it is gone."""
    patch = decider.with_claim(context, base, patch)
    if patch is None:
        return base
    try:
        written = await objects.patch(context.key, base, patch, writer=WRITER, joint=joint)
    except Exception as failure:
        decider.end_claim(context, base, failure)
        raise
    if written is None:
        raise NotFound(f"federated object {context.key} is gone")
    if revision_of(written) == revision_of(base):
        decider.end_claim(context, base, None)
    return written
