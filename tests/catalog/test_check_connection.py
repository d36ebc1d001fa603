"""What connections are refused, each by its field and with what to do."""

from typing import Any

import pytest
from msgspec import structs

from cynosure.catalog.check_connection import ConnectionRules, check_connection, check_secrets
from cynosure.catalog.connection import (
    Authentication,
    Bearer,
    Connection,
    ConnectionSecrets,
    ConnectionType,
    Implicit,
    OAuth,
    Password,
    SigV4,
)
from cynosure.common.errors import BadInput
from cynosure.common.secrets import Secret

RULES = ConnectionRules()
REST = Connection(
    type="ICEBERG_REST", uri="https://catalog.example.com/api", authentication=OAuth(client_id="us")
)
GLUE = Connection(
    type="GLUE",
    uri="https://glue.eu-west-1.amazonaws.com",
    authentication=SigV4(signing_region="eu-west-1", signing_name="glue"),
)
SQL = Connection(
    type="SQL", uri="postgresql://db:5432/lake", authentication=Password(user="us"), remote_name="sales"
)
HIVE = Connection(type="HIVE", uri="thrift://localhost:9083", authentication=Implicit())


def refused(connection: Connection, rules: ConnectionRules = RULES) -> dict[str, Any]:
    with pytest.raises(BadInput) as caught:
        check_connection(connection, rules)
    assert caught.value.fix
    return {**caught.value.details, "fix": caught.value.fix}


@pytest.mark.parametrize(
    "connection",
    [
        REST,
        structs.replace(REST, authentication=Bearer()),
        structs.replace(REST, authentication=SigV4(signing_region="us-east-1")),
        structs.replace(REST, uri="http://127.0.0.1:8181/api/catalog"),
        structs.replace(REST, uri="http://[::1]:8181/api/catalog"),
        structs.replace(REST, properties={"header.X-Team": "lake"}),
        GLUE,
        structs.replace(GLUE, remote_name="123456789012", warehouse="s3://bucket/lake"),
        SQL,
    ],
)
def test_what_makes_sense_is_taken(connection: Connection) -> None:
    check_connection(connection, RULES)


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "catalog.example.com",
        "ftp://catalog.example.com",
        "file:///etc/passwd",
        "https://",
        "https://us:hunter2@catalog.example.com",
        "https://us@catalog.example.com",
        "https://catalog.example.com#part",
        "https://catalog.example.com?token=hunter2",
        "https://catalog.example.com/a b",
        "https://catalog.example.com/\nx",
        "https://catalog.example.com:0",
        "https://catalog.example.com:99999",
        "https://[::1",
        "https://" + "a" * 3000,
        "thrift://catalog.example.com:9083",
    ],
)
def test_uris_of_rest_remotes_are_plain_web_addresses(uri: str) -> None:
    found = refused(structs.replace(REST, uri=uri))

    assert found["field"] == "connectionConfigInfo.uri"
    assert "hunter2" not in str(found)


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "metadata.google.internal",
        "[fd00:ec2::254]",
        "2852039166",
        "100.100.100.200",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:a9fe:a9fe::1]",
        "[::a9fe:a9fe]",
    ],
)
def test_what_a_cloud_tells_its_machines_is_no_remote(host: str) -> None:
    rules = ConnectionRules(is_insecure_allowed=True)

    assert refused(structs.replace(REST, uri=f"http://{host}/"), rules)["field"].endswith(".uri")
    oauth = OAuth(client_id="us", token_uri=f"https://{host}/token")
    found = refused(structs.replace(REST, authentication=oauth), rules)
    assert found["field"].endswith(".tokenUri")


@pytest.mark.parametrize(
    ("connection", "field"),
    [
        (structs.replace(REST, uri="http://catalog.example.com"), "uri"),
        (structs.replace(HIVE, uri="thrift://hive.example.com:9083"), "uri"),
        (structs.replace(GLUE, uri="http://glue.example.com"), "uri"),
        (
            structs.replace(REST, authentication=OAuth(client_id="us", token_uri="http://t.example.com/x")),
            "authenticationParameters.tokenUri",
        ),
    ],
)
def test_what_others_can_listen_to_needs_an_operator(connection: Connection, field: str) -> None:
    strict = ConnectionRules(is_implicit_allowed=True)
    found = refused(connection, strict)

    assert found["field"] == f"connectionConfigInfo.{field}"
    assert "federation.allow_insecure" in found["fix"]
    check_connection(connection, structs.replace(strict, is_insecure_allowed=True))


@pytest.mark.parametrize("connection", [HIVE, structs.replace(REST, authentication=Implicit())])
def test_no_authentication_needs_an_operator(connection: Connection) -> None:
    found = refused(connection)

    assert found["field"] == "connectionConfigInfo.authenticationParameters.authenticationType"
    assert "federation.allow_implicit" in found["fix"]
    check_connection(connection, ConnectionRules(is_implicit_allowed=True))


