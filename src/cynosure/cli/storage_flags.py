"""The flags that say where a catalog's files are and how they are reached.

A command takes `StorageFlags` after its `Remote` and is decorated with `with_storage`, below `connected`.

A maintainer must not break: a secret is never a plain flag, because other users of the machine can see those.
"""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from cynosure.cli.flag_tables import (
    Flag,
    Row,
    SecretFlag,
    find_flag,
    list_flags,
    make_parameter,
    read_fields,
    take_given,
)
from cynosure.cli.remote import Remote
from cynosure.common.errors import BadInput

KINDS: Final = {
    "s3": "S3",
    "s3a": "S3",
    "s3n": "S3",
    "gs": "GCS",
    "abfss": "AZURE",
    "abfs": "AZURE",
    "wasbs": "AZURE",
    "wasb": "AZURE",
    "file": "FILE",
}
"""The storage type that the scheme of a location says."""
_TITLES: Final = {"S3": "S3", "GCS": "Google Cloud Storage", "AZURE": "Azure"}
_NAME: Final = Flag("storage_name", "storageName", "NAME", "S3: keys that the server's settings hold.")
_ROWS: Final[Mapping[str, tuple[Row, ...]]] = {
    "S3": (
        Flag("s3_region", "region", "REGION", "Region of the bucket."),
        Flag("s3_endpoint", "endpoint", "URL", "An S3 service other than AWS."),
        Flag("s3_endpoint_internal", "endpointInternal", "URL", "Its address for the server, if another."),
        Flag(
            "s3_path_style",
            "pathStyleAccess",
            None,
            "Bucket in the path, or in the host name.",
            opposite="s3_virtual_host",
        ),
        Flag("s3_access_key_id", "accessKeyId", "ID", "Access key of this catalog."),
        SecretFlag("s3_secret_access_key", "secretAccessKey", "its secret", "Secret access key"),
        Flag("s3_role_arn", "roleArn", "ARN", "Role that all credentials are made from."),
        Flag("s3_external_id", "externalId", "ID", "What the role expects of who assumes it."),
        Flag("s3_user_arn", "userArn", "ARN", "Who assumes the role, for its owner to trust."),
        Flag("s3_sts_endpoint", "stsEndpoint", "URL", "A token service (STS) elsewhere."),
        Flag(
            "s3_no_sts",
            "stsUnavailable",
            None,
            "There is no token service, or there is one.",
            opposite="s3_sts",
        ),
        Flag("s3_kms_key", "currentKmsKey", "ARN", "Key that new files are encrypted with."),
        Flag(
            "s3_allowed_kms_key",
            "allowedKmsKeys",
            "ARN",
            "Another one that is used; may be repeated.",
            is_repeated=True,
        ),
        Flag(
            "s3_no_kms",
            "kmsUnavailable",
            None,
            "Files are never encrypted with KMS keys, or may be.",
            opposite="s3_kms",
        ),
    ),
    "GCS": (
        SecretFlag(
            "gcs_key",
            "serviceAccountKey",
            "it",
            "Key of the service account",
            is_one_line=False,
            file_help="Key of a service account, in JSON; - reads stdin.",
        ),
        Flag(
            "gcs_service_account",
            "gcsServiceAccount",
            "EMAIL",
            "Another account, which that one impersonates.",
        ),
        Flag("gcs_endpoint", "endpoint", "URL", "Instead of Google's."),
        Flag("gcs_token_endpoint", "tokenEndpoint", "URL", "Instead of Google's token services."),
    ),
    "AZURE": (
        Flag("azure_tenant_id", "tenantId", "ID", "Directory of the application; required."),
        Flag("azure_client_id", "clientId", "ID", "Application that reaches the files."),
        SecretFlag("azure_client_secret", "clientSecret", "its secret", "Client secret"),
        Flag(
            "azure_hierarchical",
            "hierarchical",
            None,
            "The account has directories (HNS), or has none.",
            opposite="azure_flat",
        ),
        Flag("azure_app_name", "multiTenantAppName", "NAME", "Name of a multi-tenant application."),
        Flag("azure_consent_url", "consentUrl", "URL", "Where its use is consented to."),
        Flag("azure_endpoint", "endpoint", "URL", "Instead of the account's host."),
        Flag("azure_authority_host", "authorityHost", "URL", "Instead of Microsoft's login."),
    ),
}
"""By storage type."""
_ALL: Final = (_NAME, *(row for rows in _ROWS.values() for row in rows))
_PLACES: Final = {"default-base-location": "--location", "allowedLocations": "--allowed-location"}
_EXAMPLES: Final = {
    "S3": "s3://BUCKET/PREFIX",
    "GCS": "gs://BUCKET/PREFIX",
    "AZURE": "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX",
}
_HALVES: Final = (
    ("accessKeyId", "secretAccessKey", "--s3-access-key-id", "--s3-secret-access-key"),
    ("clientId", "clientSecret", "--azure-client-id", "--azure-client-secret"),
)


