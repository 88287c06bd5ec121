"""The permits of the spine: the last word before a decision is written. `chain.ORDER` has their order.

Decision: docs/decisions/0244-a-permit-is-a-step.md
"""
