"""The programs of README.md, so that they can be run as they stand there."""

import re
from collections.abc import Sequence
from pathlib import Path

_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PACKAGES = re.compile(r'"spark\.jars\.packages", "[^"]+"')
DOCUMENTED_URL = "http://127.0.0.1:8181"


def find_snippet(readme: Path, imports: str, url: str, *, jars: Sequence[Path] | None = None) -> str:
    """The program that imports this module, for a server at `url`.

    With `jars` Spark takes these files instead of fetching the same ones again.
    """
    blocks: list[str] = _BLOCK.findall(readme.read_text())
    (found,) = [text for text in blocks if f"from {imports} import" in text]
    snippet = found.replace(DOCUMENTED_URL, url)
    if jars is not None:
        snippet, replaced = _PACKAGES.subn(f'"spark.jars", "{",".join(map(str, jars))}"', snippet)
        assert replaced == 1
    return snippet
