"""Importing this before httpx makes importing httpx cheap, and its requests.

httpx comes with a command line of its own; its imports (rich, click, pygments) cost more than all the rest
of httpx, and every call of ours would pay for them. httpx does without it where it cannot be imported.

Below httpx, httpcore tries to import sniffio several times per request. Where it is not installed, each
attempt looks through all directories of the path again: half of the CPU of a small request.
"""

import sys
from importlib.util import find_spec

sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
if find_spec("sniffio") is None:
    sys.modules["sniffio"] = None  # type: ignore[assignment]
