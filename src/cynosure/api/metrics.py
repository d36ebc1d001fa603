"""`GET /metrics`: the numbers of all worker processes in Prometheus' text format."""

import asyncio

from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.common.telemetry.metrics import CONTENT_TYPE, render


async def serve_metrics(request: Request) -> Response:
    """Render the metrics, in a thread: with many workers it reads many files."""
    body = await asyncio.to_thread(render)
    return Response(200, body, media_type=CONTENT_TYPE.encode("ascii"))


METRICS_ROUTE = Route(
    "GET",
    "/metrics",
    serve_metrics,
    is_public=True,
    operation_id="getMetrics",
    summary="Metrics of all worker processes in Prometheus' text format",
    tags=("service",),
)
