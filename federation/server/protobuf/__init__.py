"""Protobuf request bodies: what typed Go clients (kubectl create, client-go) send for built-in kinds.

`decoder.py` reads them with the layout in `messages.json`, which `generator/` writes from k8s.io/api's struct tags.
Answers are always JSON, which every client that sends protobuf also accepts.
"""
