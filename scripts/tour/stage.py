"""The stage of the tour: one data directory, one server, and ways to show what they do.

A maintainer must not break: what is hidden is hidden in everything that is printed.
"""

import asyncio
import json
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

import httpx
from rich.console import Console
from rich.text import Text

from cynosure.testing.catalog_server import ServedCatalog, make_client
from cynosure.testing.harness.processes import ManagedProcess, Processes
from cynosure.testing.login import Credential, Login
from cynosure.testing.s3_servers import S3Server
from tests.engines.java import SHORT_LIVED
from tests.engines.readme import find_snippet
from tests.engines.spark.jars import find_jars

ROOT = Path(__file__).resolve().parents[2]
CYNOSURE = str(Path(sys.executable).parent / "cynosure")


class Tour:
    """One data directory, one server, one catalog that steps work on."""

    def __init__(self, directory: Path, processes: Processes, catalog: str) -> None:
        self.data = directory / "data"
        self.processes = processes
        self.port = processes.reserve_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.catalog = catalog
        self.table = f"{self.url}/api/catalog/v1/{catalog}/namespaces/shop/tables/orders"
        self.s3: S3Server | None = None
        self.server: ManagedProcess | None = None
        self.theirs: ServedCatalog | None = None
        """A catalog of somebody else, on another server."""
        self.their_server: ManagedProcess | None = None
        self.their_location = ""
        self.history = ""
        self.users: dict[str, Login] = {}
        self.console = Console(highlight=False, soft_wrap=True)
        self._hidden = {str(self.data): "DATA"}

    def say(self, text: str) -> None:
        self._print(text)

    def know(self, name: str, client_id: str, secret: str) -> None:
        """Somebody with credentials. The secret is not shown from now on."""
        self.hide(secret)
        self.users[name] = Login(self.url, Credential(client_id, secret))

    def client(self, name: str = "root") -> httpx.AsyncClient:
        """A client that is this principal."""
        return make_client(self.users[name], base_url=self.url)

    async def cynosure(self, *arguments: str, env: dict[str, str] | None = None, code: int = 0) -> str:
        """Run a command as a user would, in the folder that has ./data, and show it with its output.

        `code` is how it should end.
        """
        self._print(f"$ cynosure {shlex.join(arguments)}", style="bold")
        process = await asyncio.create_subprocess_exec(
            CYNOSURE,
            *arguments,
            cwd=self.data.parent,
            env={**os.environ, **(env or {})},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output = (await process.communicate())[0].decode()
        self._print(output.rstrip())
        if process.returncode != code:
            sys.exit(f"demo: cynosure {' '.join(arguments)} ended with {process.returncode}")
        return output

    async def create_with(self, name: str, *arguments: str) -> None:
        """Run a command that makes credentials, and know them."""
        file = self.data.parent / f"{name}.secret"
        await self.cynosure(*arguments, "--credentials-file", file.name)
        made = json.loads(file.read_text())
        self.know(name, made["clientId"], made["clientSecret"])

    async def cut_power(self) -> None:
        """Kill everything at once, and start it again on the same data."""
        assert self.server is not None
        self._print(f"$ kill -9 {self.server.pid} and its children")
        self.server.kill9()
        await self.server.restart()

    def hide(self, secret: str, shown: str = "********") -> None:
        """Show something else instead, from now on."""
        self._hidden[secret] = shown

    async def run_snippet(self, imports: str, env: Mapping[str, str] | None = None) -> str:
        """Run a program of README.md against this server, and show it with its output."""
        readme = ROOT / "README.md"
        self._print(find_snippet(readme, imports, self.url, "CLIENT_ID:SECRET").rstrip(), style="bold")
        jars = await asyncio.to_thread(find_jars) if imports.startswith("pyspark") else None
        credential = self.users["root"].credential.text
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-",
            env={
                **os.environ,
                "SPARK_LOCAL_IP": "127.0.0.1",
                "PYSPARK_PYTHON": sys.executable,
                "JDK_JAVA_OPTIONS": " ".join(SHORT_LIVED),
                **(env or {}),
            },
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        # Not as an argument: other users of the machine can see those.
        snippet = find_snippet(readme, imports, self.url, credential, jars=jars)
        output, trouble = await process.communicate(snippet.encode())
        self._print(output.decode().rstrip())
        if process.returncode:
            sys.exit(f"demo: the program ended with {process.returncode}\n{trouble.decode()[-4000:]}")
        return output.decode()

    def show_answer(self, who: str, answer: httpx.Response) -> None:
        """What somebody asked for, and what was answered."""
        request = answer.request
        self._print(f"{who}: {request.method} {request.url.path}", style="bold")
        text = answer.json()["error"]["message"] if answer.is_error else "ok"
        self._print(f"{answer.status_code} {text}")

    def _print(self, text: str, style: str = "") -> None:
        for hidden, shown in self._hidden.items():
            text = text.replace(hidden, shown)
        self.console.print(Text(text, style=style))

    async def get(self, path: str, *, lines: int = 12, only: str = "", who: str = "") -> str:
        """Ask the server, and show the first lines of its answer."""
        bearer = f' -H "Authorization: Bearer ..." ({who})' if who else ""
        self._print(f"$ curl {self.url}{path}{bearer}" + (f" | grep {only}" if only else ""), style="bold")
        async with make_client(self.users[who] if who else None, base_url=self.url) as client:
            answer = (await client.get(path)).raise_for_status().text
        shown = [line for line in answer.splitlines() if only in line]
        self._print("\n".join(shown[:lines]) + ("\n…" if len(shown) > lines else ""))
        return answer
