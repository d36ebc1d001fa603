"""uvicorn with an application that does nothing: what an answer costs before we have done anything.

`python -m benchmarks.bare_server PORT`; answers every path with 1 KiB of JSON.
"""

import sys
from typing import Any

import uvicorn

_BODY = b'{"metadata":"' + b"x" * 1_000 + b'"}'
_HEADERS = [
    (b"content-type", b"application/json"),
    (b"etag", b'W/"1"'),
    (b"content-length", b"%d" % len(_BODY)),
]


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answer."""
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    await send({"type": "http.response.body", "body": _BODY})


if __name__ == "__main__":
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(sys.argv[1]),
        lifespan="off",
        access_log=False,
        log_level="warning",
        loop="uvloop",
        http="httptools",
    )
