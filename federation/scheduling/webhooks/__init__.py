"""Scheduler plugins that are HTTP services: what they are asked, and what their answers mean.

`configuration.py` reads a SchedulerPluginWebhookConfiguration and picks the payload version; `v1alpha1.py` is
KubeAdmiral's protocol, `v1beta1.py` ours; each has its bodies in a module of its own. Pure: a plugin yields its
requests and is resumed with the responses (D6). Deadlines, retries and circuits are `client/services.py`'s matter.
"""
