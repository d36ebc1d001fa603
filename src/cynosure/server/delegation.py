"""`serve delegation`: the life of one process of the delegation service.

A maintainer must not break: what is under way when the process is told to stop is finished or given back.
"""

from cynosure.common.telemetry.logs import Log
from cynosure.server.delegation_settings import check_service
from cynosure.server.delegation_wiring import open_delegation
from cynosure.server.http_server import attending
from cynosure.server.service_process import ServiceReady, ServiceRole, ServiceStart

_log = Log(__name__)


async def serve_delegation(start: ServiceStart) -> None:
    """Serve until SIGTERM or SIGINT, and work on tasks meanwhile."""
    settings, service = start.settings, start.settings.delegation.service
    async with open_delegation(settings, start.credentials, start.clock, start.rng) as process:
        http = start.make_http(process.public)

        def stop() -> None:
            http.note_signal()
            process.readiness.begin_shutdown()
            http.stop_serving()

        with attending(stop, start.tls, start.clock):
            await http.start(start.listener)
            _log.event("delegation.ready", url=start.url, realm=service.realm)
            start.on_ready(ServiceReady(start.url))
            await http.wait_stopped()
            await http.within_patience(process.worker.close(service.drain.total_seconds()))


DELEGATION = ServiceRole(
    name="delegation",
    check=lambda settings: check_service(settings.delegation.service),
    own=lambda settings: settings.delegation.service,
    end_s=20.0,
    serve=serve_delegation,
    client_ca=lambda settings: settings.delegation.service.client_ca,
)
