"""`serve gateway`: the life of one process that answers SQL. It has no store.

A maintainer must not break: told to stop, it takes no more statements, lets those that run go on for
`query.gateway.drain`, so that their users can fetch what they asked for, and ends the others: nothing of
them goes on running anywhere.
"""

import asyncio
from contextlib import AsyncExitStack
from typing import Final

from cynosure.common.telemetry.logs import Log
from cynosure.server.gateway_address import publish_address
from cynosure.server.gateway_settings import check_gateway
from cynosure.server.gateway_wiring import GatewayProcess, open_gateway
from cynosure.server.http_server import attending
from cynosure.server.service_process import ServiceReady, ServiceRole, ServiceStart

_LOOK_S: Final = 0.1

_log = Log(__name__)


async def serve_gateway(start: ServiceStart) -> None:
    """Serve until SIGTERM or SIGINT."""
    settings, gateway = start.settings, start.settings.query.gateway
    async with (
        open_gateway(settings, start.credentials, start.clock, start.rng) as process,
        AsyncExitStack() as stack,
    ):
        http = start.make_http(process.public)

        def stop() -> None:
            http.note_signal()
            process.begin_shutdown()

        stack.enter_context(attending(stop, start.tls, start.clock))
        await http.start(start.listener)
        stack.enter_context(publish_address(settings.server.data_dir, start.url, gateway.catalog_url))
        _log.event("gateway.ready", url=start.url, engines=process.engines)
        start.on_ready(ServiceReady(start.url))
        await http.stopping.wait()
        await http.within_patience(_drain(process, gateway.drain.total_seconds()))
        # Order: whoever waits for results hears that their statement is ended, and then the server ends.
        await process.statements.close()
        http.stop_serving()
        await http.wait_stopped()


async def _drain(process: GatewayProcess, drain_s: float) -> None:
    give_up_s = asyncio.get_running_loop().time() + drain_s
    # Looked at: an end is told to who waits for it, and nobody waits for all of them.
    while process.count_unfinished() and asyncio.get_running_loop().time() < give_up_s:  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_S)


GATEWAY = ServiceRole(
    name="gateway",
    check=lambda settings: check_gateway(settings.query),
    own=lambda settings: settings.query.gateway,
    end_s=15.0,
    serve=serve_gateway,
)
