import base64
import hashlib
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from cynosure.common.errors import BadInput
from cynosure.storage.access.ports import StoreRequest
from cynosure.storage.access.s3.addresses import Endpoints
from cynosure.storage.access.s3.requests import S3Request, read_request
from cynosure.storage.config import S3Kms, S3Storage
from cynosure.storage.location import Location

STORE = "http://store.example:9000"
CONFIG = S3Storage(allowed_locations=("s3://lake/",), endpoint=STORE, path_style_access=True)
ENDPOINTS = Endpoints(CONFIG)
EMPTY = hashlib.sha256(b"").hexdigest()


def read(
    method: str, target: str, headers: dict[str, list[str]] | None = None, body: str | None = None
) -> S3Request:
    request = StoreRequest(method, STORE + target, headers or {}, "us-east-1", body)
    return read_request(request, ENDPOINTS, S3Kms())


def reached(request: S3Request) -> tuple[str, list[str]]:
    return request.reached.action, [each.text for each in request.reached.locations]


@pytest.mark.parametrize(
    ("method", "target", "action"),
    [
        ("GET", "/lake/t/a.parquet", "read"),
        ("GET", "/lake/t/a.parquet?versionId=3&partNumber=1&x-id=GetObject", "read"),
        ("HEAD", "/lake/t/a.parquet", "read"),
        ("PUT", "/lake/t/a.parquet?x-id=PutObject", "write"),
        ("PUT", "/lake/t/a.parquet?partNumber=1&uploadId=u%2Bv", "write"),
        ("POST", "/lake/t/a.parquet?uploads", "write"),
        ("POST", "/lake/t/a.parquet?uploads=", "write"),
        ("POST", "/lake/t/a.parquet?uploadId=1", "write"),
        ("DELETE", "/lake/t/a.parquet?uploadId=1", "write"),
        ("DELETE", "/lake/t/a.parquet", "delete"),
    ],
)
def test_what_clients_do_with_one_object_is_understood(method: str, target: str, action: str) -> None:
    assert reached(read(method, target)) == (action, ["s3://lake/t/a.parquet"])


@pytest.mark.parametrize(
    ("prefix", "place"),
    [
        ("t%2F", "s3://lake/t"),
        ("t/data%2F", "s3://lake/t/data"),
        ("t%2Fda", "s3://lake/t"),
        ("t", "s3://lake"),  # also lists t2/
        ("orders", "s3://lake"),
        ("", "s3://lake"),
        ("wh%2Ft%2F", "s3://lake/wh/t"),
        ("wh%2Ft", "s3://lake/wh"),
    ],
)
def test_a_listing_reaches_the_directory_in_which_its_prefix_is_looked_for(prefix: str, place: str) -> None:
    request = read("GET", f"/lake?list-type=2&prefix={prefix}&delimiter=%2F&max-keys=1&encoding-type=url")

    assert reached(request) == ("list", [place])


