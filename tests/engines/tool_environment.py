"""Tools from the package index that must not share our environment, each in a virtual environment of its own.

A maintainer must not break: versions and hashes are those of a `requirements.txt`, which
`uv pip compile --universal --generate-hashes --no-emit-index-url --no-header` makes from `requirements.in`;
nothing here names where packages come from.
"""

import hashlib
import shutil
import sys
from pathlib import Path

from tests.engines.java import ToolFailed, find_cache, lock_cache, run_tool


def install_tool(name: str, requirements: Path) -> Path:
    """The environment's Python; made once per version and machine."""
    wanted = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()[:16]
    home = find_cache(name)
    environment = home / wanted
    python = environment / "bin" / "python"
    with lock_cache(home):
        if (environment / "complete").exists():
            return python
        shutil.rmtree(environment, ignore_errors=True)
        uv = [sys.executable, "-m", "uv"]
        install = [*uv, "pip", "install", "--quiet", "--python", str(python)]
        install += ["--require-hashes", "--requirement", str(requirements)]
        try:
            run_tool([*uv, "venv", "--quiet", "--python", sys.executable, str(environment)])
            run_tool(install)
        except ToolFailed as failed:
            raise ToolFailed(f"{name} cannot be installed. Run: {' '.join(install)}\n{failed}") from failed
        (environment / "complete").touch()
    return python
