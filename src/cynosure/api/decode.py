"""Bodies and query strings into the structs a route declares.

A maintainer must not break: whatever the client sends ends in a value of the declared type or in a
4xx that names the field; no decoder error passes.
"""

import re
from typing import Any

import msgspec
from msgspec.inspect import CollectionType, UnionType

from cynosure.api.asgi import Receive, Scope
from cynosure.api.choices import find_choices
from cynosure.api.errors import ClientGone, UnsupportedMediaType
from cynosure.api.percent import decode_query
from cynosure.common.errors import BadInput

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[][{}]')
_DEEP = 100
_FIELD = re.compile(r"^(?P<what>.*) - at `\$?\.?(?P<field>.*)`$", re.DOTALL)


async def read_body(receive: Receive) -> bytes:
    """The whole body. Size and time are limited by the limits middleware, through `receive`."""
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body", False):
        body: bytes = message.get("body", b"")
        return body
    chunks: list[bytes] = []
    while message["type"] == "http.request":
        chunks.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(chunks)
        message = await receive()
    raise ClientGone("The client closed the connection before the body was complete")


class BodyDecoder:
    """JSON bodies into one type."""

    def __init__(self, body_type: Any, *, is_optional: bool = False) -> None:
        self._type = body_type
        self._decode = msgspec.json.Decoder(body_type).decode
        self._is_optional = is_optional

    async def read(self, scope: Scope, receive: Receive) -> Any:
        """Read and decode the body of this request; `None` for none, where there may be none."""
        if not self._is_optional:
            # Before anything is read: what is not JSON need not come at all.
            _require_json(scope)
        return self.parse(scope, await read_body(receive))

    def parse(self, scope: Scope, body: bytes) -> Any:
        """Decode the body of this request, which has been read."""
        if self._is_optional and not body:
            return None
        _require_json(scope)
        return self.decode(body)

    def decode(self, body: bytes) -> Any:
        """Decode a body, or a part of one that was left as it is."""
        try:
            # The decoder checks only the strings it makes, but what it leaves raw is stored too.
            body.decode()
            return self._decode(body)
        except msgspec.ValidationError as error:
            raise _bad_field(error, "body", self._type) from error
        except RecursionError as error:
            raise BadInput(
                "The body is nested too deeply", field=_find_deep_member(body), fix="Nest less."
            ) from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if not body:
                raise BadInput("The body is empty", field="body", fix="Send a JSON body.") from error
            raise BadInput(
                "The body is not valid JSON", field="body", fix="Send valid JSON in UTF-8.", reason=str(error)
            ) from error


class QueryDecoder:
    """Query strings into one struct. Unknown names are ignored, as HTTP clients add their own."""

    def __init__(self, query_type: type[msgspec.Struct]) -> None:
        self._type = query_type
        info = msgspec.inspect.type_info(query_type)
        fields = info.fields if isinstance(info, msgspec.inspect.StructType) else ()
        self._is_list = {field.encode_name: _is_collection(field.type) for field in fields}

    def decode(self, raw: bytes) -> Any:
        """Decode a raw query string."""
        values: dict[str, Any] = {}
        for name, value in decode_query(raw) if raw else ():
            is_list = self._is_list.get(name)
            if is_list:
                values.setdefault(name, []).append(value)
            elif is_list is not None:
                if name in values:
                    raise BadInput(
                        "A query parameter is given more than once",
                        field=name,
                        fix="Give it once.",
                    )
                values[name] = value
        try:
            return msgspec.convert(values, self._type, strict=False)
        except msgspec.ValidationError as error:
            raise _bad_field(error, "query", self._type) from error


def _find_deep_member(body: bytes) -> str:
    """The member of the body that is nested deeper than any that is meant; `body` when there is none."""
    depth, member = 0, "body"
    for found in _TOKEN.finditer(body):
        token = found[0]
        if token in b"{[":
            depth += 1
            if depth > _DEEP:
                return member
        elif token in b"}]":
            depth -= 1
        elif depth == 1:
            member = token[1:-1].decode()[:100]
    return "body"


def _is_collection(field_type: msgspec.inspect.Type) -> bool:
    if isinstance(field_type, UnionType):
        return any(isinstance(member, CollectionType) for member in field_type.types)
    return isinstance(field_type, CollectionType)


def _require_json(scope: Scope) -> None:
    for name, value in scope["headers"]:
        if name == b"content-type":
            if value == b"application/json":
                return
            media_type = value.split(b";", 1)[0].strip().lower()
            if media_type == b"application/json" or media_type.endswith(b"+json"):
                return
            raise UnsupportedMediaType(
                "The body's media type is not JSON",
                fix="Send JSON with Content-Type: application/json.",
                content_type=value.decode("latin-1"),
            )
    raise UnsupportedMediaType(
        "The request has no Content-Type", fix="Send JSON with Content-Type: application/json."
    )


def _bad_field(error: msgspec.ValidationError, whole: str, of: Any) -> BadInput:
    match = _FIELD.match(str(error))
    what, field = (match["what"], match["field"] or whole) if match else (str(error), whole)
    words = find_choices(of, field) if what.startswith("Invalid ") else ()
    return BadInput(
        f"The {whole} does not have the expected shape",
        field=field,
        fix=f"Choose one of {', '.join(words)}."
        if words
        else "Correct this field; the shapes are in /openapi.json.",
        reason=what,
    )