def test_a_listing_without_a_prefix_reaches_the_whole_bucket() -> None:
    assert reached(read("GET", "/lake?list-type=2&continuation-token=abc%3D")) == ("list", ["s3://lake"])


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", "/"),
        ("GET", "/lake"),
        ("HEAD", "/lake"),
        ("PUT", "/lake"),
        ("DELETE", "/lake"),
        ("POST", "/lake"),
        ("GET", "/lake?list-type=1"),
        ("GET", "/lake?prefix=t%2F"),
        ("GET", "/lake?versions"),
        ("GET", "/lake?uploads"),
        ("GET", "/lake?list-type=2&versions"),
        *(
            (method, f"/lake{key}?{name}")
            for key in ("", "/t/a")
            for method in ("GET", "PUT", "DELETE", "POST")
            for name in (
                *(
                    "acl",
                    "policy",
                    "tagging",
                    "versioning",
                    "cors",
                    "website",
                    "torrent",
                    "select",
                    "restore",
                ),
                *(
                    "lifecycle",
                    "notification",
                    "logging",
                    "replication",
                    "encryption",
                    "object-lock",
                    "legal-hold",
                ),
                *(
                    "retention",
                    "attributes",
                    "location",
                    "inventory",
                    "publicAccessBlock",
                    "append",
                    "renameObject",
                ),
            )
        ),
        ("GET", "/lake/t/a?%61cl"),
        ("GET", "/lake/t/a?response-content-type=text%2Fhtml"),
        ("GET", "/lake/t/a?uploadId=1"),
        ("GET", "/lake/t/a?X-Amz-Signature=1&X-Amz-Credential=2"),
        ("GET", "/lake/t/a?AWSAccessKeyId=1&Signature=2&Expires=3"),
        ("GET", "/lake/t/a?list-type=2&prefix=t%2F"),
        ("DELETE", "/lake/t/a?versionId=1"),
        ("PUT", "/lake/t/a?uploadId=1"),
        ("PUT", "/lake/t/a?partNumber=1"),
        ("PUT", "/lake/t/a?partNumber=0&uploadId=1"),
        ("PUT", "/lake/t/a?partNumber=1&uploadId="),
        ("POST", "/lake/t/a?delete"),
        ("POST", "/lake/t/a?uploads=1"),
        ("PATCH", "/lake/t/a"),
        ("OPTIONS", "/lake/t/a"),
        ("get", "/lake/t/a"),
    ],
)
def test_every_other_kind_of_request_is_refused(method: str, target: str) -> None:
    with pytest.raises(BadInput):
        read(method, target, body="<Delete><Object><Key>t/a</Key></Object></Delete>")


@pytest.mark.parametrize(
    "query",
    [
        "versionId=1&versionId=2",
        "versionId=1&version%49d=2",
        "versionId=a+b",
        "versionId=1;acl",
        "&versionId=1",
        "versionId=1&",
        "versionId=%zz",
        "versionId=%0a",
        f"versionId={'x' * 3000}",
    ],
)
def test_a_query_that_stores_could_read_differently_is_refused(query: str) -> None:
    with pytest.raises(BadInput) as refused:
        read("GET", f"/lake/t/a?{query}")

    assert refused.value.field == "uri"


@pytest.mark.parametrize(
    "path",
    [
        "/lake/t/../o/a",
        "/lake/t/./a",
        "/lake/t/%2e%2e/o/a",
        "/lake/t/%2E./o/a",
        "/lake/t/%252e%252e/o/a",
        "/lake/t//a",
        "/lake/t/%2fo",
        "/lake//t/a",
        "//lake/t/a",
        "/lake/t/%5c..%5co",
        "/lake/t/a%00",
        "/lake/t/a%0ab",
        "/lake/t/a%3Fb",
        "/lake/t/a%23b",
        "/LAKE/t/a",
        "/../lake/t/a",
        "/lake%2F..%2Fother/t/a",
    ],
)
def test_a_path_that_leads_somewhere_else_is_refused(path: str) -> None:
    for method in ("GET", "PUT", "DELETE"):
        with pytest.raises(BadInput):
            read(method, path)


@pytest.mark.parametrize("prefix", ["t/../", "t/..", "t/%2e%2e/o/", "/", "t//", "t/\\", "t/a\n", "t/*?"])
def test_a_prefix_that_leads_somewhere_else_is_refused(prefix: str) -> None:
    for name in ("prefix", "start-after"):
        with pytest.raises(BadInput):
            read("GET", f"/lake?list-type=2&{name}={quote(prefix, safe='')}")


