"""Writing generated pages of the documentation, or checking that they are fresh."""

import sys
from pathlib import Path

from cynosure.common.errors import Misconfigured


def publish(path: Path, text: str, arguments: list[str]) -> int:
    """Write the page, or with `--check` compare it. The exit status: 1 for a stale page."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write("usage: python -m MODULE [--check]\n")
        return 2
    if not path.parent.is_dir():
        raise Misconfigured(
            "There is no directory for the page", path=str(path), fix="Run this in the root of a checkout."
        )
    if not arguments:
        path.write_text(text, encoding="utf-8")
        return 0
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"{path} is stale: run the same command without --check\n")
    return 1


def cell(text: str) -> str:
    """Text for one cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")
