"""Delegation services and catalogs that are killed, stopped and starved: all of them real processes."""

import pytest

from cynosure.testing.s3_servers import S3Server, find_s3_servers


@pytest.fixture(scope="session")
def minio() -> S3Server:
    return find_s3_servers()["minio"]


@pytest.fixture(scope="session")
def seaweedfs() -> S3Server:
    return find_s3_servers()["seaweedfs"]
