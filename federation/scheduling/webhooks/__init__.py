"""Scheduler plugins that are HTTP services: their requests and responses.

`configuration.py` compiles a SchedulerPluginWebhookConfiguration and selects the payload version; `v1alpha1.py` is
KubeAdmiral's protocol, `v1beta1.py` ours; each has a module for its payloads. Pure: a plugin yields requests and is
resumed with the responses. Deadlines, retries and circuit breakers are in `client/retryingwebhookclient.py`.

Decision: docs/decisions/0011-plugins-over-http.md
"""
