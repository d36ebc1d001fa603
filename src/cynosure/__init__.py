"""Cynosure: a lakehouse control plane for Apache Iceberg.

Start with ARCHITECTURE.md; each sub-package (a *room*) opens with a docstring that says what it
promises and where to begin.
"""

__version__ = "0.1.0.dev0"
