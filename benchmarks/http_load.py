"""Closed-loop load on one HTTP server: so many clients, each asking again as soon as it is answered.

wrk does it when it is installed (`apt-get install wrk`); else Python does, and needs more CPU of its own.

A maintainer must not break: an answer that is not 2xx is an error and never a success.
"""

import asyncio
import shutil
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import msgspec
from msgspec import Struct

from benchmarks.http_client import Catalog

_DONE = """
done = function(summary, latency)
  local e = summary.errors
  io.stderr:write(string.format('{"requests":%d,"errors":%d,"p50_ms":%f,"p99_ms":%f}\\n', summary.requests,
    e.status + e.connect + e.read + e.write + e.timeout,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
"""


class Ask(Struct, frozen=True):
    """What the clients ask for: one request, or one that changes with its number."""

    path: str
    """`{table}` in it becomes the number of one of `tables` tables, in turn."""
    method: str = "GET"
    body: str = ""
    """`{number}` in it becomes the number of the request."""
    tables: int = 1
    is_keyed: bool = False
    """Whether each request has an Idempotency-Key of its own."""


class Told(Struct, frozen=True):
    """What came of it."""

    requests: int
    errors: int
    p50_ms: float
    p99_ms: float


def has_wrk() -> bool:
    """Whether wrk is installed; says how to get it when not."""
    if shutil.which("wrk"):
        return True
    print("bench: wrk is not installed, Python asks instead. Run: apt-get install wrk", file=sys.stderr)
    return False


async def ask_with_wrk(catalog: Catalog, ask: Ask, *, clients: int, seconds: float) -> Told:
    """Let wrk ask."""
    with TemporaryDirectory(prefix="cynosure-bench-") as folder:
        script = Path(folder) / "ask.lua"
        script.write_text(_lua(ask, catalog.token) + _DONE)
        process = await asyncio.create_subprocess_exec(
            *(
                "wrk",
                "-t1",
                f"-c{clients}",
                f"-d{seconds:g}s",
                "--timeout",
                "20s",
                "-s",
                str(script),
                catalog.url,
            ),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        _, told = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"wrk ended with {process.returncode}: {told.decode()}")
    return msgspec.json.decode(told, type=Told)


def _lua(ask: Ask, token: str) -> str:
    path = f'string.gsub("{ask.path}", "{{table}}", string.format("%03d", n % {ask.tables}))'
    body = f"string.gsub('{ask.body}', '{{number}}', tostring(n))" if ask.body else "nil"
    authorization = f'wrk.headers["Authorization"] = "Bearer {token}"' if token else ""
    keyed = f'wrk.headers["Idempotency-Key"] = "{uuid4()}-" .. n' if ask.is_keyed else ""
    return f"""
local n = 0
wrk.headers["Accept"] = "application/json"
wrk.headers["Content-Type"] = "application/json"
{authorization}
request = function()
  n = n + 1
  local path, body = {path}, {body}
  {keyed}
  return wrk.format("{ask.method}", path, nil, body)
end
"""


async def ask_with_python(catalog: Catalog, ask: Ask, *, clients: int, seconds: float) -> Told:
    """Ask from this process."""
    end_s, run = time.perf_counter() + seconds, uuid4()
    latencies_s: list[float] = []
    errors = number = 0

    async def ask_on() -> None:
        nonlocal errors, number
        connection = catalog.connect()
        while (began_s := time.perf_counter()) < end_s:
            number += 1
            path = ask.path.replace("{table}", f"{number % ask.tables:03d}")
            body = msgspec.Raw(ask.body.replace("{number}", str(number)).encode()) if ask.body else None
            try:
                key = f"{run}-{number}" if ask.is_keyed else ""
                answer = await connection.request(ask.method, path, body, key=key)
                errors += not 200 <= answer.status < 300
            except (OSError, EOFError):
                errors += 1
            latencies_s.append(time.perf_counter() - began_s)
        connection.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(ask_on())
    return Told(
        requests=len(latencies_s),
        errors=errors,
        p50_ms=percentile(latencies_s, 50) * 1e3,
        p99_ms=percentile(latencies_s, 99) * 1e3,
    )


def percentile(values: list[float], percent: int) -> float:
    """The value that so many percent do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] if ordered else 0.0
