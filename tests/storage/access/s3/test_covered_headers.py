import pytest

from cynosure.common.errors import BadInput
from cynosure.storage.access.s3.covered_headers import read_headers
from cynosure.storage.config import S3Kms

KEY = "arn:aws:kms:eu-central-1:123456789012:key/one"
OTHER_KEY = "arn:aws:kms:eu-central-1:123456789012:key/other"
SSE = "x-amz-server-side-encryption"
SSE_KEY = "x-amz-server-side-encryption-aws-kms-key-id"


def read(headers: dict[str, list[str]], kms: S3Kms | None = None) -> dict[str, str]:
    return read_headers(headers, host="store.example:9000", kms=kms or S3Kms())


def test_headers_of_storage_are_covered_and_those_of_the_transfer_are_not() -> None:
    headers = {
        "Host": ["STORE.example:9000"],
        "User-Agent": ["an SDK"],
        "amz-sdk-request": ["attempt=1; max=6"],
        "Range": ["bytes=1-"],
        "Expect": ["100-continue"],
        "If-None-Match": ["*"],
        "Content-Length": ["5"],
        "Content-Type": ["application/xml"],
        "Content-MD5": ["k0Ss6KH+rYW1LlUQZNQULQ=="],
        "X-Amz-Checksum-CRC32": ["NhCmhg=="],
        "x-amz-te": ["append-md5"],
        "x-amz-meta-made-by": ["  two   blanks "],
    }

    assert read(headers) == {
        "content-md5": "k0Ss6KH+rYW1LlUQZNQULQ==",
        "content-type": "application/xml",
        "x-amz-checksum-crc32": "NhCmhg==",
        "x-amz-te": "append-md5",
        "x-amz-meta-made-by": "two blanks",
    }


@pytest.mark.parametrize(
    "name",
    [
        "x-amz-acl",
        "X-Amz-Acl",
        "x-amz-grant-read",
        "x-amz-grant-full-control",
        "x-amz-tagging",
        "x-amz-website-redirect-location",
        "x-amz-object-lock-mode",
        "x-amz-bypass-governance-retention",
        "x-amz-mfa",
        "x-amz-rename-source",
        "x-amz-write-offset-bytes",
        "x-amz-request-payer",
        "x-amz-security-token",
        "x-amz-date",
        "x-amz-server-side-encryption-context",
        "x-amz-server-side-encryption-customer-key",
        "x-amz-something-new",
    ],
)
def test_a_header_that_is_not_known_to_be_harmless_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="not allowed in signed requests") as refused:
        read({name: ["x"]})

    assert refused.value.field == f"headers.{name.lower()}"


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": ["AWS4-HMAC-SHA256 …"]},
        {"Host": ["evil.example"]},
        {"Host": ["store.example:9000", "evil.example"]},
        {"x-amz-te": ["a"], "X-Amz-Te": ["b"]},
        {"x-amz-te": ["a", "b"]},
        {"x-amz-te": []},
        {"x-amz-te": ["a\nx-amz-acl: public-read"]},
        {"x-amz-meta-a": ["ü"]},
        {"x-amz-meta-a\n": ["b"]},
        {"x-amz-meta-a:b": ["c"]},
    ],
)
def test_a_header_that_could_be_sent_as_another_is_refused(headers: dict[str, list[str]]) -> None:
    with pytest.raises(BadInput) as refused:
        read(headers)

    assert refused.value.field.startswith("headers.")
    assert refused.value.field.isprintable()


def test_files_may_be_encrypted_with_keys_of_the_catalog() -> None:
    kms = S3Kms(current_key=KEY, allowed_keys=(OTHER_KEY,))

    for key in (KEY, OTHER_KEY):
        assert read({SSE: ["aws:kms"], SSE_KEY: [key]}, kms)[SSE_KEY] == key
    assert read({SSE: ["AES256"]}, kms) == {SSE: "AES256"}


@pytest.mark.parametrize(
    "headers",
    [
        {SSE: ["aws:kms"], SSE_KEY: [OTHER_KEY]},
        {SSE: ["aws:kms"]},
        {SSE_KEY: [KEY]},
        {SSE: ["AES256"], SSE_KEY: [KEY]},
        {SSE: ["aws:kms:dsse"], SSE_KEY: [KEY]},
        {SSE: [""]},
    ],
)
def test_other_encryption_is_refused(headers: dict[str, list[str]]) -> None:
    with pytest.raises(BadInput):
        read(headers, S3Kms(current_key=KEY))


def test_without_a_key_of_its_own_a_catalog_takes_none() -> None:
    with pytest.raises(BadInput):
        read({SSE: ["aws:kms"], SSE_KEY: [KEY]})
