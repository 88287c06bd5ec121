"""The seam between the control plane and the wings in `federation/features`: what a feature gives, and what it gets.

`feature.py` has the record that each wing fills in. `federation/features/catalogue.py` lists the records, and the
collectors read them: `wiring.py` the controllers, `hosting/` definitions, rights and admission, `cli` the commands.

Decision: docs/decisions/0098-wings-answer-through-protocols.md
"""
