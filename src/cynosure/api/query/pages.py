"""A page of results as JSON, or as a stream of Arrow.

A maintainer must not break: both say where the next page is, JSON in the body and Arrow in the header
`Link`, and a page without rows has its columns all the same.
"""

from typing import TYPE_CHECKING, Final

import msgspec

from cynosure.api.messages import JSON, NO_STORE, Response
from cynosure.api.query.values import to_json_values
from cynosure.api.query.wire import columns_of, results_path
from cynosure.query.coordinator.statement import Page

if TYPE_CHECKING:
    import pyarrow as pa

ARROW: Final = b"application/vnd.apache.arrow.stream"


def wants_arrow(accept: str | None) -> bool:
    """Whether a client asks for Arrow: it names it, and does not name JSON before it."""
    named = [each.split(";", 1)[0].strip().lower() for each in (accept or "").split(",")]
    arrow, json = ARROW.decode(), JSON.decode()
    return arrow in named and (json not in named or named.index(arrow) < named.index(json))


def render_page(page: Page, schema: "pa.Schema", statement_id: str, *, is_arrow: bool) -> Response:
    """The answer with a page. Takes a while for a large one."""
    following = None if page.next is None else results_path(statement_id, page.next)
    headers = [NO_STORE]
    if following is not None:
        headers.append((b"link", f'<{following}>; rel="next"'.encode("ascii")))
    if is_arrow:
        return Response(200, _to_arrow(page, schema), media_type=ARROW, headers=headers)
    body = {"columns": columns_of(schema), "rows": _to_rows(page), "next": following}
    return Response(200, msgspec.json.encode(body), headers=headers)


def _to_arrow(page: Page, schema: "pa.Schema") -> bytes:
    import pyarrow as pa  # noqa: PLC0415 - an extra

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in page.batches:
            writer.write_batch(batch)
    encoded: bytes = sink.getvalue().to_pybytes()
    return encoded


def _to_rows(page: Page) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for batch in page.batches:
        columns = [to_json_values(each) for each in batch.columns]
        rows += zip(*columns, strict=True) if columns else [()] * batch.num_rows
    return rows
