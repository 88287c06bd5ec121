"""Schemas of built-in and custom kinds: model, built-in definitions, structural schemas, validation, defaults. Pure."""
