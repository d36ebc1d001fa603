import pytest

from cynosure.common.errors import BadInput
from cynosure.storage.access.gcs.service_account import parse_service_account_key

from .google import key_file, make_keys


def test_a_key_file_is_read():
    assert parse_service_account_key(key_file(), field="serviceAccountKey") == make_keys()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hunter2",
        "[]",
        "{}",
        "\ud800",
        key_file(type="authorized_user"),
        key_file(type="external_account", credential_source={"executable": {"command": "hunter2"}}),
        key_file(type="impersonated_service_account"),
        key_file(private_key="hunter2"),
        key_file(private_key="-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n"),
        key_file(private_key=None),
        key_file(client_email=""),
        key_file(client_email="é@hunter2"),
        key_file(private_key_id="é"),
    ],
)
def test_whatever_is_not_a_key_is_refused_and_nothing_of_it_is_told(text: str):
    with pytest.raises(BadInput) as refused:
        parse_service_account_key(text, field="storageConfigInfo.serviceAccountKey")

    assert refused.value.field == "storageConfigInfo.serviceAccountKey"
    assert "hunter2" not in str(refused.value)
    assert refused.value.__cause__ is None
