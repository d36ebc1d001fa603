"""Importing this before httpx makes importing httpx cheap.

httpx comes with a command line of its own; its imports (rich, click, pygments) cost more than all the rest
of httpx, and every call of ours would pay for them. httpx does without it where it cannot be imported.
"""

import sys

sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