def test_what_is_signed_is_written_anew() -> None:
    request = read("PUT", "/lake/t/a+b/%7e%41?uploadId=%7E%2B&partNumber=1&x-id=UploadPart")

    assert request.uri == f"{STORE}/lake/t/a%2Bb/~A?partNumber=1&uploadId=~%2B&x-id=UploadPart"
    assert request.query == "partNumber=1&uploadId=~%2B&x-id=UploadPart"
    assert request.address.path == "/lake/t/a%2Bb/~A"
    assert read("POST", "/lake/t/a?uploads").query == "uploads="
    assert read("POST", "/lake/t/a?uploads=").uri == f"{STORE}/lake/t/a?uploads"


def copy(source: str, method: str = "PUT", target: str = "/lake/t/a") -> list[str]:
    request = read(method, target, {"x-amz-copy-source": [source]})
    return [each.text for each in request.reached.sources]


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("lake/t/b", "s3://lake/t/b"),
        ("/lake/o/b", "s3://lake/o/b"),
        ("other/t/b?versionId=1", "s3://other/t/b"),
        ("lake/t/a%20b%3D1/%C3%BC", "s3://lake/t/a b=1/ü"),
    ],
)
def test_the_source_of_a_copy_is_reached_too(source: str, place: str) -> None:
    assert copy(source) == [place]
    assert copy(source, target="/lake/t/a?partNumber=1&uploadId=u") == [place]


@pytest.mark.parametrize(
    "source",
    [
        "",
        "lake",
        "//lake/t/b",
        "lake/t/../o/b",
        "lake/t/%2e%2e/o/b",
        "lake/t/%252e%252e/o/b",
        "lake/t/a+b",
        "lake%2Ft%2Fb",
        "lake/t/%62",
        "lake/t/a b",
        "lake/t/b?acl",
        "lake/t/b?versionId=1&x=2",
        "arn:aws:s3:eu-central-1:123456789012:accesspoint/a/object/t/b",
        "http://store.example:9000/lake/t/b",
    ],
)
def test_a_source_that_stores_could_read_differently_is_refused(source: str) -> None:
    with pytest.raises(BadInput) as refused:
        copy(source)

    assert refused.value.field == "headers.x-amz-copy-source"


@pytest.mark.parametrize(("method", "target"), [("GET", "/lake/t/a"), ("POST", "/lake/t/a?uploads")])
def test_only_a_write_copies(method: str, target: str) -> None:
    with pytest.raises(BadInput):
        copy("lake/t/b", method, target)


BODY = "<Delete><Object><Key>t/a</Key></Object><Object><Key>t/ü</Key></Object></Delete>"


def test_a_bulk_deletion_reaches_every_key_and_binds_its_body() -> None:
    md5 = base64.b64encode(hashlib.md5(BODY.encode()).digest()).decode()
    request = read("POST", "/lake?delete", {"Content-MD5": [md5]}, BODY)

    assert reached(request) == ("delete", ["s3://lake/t/a", "s3://lake/t/ü"])
    assert request.payload_sha256 == hashlib.sha256(BODY.encode()).hexdigest()
    assert request.covered["content-md5"] == md5


@pytest.mark.parametrize("body", [None, ""])
def test_a_bulk_deletion_without_its_body_is_refused(body: str | None) -> None:
    with pytest.raises(BadInput, match="without its body") as refused:
        read("POST", "/lake?delete", body=body)

    assert refused.value.field == "body"


@pytest.mark.parametrize("key", ["", "../o/a", "t//a", "t/a\n", "/t/a"])
def test_a_bulk_deletion_with_one_bad_key_is_refused(key: str) -> None:
    with pytest.raises(BadInput):
        read("POST", "/lake?delete", body=BODY.replace("t/ü", key))


@pytest.mark.parametrize(
    "headers",
    [
        {"x-amz-content-sha256": ["UNSIGNED-PAYLOAD"]},
        {"x-amz-content-sha256": [EMPTY]},
        {"content-md5": ["k0Ss6KH+rYW1LlUQZNQULQ=="]},
        {"x-amz-trailer": ["x-amz-checksum-crc32"]},
    ],
)
def test_a_bulk_deletion_with_another_body_is_refused(headers: dict[str, list[str]]) -> None:
    with pytest.raises(BadInput) as refused:
        read("POST", "/lake?delete", headers, BODY)

    assert refused.value.field == "body"


