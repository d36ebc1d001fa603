"""What lies in the environment of a service does not get to where jobs of others run."""

from cynosure.common.delegated.settings import SparkSettings
from cynosure.spark.environment import make_environment

SECRET = "hunter2"


def test_no_secret_gets_to_the_driver_whatever_it_is_called() -> None:
    given = {
        "DATABASE_URL": f"postgresql://ann:{SECRET}@db/tasks",
        "https_proxy": f"http://ann:{SECRET}@proxy:3128",
        "REDIS": f"redis://:{SECRET}@cache",
        "aws_secret_access_key": SECRET,
        "Cynosure_Delegation__Service__Store": SECRET,
        "GITHUB_TOKEN": SECRET,
        "PGPASSWORD": SECRET,
        "SSH_PRIVATE_KEY": SECRET,
        "NO_PROXY": "localhost",
        "HOME_PAGE": "https://example.org:443/a@b",
    }

    made = make_environment(given, SparkSettings())

    assert SECRET not in str(made)
    assert (made["NO_PROXY"], made["HOME_PAGE"]) == ("localhost", "https://example.org:443/a@b")
