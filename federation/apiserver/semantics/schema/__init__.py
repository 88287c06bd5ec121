"""Schemas of built-in and custom kinds: the model, the built-in definitions, validation, pruning, defaulting. Pure."""
