import pytest

from cynosure.auth.names import (
    check_client_id,
    check_client_secret,
    check_name,
    check_principal_name,
    check_properties,
)
from cynosure.common.errors import BadInput
from cynosure.common.secrets import Secret


@pytest.mark.parametrize("name", ["a", "x" * 256, "etl-bot", "a b", "Zoë", "o'brien", ".", "a/b", "SYSTEM"])
def test_names_that_are_taken_as_they_are(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "x" * 257, "a\x00", "a\nb", "\x7f", "\x85", "\ud800", "SYSTEM$a", "system$", "  SyStEm$x"]
)
def test_names_that_are_refused(name: str) -> None:
    with pytest.raises(BadInput) as refused:
        check_name(name, field="principal.name")
    assert refused.value.field == "principal.name"


@pytest.mark.parametrize(
    "properties",
    [
        {"polaris.x": "1"},
        {"cynosure.admin": "true"},
        {" Polaris.X": "1"},
        {"": "1"},
        {"a": "é" * 40_000},
        {"a": "\ud800"},
    ],
)
def test_properties_that_are_reserved_nameless_or_too_large_are_refused(properties: dict[str, str]) -> None:
    with pytest.raises(BadInput):
        check_properties(properties)


def test_other_properties_are_taken() -> None:
    assert check_properties({"team": "polaris.x", "my.polaris.": ""}) == {
        "team": "polaris.x",
        "my.polaris.": "",
    }


@pytest.mark.parametrize("client_id", ["", "a:b", "a b", "é", "x" * 129, "a\n"])
def test_client_ids_that_could_not_be_sent_are_refused(client_id: str) -> None:
    with pytest.raises(BadInput):
        check_client_id(client_id)


@pytest.mark.parametrize("secret", ["", "short", "with blank", "x" * 257, "geheimé", "line\nend"])
def test_client_secrets_that_are_guessed_or_could_not_be_sent_are_refused_unseen(secret: str) -> None:
    """I21."""
    with pytest.raises(BadInput) as refused:
        check_client_secret(Secret(secret))
    assert not secret or secret not in str(refused.value) + repr(refused.value.details)


@pytest.mark.parametrize("name", ["operator", "system", "oidc", " System", "OPERATOR "])
def test_no_principal_passes_for_the_server_itself(name: str) -> None:
    with pytest.raises(BadInput, match="reserved"):
        check_principal_name(name)


def test_a_principal_may_be_called_anything_else() -> None:
    assert check_principal_name("operators") == "operators"