@pytest.mark.parametrize(
    ("connection", "way"),
    [
        (REST, Password(user="us")),
        (HIVE, OAuth(client_id="us")),
        (GLUE, Bearer()),
        (GLUE, Implicit()),
        (SQL, Implicit()),
    ],
)
def test_each_kind_has_its_ways_of_authentication(connection: Connection, way: Authentication) -> None:
    rules = ConnectionRules(is_implicit_allowed=True)

    found = refused(structs.replace(connection, authentication=way), rules)

    assert found["field"] == "connectionConfigInfo.authenticationParameters.authenticationType"
    assert found["fix"].startswith("Use ")


def test_an_operator_turns_all_of_it_off() -> None:
    assert "federation.enabled" in refused(REST, ConnectionRules(is_enabled=False))["fix"]


@pytest.mark.parametrize(
    ("connection", "field"),
    [
        (structs.replace(SQL, remote_name=None), "remoteCatalogName"),
        (structs.replace(SQL, remote_name="a\nb"), "remoteCatalogName"),
        (structs.replace(SQL, uri="postgresql://db:5432"), "uri"),
        (structs.replace(SQL, uri="postgresql://db:5432/a/b"), "uri"),
        (structs.replace(SQL, uri="sqlite:///etc/x.db"), "uri"),
        (structs.replace(HIVE, uri="thrift://localhost"), "uri"),
        (structs.replace(HIVE, uri="thrift://localhost:9083/x"), "uri"),
        (structs.replace(HIVE, warehouse="x" * 2000), "warehouse"),
        (structs.replace(REST, authentication=OAuth(client_id="")), "authenticationParameters.clientId"),
        (structs.replace(REST, authentication=OAuth(client_id="a:b")), "authenticationParameters.clientId"),
        (
            structs.replace(REST, authentication=OAuth(client_id="a", scopes=("ok", ""))),
            "authenticationParameters.scopes",
        ),
        (
            structs.replace(GLUE, authentication=SigV4(signing_region="x.evil.example")),
            "authenticationParameters.signingRegion",
        ),
        (
            structs.replace(GLUE, authentication=SigV4(signing_region="eu-west-1", role_arn="lake")),
            "authenticationParameters.roleArn",
        ),
        (
            structs.replace(GLUE, authentication=SigV4(signing_region="eu-west-1", external_id="1")),
            "authenticationParameters.externalId",
        ),
        (structs.replace(REST, properties={"client-secret": "x"}), "properties"),
        (structs.replace(REST, properties={"header.Authorization": "Bearer x"}), "properties"),
        (structs.replace(REST, properties={"header.cookie": "x"}), "properties"),
        (structs.replace(REST, properties={"proxy": "http://us:hunter2@proxy"}), "properties"),
        (structs.replace(REST, properties={"header.x": "a\r\nb"}), "properties"),
        (structs.replace(REST, properties={"header.x": ""}), "properties"),
        (structs.replace(REST, properties={"header.x y": "z"}), "properties"),
        (structs.replace(REST, properties={"header.Host": "evil.example.com"}), "properties"),
        (structs.replace(REST, properties={"oauth2-server-uri": "https://evil.example.com"}), "properties"),
        (structs.replace(HIVE, properties={"header.x": "y"}), "properties"),
    ],
)
def test_what_is_wrong_is_told_by_its_field(connection: Connection, field: str) -> None:
    found = refused(connection, ConnectionRules(is_implicit_allowed=True))

    assert found["field"] == f"connectionConfigInfo.{field}"
    assert "hunter2" not in str(found)


ALL: dict[ConnectionType, tuple[Connection, ConnectionSecrets]] = {
    "ICEBERG_REST": (REST, ConnectionSecrets(client_secret=Secret("hunter2"))),
    "GLUE": (
        GLUE,
        ConnectionSecrets(access_key_id=Secret("AKIA"), secret_access_key=Secret("hunter2")),
    ),
    "SQL": (SQL, ConnectionSecrets(password=Secret("hunter2"))),
    "HIVE": (HIVE, ConnectionSecrets()),
}


@pytest.mark.parametrize("kind", ALL)
def test_secrets_are_those_of_the_authentication(kind: ConnectionType) -> None:
    connection, secrets = ALL[kind]
    check_secrets(connection.authentication, secrets)

    for other, (_, wrong) in ALL.items():
        if other != kind:
            with pytest.raises(BadInput) as caught:
                check_secrets(connection.authentication, wrong)
            assert caught.value.details["field"].startswith("connectionConfigInfo.authenticationParameters.")
            assert "hunter2" not in str(caught.value.details) + repr(caught.value)


@pytest.mark.parametrize("text", ["two\nlines", "\x00", "x" * 70_000])
def test_secrets_are_plain_texts(text: str) -> None:
    with pytest.raises(BadInput, match="secret"):
        check_secrets(Bearer(), ConnectionSecrets(bearer_token=Secret(text)))
