"""The leaf features of the product. A new one is a folder beside this module, and a line here."""

from federation.featureapi.feature import Feature
from federation.features import cronfederatedhpa, kubefed, services, uniteddeployment

FEATURES: tuple[Feature, ...] = (cronfederatedhpa.FEATURE, kubefed.FEATURE, services.FEATURE, uniteddeployment.FEATURE)
