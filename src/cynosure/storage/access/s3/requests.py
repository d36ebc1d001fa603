"""What a request to S3 would do, and to which objects: the part of signing that decides.

    GET, HEAD key                      read
    GET bucket?list-type=2&prefix=     list
    PUT key; with a copy's source      write, and read the source
    POST key?uploads, PUT key?partNumber&uploadId, POST key?uploadId, DELETE key?uploadId      write
    DELETE key; POST bucket?delete     delete

A maintainer must not break: everything else is refused, by methods, parameters and headers that are listed
here and not by those that are known to be dangerous. The answer is made of the same values that are signed.
"""

import base64
import hashlib
import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from msgspec import Struct

from cynosure.common.errors import BadInput
from cynosure.storage.access.ports import Reached, StoreRequest
from cynosure.storage.access.s3.addresses import Address, Endpoints, decode_once, encode_path
from cynosure.storage.access.s3.covered_headers import COPY_SOURCE, PAYLOAD_HASH, TRAILER, read_headers
from cynosure.storage.access.s3.deletion import read_deletion
from cynosure.storage.access.s3.sigv4 import UNSIGNED_PAYLOAD, encode_query
from cynosure.storage.config import S3Kms
from cynosure.storage.location import Location

_EMPTY_SHA256: Final = hashlib.sha256(b"").hexdigest()
_UNSIGNED_WITH_TRAILER: Final = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_MAX_VALUE_CHARS: Final = 2_048

_VALUES: Final = {
    "delete": re.compile(""),
    "delimiter": re.compile("/?"),
    "encoding-type": re.compile("url"),
    "fetch-owner": re.compile("true|false"),
    "list-type": re.compile("2"),
    "max-keys": re.compile("[0-9]{1,5}"),
    "partNumber": re.compile("[1-9][0-9]{0,4}"),
    "uploadId": re.compile("[!-~]+"),
    "uploads": re.compile(""),
    "versionId": re.compile("[!-~]+"),
    "x-id": re.compile("[A-Za-z]{1,64}"),
}
"""What parameters may say; those that are not named here, any printable text."""


class _Operation(NamedTuple):
    action: Literal["read", "list", "write", "delete"]
    required: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    has_body: bool = False
    """Whether there may be one that is not looked at."""


_OF_LISTING: Final = frozenset(
    {"prefix", "delimiter", "continuation-token", "start-after", "max-keys", "encoding-type", "fetch-owner"}
)
_READ: Final = _Operation("read", optional=frozenset({"versionId", "partNumber"}))
_DELETE_MANY: Final = _Operation("delete", frozenset({"delete"}))
_ON_OBJECT: Final = {
    "GET": (_READ,),
    "HEAD": (_READ,),
    "PUT": (
        _Operation("write", has_body=True),
        _Operation("write", frozenset({"partNumber", "uploadId"}), has_body=True),
    ),
    "POST": (
        _Operation("write", frozenset({"uploads"})),
        _Operation("write", frozenset({"uploadId"}), has_body=True),
    ),
    "DELETE": (_Operation("delete"), _Operation("write", frozenset({"uploadId"}))),
}
_ON_BUCKET: Final = {
    "GET": (_Operation("list", frozenset({"list-type"}), _OF_LISTING),),
    "POST": (_DELETE_MANY,),
}


class S3Request(Struct, frozen=True):
    """A request that is fully understood."""

    method: str
    address: Address
    query: str
    """As it is signed."""
    uri: str
    """As it is to be sent."""
    covered: Mapping[str, str]
    """Headers of the client that the signature has to cover, by name in lower case."""
    payload_sha256: str
    headers: Mapping[str, list[str]]
    """All of the client's, as they came."""
    reached: Reached


def read_request(request: StoreRequest, endpoints: Endpoints, kms: S3Kms) -> S3Request:
    """What a request means. `BadInput` names the part that is not understood or not allowed."""
    address = endpoints.read(request.uri)
    params = _read_query(address.query)
    operation = _find_operation(request.method, address, params)
    covered = read_headers(request.headers, host=address.host, kms=kms)
    keys = _read_body(request.body) if operation is _DELETE_MANY else None
    query = encode_query(params.items())
    # A parameter without a value is signed with an equals sign and sent without one, as every client does.
    sent = "&".join(part.removesuffix("=") for part in query.split("&"))
    root = f"{address.scheme}://{address.host}{address.path}"
    return S3Request(
        method=request.method,
        address=address,
        query=query,
        uri=f"{root}?{sent}" if sent else root,
        covered=covered,
        payload_sha256=_payload(request, operation, covered, is_checked=keys is not None),
        headers=request.headers,
        reached=Reached(
            operation.action,
            _touched(address, operation, params, keys),
            _sources(request.method, covered.get(COPY_SOURCE)),
        ),
    )


