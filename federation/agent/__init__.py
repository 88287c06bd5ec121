"""The agent of a member in pull mode: it registers, keeps a tunnel to the host, and renews its certificate.

Decision: docs/decisions/0059-agents-try-every-address.md
"""
