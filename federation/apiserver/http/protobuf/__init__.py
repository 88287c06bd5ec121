"""Protobuf request bodies, which typed Go clients (kubectl create, client-go) send for built-in kinds.

`decoder.py` reads them with the layout in `messages.json`, which `generator/` derives from k8s.io/api's struct tags.
Responses are always JSON: every client that sends protobuf also accepts it.
"""
