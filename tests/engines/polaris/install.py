"""The command line of Apache Polaris, as its index has it, in a virtual environment of its own.

A maintainer must not break: versions and hashes are those of `requirements.txt`, made from `requirements.in`
by `uv pip compile --universal --generate-hashes --no-emit-index-url --no-header`; nothing here names where
packages come from.
"""

import hashlib
import shutil
import sys
from pathlib import Path

from tests.engines.java import ToolFailed, find_cache, lock_cache, run_tool

REQUIREMENTS = Path(__file__).with_name("requirements.txt")


def install_polaris() -> Path:
    """The environment's Python; made once per version and machine."""
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()[:16]
    home = find_cache("polaris-cli")
    environment = home / wanted
    python = environment / "bin" / "python"
    with lock_cache(home):
        if (environment / "complete").exists():
            return python
        shutil.rmtree(environment, ignore_errors=True)
        command = [
            sys.executable,
            "-m",
            "uv",
            "venv",
            "--quiet",
            "--python",
            sys.executable,
            str(environment),
        ]
        install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", str(python)]
        install += ["--require-hashes", "--requirement", str(REQUIREMENTS)]
        try:
            run_tool(command)
            run_tool(install)
        except ToolFailed as failed:
            raise ToolFailed(
                f"The Polaris command line cannot be installed. Run: {' '.join(install)}\n{failed}"
            ) from failed
        (environment / "complete").touch()
    return python
