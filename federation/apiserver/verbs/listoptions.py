"""Validation of ListOptions, as `ValidateListOptions` of Kubernetes' internalversion package does it. Pure."""

from federation.apimachinery import errors
from federation.apimachinery.fielderrors import Causes, forbidden
from federation.apiserver.verbs.deleteoptions import unsupported
from federation.apiserver.verbs.requestoptions import ListOptions

_MATCH = "resourceVersionMatch"
_MATCHES = ("Exact", "NotOlderThan")


def validate_list_options(options: ListOptions) -> None:
    """Raise Invalid for options that a list may not have."""
    match, causes = options.resource_version_match, []
    if match and not options.resource_version:
        causes.append(forbidden(_MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
    if match and options.continue_token:
        causes.append(forbidden(_MATCH, "resourceVersionMatch is forbidden when continue is provided"))
    if match and match not in _MATCHES:
        causes.append(unsupported(_MATCH, match, (*_MATCHES, "")))
    if match == "Exact" and options.resource_version == "0":
        causes.append(forbidden(_MATCH, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if options.send_initial_events is not None:
        causes.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    _raise(causes)


def validate_watch_options(options: ListOptions) -> None:
    """Raise Invalid for options that a watch may not have."""
    match, causes = options.resource_version_match, []
    if options.send_initial_events is not None and match != "NotOlderThan":
        causes.append(forbidden(_MATCH, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
    if match and options.send_initial_events is None:
        text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        causes.append(forbidden(_MATCH, text))
    if match and match != "NotOlderThan":
        causes.append(unsupported(_MATCH, match, ("NotOlderThan",)))
    if match and options.continue_token:
        causes.append(forbidden(_MATCH, "resourceVersionMatch is forbidden when continue is provided"))
    _raise(causes)


def _raise(causes: Causes) -> None:
    if causes:
        raise errors.invalid("ListOptions", "meta.k8s.io", "", causes)
