"""Ways to ask a process whether it is ready.

A maintainer must not break: a probe asks once and never waits long; `ManagedProcess.wait_until` repeats it.
"""

import asyncio

import httpx

from cynosure.client.tls import NO_TLS
from cynosure.testing.harness.processes import ManagedProcess, Probe


def tcp_ready(port: int, host: str = "127.0.0.1") -> Probe:
    """Ready when the port accepts connections."""

    async def probe(process: ManagedProcess) -> bool:
        try:
            _, writer = await asyncio.open_connection(host, port)
            writer.close()
            await writer.wait_closed()
        except OSError:
            return False
        return True

    return probe


def http_ready(url: str, *, status: int = 200) -> Probe:
    """Ready when a GET of this URL answers with this status."""

    async def probe(process: ManagedProcess) -> bool:
        try:
            async with httpx.AsyncClient(timeout=5, trust_env=False, verify=NO_TLS) as client:
                return (await client.get(url)).status_code == status
        except httpx.TransportError:
            return False

    return probe


def log_ready(text: str) -> Probe:
    """Ready when the current incarnation has written this text in a whole line.

    A program without a buffer writes a line in pieces, and what follows the text (a port, a process id) is
    what callers read next.
    """

    async def probe(process: ManagedProcess) -> bool:
        log = process.log()
        return text in log[: log.rfind("\n") + 1]

    return probe
