"""OpenTelemetry traces, an extra (`federation[otel]`): one trace follows an object from its request to the members.

`tracer.py` and `exporter.py` import the SDK. They are imported only when traces are on. `requestspans.py` traces
requests that write, `deliveries.py` what becomes of them. See docs/decisions/0049-trace-ids-from-objects.md.
"""
