import pytest
from msgspec.structs import replace

from cynosure.storage.access.azure.account import Account, client_config
from cynosure.storage.config import AzureStorage

PUBLIC = AzureStorage(
    allowed_locations=("abfss://lake@acct.dfs.core.windows.net/a", "wasb://pond@acct.blob.core.windows.net"),
    tenant_id="tenant",
)


@pytest.mark.parametrize(
    ("location", "url", "login"),
    [
        (
            "wasbs://lake@acct.blob.core.windows.net/a",
            "https://acct.blob.core.windows.net",
            "https://login.microsoftonline.com/tenant",
        ),
        (
            "abfss://lake@acct.z04.dfs.storage.azure.net/a",
            "https://acct.z04.blob.storage.azure.net",
            "https://login.microsoftonline.com/tenant",
        ),
        (
            "abfss://lake@acct.dfs.core.usgovcloudapi.net/a",
            "https://acct.blob.core.usgovcloudapi.net",
            "https://login.microsoftonline.us/tenant",
        ),
        (
            "abfss://lake@acct.dfs.core.chinacloudapi.cn/a",
            "https://acct.blob.core.chinacloudapi.cn",
            "https://login.chinacloudapi.cn/tenant",
        ),
    ],
)
def test_each_cloud_has_its_hosts(location: str, url: str, login: str):
    assert Account.of(replace(PUBLIC, allowed_locations=(location,))) == Account("acct", url, login)


def test_endpoints_of_the_configuration_come_first():
    config = replace(PUBLIC, endpoint="https://127.0.0.1:1/", authority_host="https://login.example.com/")

    assert Account.of(config) == Account(
        "acct", "https://127.0.0.1:1/acct", "https://login.example.com/tenant"
    )


def test_clients_are_told_the_account_and_an_endpoint_that_is_not_azures():
    assert client_config(PUBLIC) == {"adls.account-name": "acct"}
    assert client_config(replace(PUBLIC, endpoint="https://127.0.0.1:1/")) == {
        "adls.account-name": "acct",
        "adls.blob-storage-authority": "127.0.0.1:1",
        "adls.blob-storage-scheme": "https",
        "adls.dfs-storage-authority": "127.0.0.1:1",
        "adls.dfs-storage-scheme": "https",
    }
