import pytest

from cynosure.common.errors import BadInput
from cynosure.storage.access.s3.addresses import Address, Endpoints
from cynosure.storage.config import S3Storage

PATH_STYLE = S3Storage(
    allowed_locations=("s3://lake/",), endpoint="http://store.example:9000", path_style_access=True
)
BUCKET_HOSTS = S3Storage(allowed_locations=("s3://lake/",), endpoint="https://store.example")
AMAZON = S3Storage(allowed_locations=("s3://lake/",), region="eu-central-1")


def read(config: S3Storage, uri: str) -> Address:
    return Endpoints(config).read(uri)


def test_a_bucket_is_read_from_the_path() -> None:
    address = read(PATH_STYLE, "http://store.example:9000/lake/a/b.parquet?versionId=1")

    assert address == Address(
        "http", "store.example:9000", "lake", "a/b.parquet", "/lake/a/b.parquet", "versionId=1"
    )


@pytest.mark.parametrize("uri", ["http://store.example:9000/lake", "http://store.example:9000/lake/?x"])
def test_a_bucket_has_no_key(uri: str) -> None:
    assert read(PATH_STYLE, uri)[2:4] == ("lake", "")


def test_a_bucket_is_read_from_the_host_where_the_store_does_so() -> None:
    address = read(BUCKET_HOSTS, "https://lake.store.example/a/b")

    assert (address.bucket, address.key, address.path) == ("lake", "a/b", "/a/b")


def test_a_bucket_in_the_host_is_refused_where_the_store_reads_the_path() -> None:
    # Such a store would read this as "secret" in the bucket "wh".
    with pytest.raises(BadInput, match="not for this catalog's storage"):
        read(PATH_STYLE, "http://lake.store.example:9000/wh/secret")


@pytest.mark.parametrize(
    "uri",
    [
        "https://s3.eu-central-1.amazonaws.com/lake/a",
        "https://lake.s3.eu-central-1.amazonaws.com/a",
        "https://lake.s3.eu-central-1.amazonaws.com:443/a",
        "HTTPS://LAKE.s3.eu-central-1.amazonaws.com/a",
    ],
)
def test_amazon_is_known_without_an_endpoint(uri: str) -> None:
    address = read(AMAZON, uri)

    assert (address.bucket, address.key) == ("lake", "a")


def test_the_oldest_region_has_an_older_name_too() -> None:
    oldest = S3Storage(allowed_locations=("s3://lake/",), region="us-east-1")

    assert read(oldest, "https://lake.s3.amazonaws.com/a").bucket == "lake"
    with pytest.raises(BadInput):
        read(AMAZON, "https://lake.s3.amazonaws.com/a")


def test_china_has_names_of_its_own() -> None:
    china = S3Storage(allowed_locations=("s3://lake/",), region="cn-north-1")

    assert read(china, "https://lake.s3.cn-north-1.amazonaws.com.cn/a").bucket == "lake"


@pytest.mark.parametrize(
    "uri",
    [
        "https://store.example:9000/lake/a",  # another scheme
        "http://store.example/lake/a",  # another port
        "http://store.example.evil.example:9000/lake/a",
        "http://evil.example/store.example:9000/lake/a",
        "http://user@store.example:9000/lake/a",
        "http://store.example:9000@evil.example/lake/a",
        "http://evil.example#@store.example:9000/lake/a",
        "http://store.example:9000\\@evil.example/lake/a",
        "//store.example:9000/lake/a",
        "/lake/a",
        "s3://lake/a",
        "http://store.example:9000/lake/a#b",
        "http://store.example:9000/lake/a\\b",
        "http://store.example:9000/lake/a b",
        "http://store.example:9000/lake/a\nb",
        "http://store.example:9000/lake/a\tb",
        "\nhttp://store.example:9000/lake/a",
        "http://store.example:9000/lake/ü",
        "http://store.example:9000/lake/a?x=\n",
        "http://store.example:9000/lake/%zz",
        "http://store.example:9000/lake/a%",
        "http://store.example:9000/lake/%ff",
        "http://store.example:9000/lake/%c0%ae",  # a dot, too long
        "",
    ],
)
def test_what_is_not_this_store_or_can_be_read_in_two_ways_is_refused(uri: str) -> None:
    with pytest.raises(BadInput) as refused:
        read(PATH_STYLE, uri)

    assert refused.value.field == "uri"


def test_a_path_is_decoded_once_and_written_anew() -> None:
    address = read(PATH_STYLE, "http://store.example:9000/lake/a+b=c/%7Ed/%41%2f%c3%bc%252e")

    assert address.key == "a+b=c/~d/A/ü%2e"
    assert address.path == "/lake/a%2Bb%3Dc/~d/A/%C3%BC%252e"
