"""Whether a client has the current version already.

Must not break: comparison is weak (RFC 9110, 8.8.3.2): `W/"x"` and `"x"` name the same version, because
proxies turn one into the other when they compress.
"""

from cynosure.api.messages import Request
from cynosure.common.errors import BadInput


def is_unchanged(request: Request, etag: bytes | None) -> bool:
    """Whether If-None-Match names this version. `*` is refused: it would mean never to load at all."""
    wanted = request.find_header(b"if-none-match")
    if wanted is None:
        return False
    if wanted.strip() == "*":
        raise BadInput(
            "If-None-Match cannot be *", field="If-None-Match", fix="Send the ETag of an earlier answer."
        )
    if etag is None:
        return False
    opaque = _opaque(etag.decode("ascii"))
    return any(_opaque(each) == opaque for each in wanted.split(","))


def _opaque(tag: str) -> str:
    return tag.strip().removeprefix("W/")
