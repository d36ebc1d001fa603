"""The programs of README.md, so that they can be run as they stand there."""

import re
from collections.abc import Sequence
from pathlib import Path

_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PACKAGES = re.compile(r'"spark\.jars\.packages", "[^"]+"')
DOCUMENTED_URL = "http://127.0.0.1:8181"
DOCUMENTED_CREDENTIAL = "CLIENT_ID:SECRET"


def find_snippet(
    readme: Path, imports: str, url: str, credential: str, *, jars: Sequence[Path] | None = None
) -> str:
    """The program that imports this module, for a server at `url` and a client with this `ID:SECRET`.

    With `jars` Spark takes these files instead of fetching the same ones again.
    """
    blocks: list[str] = _BLOCK.findall(readme.read_text())
    (found,) = [text for text in blocks if f"from {imports} import" in text]
    assert found.count(DOCUMENTED_CREDENTIAL) == 1
    snippet = found.replace(DOCUMENTED_URL, url).replace(DOCUMENTED_CREDENTIAL, credential)
    if jars is not None:
        snippet, replaced = _PACKAGES.subn(f'"spark.jars", "{",".join(map(str, jars))}"', snippet)
        assert replaced == 1
    return snippet