class StorageFlags:
    """What was said about the storage; all of it may be left out."""

    __slots__ = ("_given",)

    def __init__(self, **given: Any) -> None:
        self._given = take_given(_ALL, given)

    def to_fields(self, kind: str) -> dict[str, Any]:
        """What was said, as the management API names it, for a storage of this type.

        Secrets are read here. `BadInput` for flags of another type and for half a key.
        """
        for other, rows in _ROWS.items():
            if other != kind and any(flag.name in self._given for flag in list_flags(rows)):
                raise BadInput(
                    f"{'Local files take' if kind == 'FILE' else 'This storage takes'} no {other} options",
                    field="--location",
                    fix=f"Give a location of {_TITLES[other]}, such as {_EXAMPLES[other]}, "
                    "or leave its options out.",
                )
        given = read_fields(_rows_of(kind), self._given)
        _check_halves(given)
        return given


def _rows_of(kind: str) -> tuple[Row, ...]:
    return (_NAME, *_ROWS.get(kind, ()))


def kind_of(location: str) -> str:
    """The storage type that a location says; S3 where it says nothing, for the server to refuse."""
    return KINDS.get(location.partition(":")[0].lower(), "S3")


def fields_of(kind: str) -> frozenset[str]:
    """What a storage of this type can say, as the management API names it."""
    return frozenset(row.field for row in _rows_of(kind))


def check_fields(kind: str, given: dict[str, Any]) -> None:
    """Refuse before anything is sent what a new catalog cannot do without."""
    _check_halves(given)
    if kind == "AZURE" and not given.get("tenantId"):
        raise BadInput(
            "A storage in Azure needs its tenant", field="--azure-tenant-id", fix="Give --azure-tenant-id ID."
        )


@contextmanager
def naming_flags(kind: str) -> Iterator[None]:
    """What a server refuses of a storage of this type is told by the flag that said it."""
    try:
        yield
    except BadInput as error:
        named = str(error.details.get("field", "")).rpartition("storageConfigInfo.")[2].partition("[")[0]
        if (flag := find_flag(_rows_of(kind), named) or _PLACES.get(named)) is not None:
            error.details["field"] = flag
        raise


def _check_halves(given: dict[str, Any]) -> None:
    for name, secret, name_flag, secret_flag in _HALVES:
        if bool(given.get(name)) != bool(given.get(secret)):
            raise BadInput(
                "A key needs its id and its secret",
                field=name_flag,
                fix=f"Give {name_flag}, and {secret_flag}-file or {secret_flag}-env.",
            )


def with_storage(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the flags of a storage; it gets them as its second argument, after the `Remote`."""
    signature = inspect.signature(command, eval_str=True)
    to, _, *own = signature.parameters.values()
    flags = list(_make_parameters())

    @functools.wraps(command)
    def call(remote: Remote, **given: Any) -> None:
        storage = StorageFlags(**{flag.name: given.pop(flag.name) for flag in flags})
        command(remote, storage, **given)

    keyword_only = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
    call.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[to.replace(kind=inspect.Parameter.POSITIONAL_ONLY), *keyword_only, *flags]
    )
    return call


def _make_parameters() -> Iterator[inspect.Parameter]:
    yield make_parameter(_NAME, None)
    for kind, rows in _ROWS.items():
        for flag in list_flags(rows):
            # Switches have two names: in one panel with long flags they would leave no room for these.
            title = f"{_TITLES[kind]}: one or the other" if flag.opposite else _TITLES[kind]
            yield make_parameter(flag, title)
