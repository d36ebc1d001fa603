"""obstore's S3 client, made from a catalog's configuration and from nothing else.

A maintainer must not break: obstore takes every `AWS_…` environment variable that it knows as a default. So
every option that a variable could set is set here, credentials come from a provider (which also keeps obstore
from asking for instance metadata), and client options are always given, because they replace those of the
environment as a whole. The few options without a neutral value are in `_UNWELCOME`: where the environment
sets one of those, no bucket is opened. A test compares both with the options that obstore knows.

Of the environment, only the proxies of the HTTP client (`HTTPS_PROXY`, `NO_PROXY`) have a say: they decide
how a host is reached, not which one, nor as whom.
"""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import urlsplit, urlunsplit

from obstore.store import S3Store

from cynosure.common.errors import Misconfigured
from cynosure.storage.access.s3.keys import S3Session
from cynosure.storage.config import S3Storage
from cynosure.storage.object_files import make_client_options, make_retry_config
from cynosure.storage.settings import StorageSettings

if TYPE_CHECKING:
    from obstore.store import S3Config, S3Credential

_UNWELCOME: Final = (
    "AWS_CHECKSUM_ALGORITHM",
    "AWS_SERVER_SIDE_ENCRYPTION",
    "AWS_SSE_BUCKET_KEY_ENABLED",
    "AWS_SSE_CUSTOMER_KEY_BASE64",
    "AWS_SSE_KMS_KEY_ID",
)


def open_bucket(
    bucket: str, config: S3Storage, keys: Callable[[], S3Session], settings: StorageSettings
) -> S3Store:
    """A client for one bucket. Does not connect. `keys` is asked again before what it gave expires."""
    if present := [name for name in _UNWELCOME if name in os.environ]:
        raise Misconfigured(
            "The environment sets options of object stores that cannot be overridden",
            variables=", ".join(present),
            fix="Unset them: storages are configured per catalog only.",
        )

    def provide() -> "S3Credential":
        session = keys()
        token, expires_ms = session.session_token, session.expires_ms
        return {
            "access_key_id": session.access_key_id,
            "secret_access_key": session.secret_access_key.reveal(),
            "token": None if token is None else token.reveal(),
            "expires_at": None if expires_ms is None else datetime.fromtimestamp(expires_ms / 1000, UTC),
        }

    endpoint, is_path_style = endpoint_of(bucket, config)
    return S3Store(
        bucket,
        config=_options(endpoint, config.region, is_path_style=is_path_style),
        client_options=make_client_options(settings, endpoint),
        retry_config=make_retry_config(settings),
        credential_provider=provide,
    )


def _options(endpoint: str, region: str, *, is_path_style: bool) -> "S3Config":
    options = {
        "region": region,
        "default_region": region,
        "endpoint": endpoint,
        "aws_endpoint_url_s3": endpoint,
        "virtual_hosted_style_request": not is_path_style,
        "conditional_put": "etag",
        "skip_signature": False,
        "unsigned_payload": False,
        "s3_express": False,
        "request_payer": False,
        "disable_tagging": True,
        "disable_bulk_delete": False,
        "copy_if_not_exists": "multipart",
        # Never used, because there is a credential provider; named so that no variable can change that.
        "access_key_id": "",
        "secret_access_key": "",
        "session_token": "",
        "imdsv1_fallback": False,
        "metadata_endpoint": "http://127.0.0.1:9",
        "container_credentials_relative_uri": "",
        "container_credentials_full_uri": "",
        "container_authorization_token_file": "",
        "web_identity_token_file": "",
        "role_arn": "",
        "role_session_name": "",
        "endpoint_url_sts": "http://127.0.0.1:9",
    }
    return cast("S3Config", options)  # which does not know that last one


def endpoint_of(bucket: str, config: S3Storage) -> tuple[str, bool]:
    """The URL of a bucket's server and whether the bucket goes into the path."""
    given = config.endpoint_internal or config.endpoint
    if given is None:
        domain = "amazonaws.com.cn" if config.region.startswith("cn-") else "amazonaws.com"
        given = f"https://s3.{config.region}.{domain}"
    # Certificates for all buckets cover one label, so a bucket with dots has no host name of its own.
    if config.path_style_access or "." in bucket:
        return given.removesuffix("/"), True
    parts = urlsplit(given)
    return urlunsplit((parts.scheme, f"{bucket}.{parts.netloc}", "", "", "")), False