def _read_query(text: str) -> dict[str, str]:
    params: dict[str, str] = {}
    for part in text.split("&") if text else ():
        name, _, value = (decode_once(each, field="uri") for each in part.partition("="))
        # A plus sign is a blank to some stores and itself to others; of two equal names each takes another.
        if "+" in part or ";" in part or name in params:
            raise _refuse_uri("A query can be read in two ways")
        params[name] = value
        pattern = _VALUES.get(name)
        if len(value) > _MAX_VALUE_CHARS or not (
            pattern.fullmatch(value) if pattern else value.isprintable()
        ):
            raise _refuse_uri("A parameter of a request has a value that is not served")
    return params


def _find_operation(method: str, address: Address, params: Mapping[str, str]) -> _Operation:
    names = params.keys() - {"x-id"}  # what an SDK calls the operation; stores do not read it
    for operation in (_ON_OBJECT if address.key else _ON_BUCKET).get(method, ()):
        if operation.required <= names <= operation.required | operation.optional:
            return operation
    raise BadInput(
        "Requests of this kind are not signed",
        field="uri",
        fix="Read, list, write or delete objects; buckets, versions and access rules are not served.",
        method=ascii(method[:16])[1:-1],
    )


def _read_body(body: str | None) -> list[str]:
    if not body:
        raise BadInput(
            "A request that deletes many objects comes without its body",
            field="body",
            fix="Send the body of the request, or delete the objects one by one.",
        )
    return read_deletion(body)


def _touched(
    address: Address, operation: _Operation, params: Mapping[str, str], keys: list[str] | None
) -> tuple[Location, ...]:
    bucket = f"s3://{address.bucket}/"
    if keys is not None:
        return tuple([_object(bucket, key, field="body") for key in keys])
    if operation.action != "list":
        return (_object(bucket, address.key, field="uri"),)
    for name in ("prefix", "start-after"):
        Location.parse(bucket + params.get(name, ""), field="uri")
    # What begins with "a/b" may be "a/b2/c": it is looked for in all of "a".
    directory, _, _ = params.get("prefix", "").rpartition("/")
    return (Location.parse(bucket + directory, field="uri"),)


def _object(bucket: str, key: str, *, field: str) -> Location:
    if not key:
        raise BadInput("A key is empty", field=field, fix="Name an object.")
    return Location.parse(bucket + key, field=field)


def _sources(method: str, source: str | None) -> tuple[Location, ...]:
    if source is None:
        return ()
    field = f"headers.{COPY_SOURCE}"
    place, _, version = source.removeprefix("/").partition("?")
    decoded = decode_once(place, field=field)
    # The client's own header is what is sent, so it must be written the one way that every store reads alike.
    is_plain = encode_path(decoded) == place and "%" not in decoded and "/" in decoded
    if method != "PUT" or not is_plain or not re.fullmatch(r"(?:versionId=[\w.~-]+)?", version, re.ASCII):
        raise BadInput(
            "The source of a copy can be read in two ways",
            field=field,
            fix="Write bucket/key, encoded as UTF-8, byte by byte.",
        )
    return (Location.parse(f"s3://{decoded}", field=field),)


def _payload(
    request: StoreRequest, operation: _Operation, covered: Mapping[str, str], *, is_checked: bool
) -> str:
    """What the signature says about the body."""
    given = covered.get(PAYLOAD_HASH)
    if is_checked:
        # Bound: no other body can be sent with this signature than the one whose keys were checked.
        body = (request.body or "").encode()
        expected = hashlib.sha256(body).hexdigest()
        md5 = base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
        if given not in (None, expected) or covered.get("content-md5", md5) != md5 or TRAILER in covered:
            raise BadInput(
                "A body has another hash than the request says", field="body", fix="Send it as is."
            )
        return expected
    if not operation.has_body:
        expected = _EMPTY_SHA256
    elif TRAILER in covered:
        expected = _UNSIGNED_WITH_TRAILER
    else:
        expected = UNSIGNED_PAYLOAD
    if given is None or given == expected:
        return expected
    if given in (UNSIGNED_PAYLOAD, _UNSIGNED_WITH_TRAILER) or _SHA256.fullmatch(given):
        return given
    raise BadInput(
        "A body is to be signed piece by piece",
        field=f"headers.{PAYLOAD_HASH}",
        fix="Turn chunked encoding off, or leave the payload unsigned.",
    )


def _refuse_uri(message: str) -> BadInput:
    return BadInput(message, field="uri", fix="Write each parameter once, with percent sequences.")