@pytest.mark.parametrize(
    ("method", "target", "headers", "expected"),
    [
        ("GET", "/lake/t/a", {}, EMPTY),
        ("DELETE", "/lake/t/a", {}, EMPTY),
        ("POST", "/lake/t/a?uploads", {}, EMPTY),
        ("PUT", "/lake/t/a", {}, "UNSIGNED-PAYLOAD"),
        ("POST", "/lake/t/a?uploadId=1", {}, "UNSIGNED-PAYLOAD"),
        ("GET", "/lake/t/a", {"X-Amz-Content-Sha256": ["UNSIGNED-PAYLOAD"]}, "UNSIGNED-PAYLOAD"),
        ("PUT", "/lake/t/a", {"x-amz-content-sha256": ["ab" * 32]}, "ab" * 32),
        # Python's client leaves this header to its signer.
        (
            "PUT",
            "/lake/t/a",
            {"x-amz-trailer": ["x-amz-checksum-crc32"]},
            "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
        ),
    ],
)
def test_what_is_said_about_a_body(
    method: str, target: str, headers: dict[str, list[str]], expected: str
) -> None:
    assert read(method, target, headers).payload_sha256 == expected


@pytest.mark.parametrize("given", ["STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "x", "AB" * 32])
def test_a_body_that_is_signed_in_pieces_is_refused(given: str) -> None:
    with pytest.raises(BadInput):
        read("PUT", "/lake/t/a", {"x-amz-content-sha256": [given]})


PIECES = st.sampled_from(
    [
        *("lake", "other", "t", "o", "t2", "/", "//", ".", "..", "%2e", "%2F", "%252e", "\\", "+", "?", "&"),
        *("=", "#", "%3F", "%5c", "%00", "%zz", "acl", "uploads", "uploadId=1", "list-type=2", "prefix="),
        *("versionId=1", "ü", ";"),
    ]
)


@settings(max_examples=500)
@given(st.sampled_from(["GET", "PUT", "POST", "DELETE"]), st.lists(PIECES, max_size=12))
@example("GET", ["lake", "/", "t", "/", "%2e", "%2e", "/", "o"])
@example("GET", ["lake", "?", "list-type=2", "&", "prefix=", "t"])
def test_whatever_is_understood_lies_where_it_is_said_to(method: str, pieces: list[str]) -> None:
    try:
        request = read(method, "/" + "".join(pieces))
    except BadInput:
        return
    # A naive reading of what is to be sent, by the standard library.
    sent = urlsplit(request.uri)
    params = dict(parse_qsl(sent.query, keep_blank_values=True))
    bucket, _, key = unquote(sent.path).removeprefix("/").partition("/")
    (place,) = request.reached.locations

    assert sent.netloc == "store.example:9000"
    if request.reached.action == "list":
        below = "/".join(place.segments) + "/" if place.segments else ""
        assert not key
        assert params["list-type"] == "2"
        assert params.get("prefix", "").startswith(below)
    else:
        assert (place.authority, "/".join(place.segments)) == (bucket, key.removesuffix("/"))
        assert not {"acl", "list-type", "prefix"} & params.keys()
    # Nothing in it means another place to anyone who resolves dots, doubles or backslashes.
    assert not {"", ".", ".."} & set(place.segments)
    assert not any(each in key for each in ("\\", "?", "#", "\0"))


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=40))
def test_every_key_that_can_be_a_location_can_be_signed(name: str) -> None:
    try:
        place = Location.parse(f"s3://lake/t/{name}")
    except BadInput:
        assume(False)
    request = read("GET", f"/lake/t/{quote(name, safe='')}")

    assert request.reached.locations == (place,)
    assert unquote(urlsplit(request.uri).path) == f"/lake/t/{name}"
