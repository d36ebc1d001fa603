"""What keeps `cynosure serve delegation` from starting, and what it says then."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.anyio


async def serve(directory: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cynosure", "serve", "delegation", "--data", str(directory / "data")]
    return await asyncio.to_thread(
        subprocess.run,
        [*command, "--port", "0", *flags],
        capture_output=True,
        text=True,
        check=False,
        cwd=directory,
        timeout=60,
    )


async def test_what_cannot_be_served_safely_is_refused_with_the_setting(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text('{"clientId": "AKIA7QXWZ3PLM5NBV2CD"')
    wrong = {
        (): "delegation.service.credentials_file",
        ("--credentials-file", "missing.json"): "cynosure delegation init",
        ("--credentials-file", "broken.json"): "cynosure delegation init",
        ("--credentials-file", "broken.json", "--host", "0.0.0.0"): "delegation.service.certificate",
        ("--credentials-file", "broken.json", "--catalog", "http://catalog.example.org"): "https://",
        ("--credentials-file", "broken.json", "--tls-cert", "c.pem"): "delegation.service.key",
    }

    refused = await asyncio.gather(*(serve(tmp_path, *flags) for flags in wrong))

    for flags, named, said in zip(wrong, wrong.values(), refused, strict=True):
        assert said.returncode == 1, flags
        assert named in said.stderr, flags
        assert "Traceback" not in said.stderr, flags
        assert "AKIA7QXWZ3PLM5NBV2CD" not in said.stdout + said.stderr, flags
    assert not (tmp_path / "data").exists()
