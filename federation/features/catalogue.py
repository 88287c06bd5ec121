"""The leaf features of the product. A new one is a folder beside this module, and a line here."""

from typing import TYPE_CHECKING

from federation.featureapi.feature import Feature
from federation.features import autoscaling, cronfederatedhpa, kubefed, services, types, uniteddeployment

if TYPE_CHECKING:
    from federation.client.client import Client

FEATURES: tuple[Feature, ...] = (
    autoscaling.FEATURE,
    cronfederatedhpa.FEATURE,
    kubefed.FEATURE,
    services.FEATURE,
    types.FEATURE,
    uniteddeployment.FEATURE,
)


async def start_features(client: "Client", *, has_existing_host: bool) -> None:
    """Create on the host what the features need before controllers run."""
    for feature in FEATURES:
        await feature.start(client, has_existing_host)
