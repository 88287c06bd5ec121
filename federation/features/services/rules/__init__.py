"""Services across clusters: ServiceExport and ServiceImport (docs/reference/multicluster.md). Pure.

`exports.py` turns EndpointSlices of the members that export a Service into EndpointSlices of the host, and compares the
exports. `imports.py` plans where the Service and these EndpointSlices go. The controllers beside this
folder act.
"""
