import msgspec
import pytest

from cynosure.api.iceberg.access import AccessAnswers, encode_credentials, table_path
from cynosure.catalog.file_access.giving import Access
from cynosure.catalog.managed.answer import NO_CONFIG, TableAnswer
from cynosure.catalog.names import Identifier
from cynosure.storage.access.ports import Credential, Vended

T = Identifier(("a", "b c"), "t/ü")
PATH = "v1/lake%2F1/namespaces/a%1Fb%20c/tables/t%2F%C3%BC"
PLAIN = {"client.region": "eu-west-1"}


def vend(config: dict[str, str]) -> Vended:
    prefixes = ("s3://bkt/t", "s3://bkt/more")
    return Vended(tuple(Credential(prefix, config) for prefix in prefixes), 1_000, 2_000)


def told_of(access: Access) -> dict[str, object]:
    told = AccessAnswers().tell(access, "lake/1", T)
    document: dict[str, object] = msgspec.json.decode(b"{%b}" % told.json)
    return document


def test_the_path_of_a_table_is_encoded_once():
    assert table_path("lake/1", T) == PATH


def test_without_anything_to_tell_the_configuration_is_empty():
    assert AccessAnswers().tell(Access(), "lake", T).json is NO_CONFIG


def test_what_every_client_is_told_needs_no_asking():
    assert told_of(Access(PLAIN)) == {"config": PLAIN}


@pytest.mark.parametrize(
    ("own", "refresh"),
    [
        ("s3.access-key-id", "client.refresh-credentials-endpoint"),
        ("gcs.oauth2.token", "gcs.oauth2.refresh-credentials-endpoint"),
        ("adls.account-name", "adls.refresh-credentials-endpoint"),
    ],
)
def test_credentials_are_told_per_prefix_and_for_older_clients_in_the_configuration(own: str, refresh: str):
    told = told_of(Access(PLAIN, vend({own: "x"})))

    assert told == {
        "config": {**PLAIN, own: "x", refresh: f"{PATH}/credentials"},
        "storage-credentials": [
            {"prefix": "s3://bkt/t", "config": {own: "x"}},
            {"prefix": "s3://bkt/more", "config": {own: "x"}},
        ],
    }


def test_a_client_that_is_signed_for_is_told_where_and_gets_no_key():
    told = told_of(Access(PLAIN, is_signed=True))

    assert told == {
        "config": {
            **PLAIN,
            "s3.remote-signing-enabled": "true",
            "s3.signer": "S3V4RestSigner",
            "s3.signer.endpoint": f"{PATH}/sign",
            "signer.endpoint": f"{PATH}/sign",
            "py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO",
        }
    }


def test_other_credentials_and_other_ways_have_another_tag():
    answers = AccessAnswers()
    config = {"s3.access-key-id": "x"}
    ways = [
        Access(PLAIN),
        Access(PLAIN, vend(config)),
        # Also those that expire in the same moment.
        Access(PLAIN, vend({"s3.access-key-id": "y"})),
        Access(PLAIN, is_signed=True),
    ]

    assert len({answers.tell(way, "lake", T).tag for way in ways}) == len(ways)


def test_the_same_credentials_are_encoded_once_for_each_name_of_the_catalog():
    answers = AccessAnswers()
    access = Access(PLAIN, vend({"s3.access-key-id": "x"}))

    first = answers.tell(access, "lake", T)

    assert answers.tell(access, "lake", T) is first
    assert b"v1/pond/" in answers.tell(access, "pond", T).json


def test_newer_credentials_are_a_list_that_may_be_empty():
    assert encode_credentials(None) == b'{"storage-credentials":[]}'
    found = msgspec.json.decode(encode_credentials(vend({"k": "v"})))
    assert [each["prefix"] for each in found["storage-credentials"]] == ["s3://bkt/t", "s3://bkt/more"]


def test_restrictions_are_told_beside_the_metadata():
    answer = TableAnswer(b'{"a":1}', "s3://bkt/t/m.json", b'W/"1"', restrictions=b'{"r":2}')

    assert msgspec.json.decode(answer.load_body()) == {
        "metadata-location": "s3://bkt/t/m.json",
        "metadata": {"a": 1},
        "read-restrictions": {"r": 2},
        "config": {},
    }
