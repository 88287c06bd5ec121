"""Decide again: record what decisions depended on (`recorder.py`), and replay the records (`redecide.py`).

Pure: `federation/journal` stores the records, `fedctl replay` reads them.

Decision: docs/decisions/0129-decisions-are-recorded-as-differences.md
"""
