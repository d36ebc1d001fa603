"""The flags that say where a catalog's files are and how they are reached.

A command takes `StorageFlags` after its `Remote` and is decorated with `with_storage`, below `connected`.

A maintainer must not break: a secret is never a plain flag, because other users of the machine can see those.
"""

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Annotated, Any, Final, NamedTuple

import typer

from cynosure.cli.flags import read_secret
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


def _option(panel: str, *names: str, metavar: str | None = None, help: str) -> Any:
    # Switches have two names: in one panel with long flags they would leave no room for these.
    title = _TITLES[panel] if metavar else f"{_TITLES[panel]}: one or the other"
    return typer.Option(*names, metavar=metavar, help=help, show_default=False, rich_help_panel=title)


def _s3(*names: str, metavar: str | None = None, help: str) -> Any:
    return _option("S3", *names, metavar=metavar, help=help)


def _gcs(*names: str, metavar: str | None = None, help: str) -> Any:
    return _option("GCS", *names, metavar=metavar, help=help)


def _azure(*names: str, metavar: str | None = None, help: str) -> Any:
    return _option("AZURE", *names, metavar=metavar, help=help)


Text = str | None
Flag = bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageFlags:
    """What was said about the storage; all of it may be left out."""

    storage_name: Annotated[
        Text, typer.Option("--storage-name", metavar="NAME", help="S3: keys that the server's settings hold.")
    ] = None

    s3_region: Annotated[Text, _s3("--s3-region", metavar="REGION", help="Region of the bucket.")] = None
    s3_endpoint: Annotated[
        Text, _s3("--s3-endpoint", metavar="URL", help="An S3 service other than AWS.")
    ] = None
    s3_endpoint_internal: Annotated[
        Text, _s3("--s3-endpoint-internal", metavar="URL", help="Its address for the server, if another.")
    ] = None
    s3_path_style: Annotated[
        Flag, _s3("--s3-path-style/--s3-virtual-host", help="Bucket in the path, or in the host name.")
    ] = None
    s3_access_key_id: Annotated[
        Text, _s3("--s3-access-key-id", metavar="ID", help="Access key of this catalog.")
    ] = None
    s3_secret_access_key_file: Annotated[
        Text,
        _s3("--s3-secret-access-key-file", metavar="FILE", help="File with its secret; - reads stdin."),
    ] = None
    s3_secret_access_key_env: Annotated[
        Text, _s3("--s3-secret-access-key-env", metavar="VARIABLE", help="Variable that holds its secret.")
    ] = None
    s3_role_arn: Annotated[
        Text, _s3("--s3-role-arn", metavar="ARN", help="Role that all credentials are made from.")
    ] = None
    s3_external_id: Annotated[
        Text, _s3("--s3-external-id", metavar="ID", help="What the role expects of who assumes it.")
    ] = None
    s3_user_arn: Annotated[
        Text, _s3("--s3-user-arn", metavar="ARN", help="Who assumes the role, for its owner to trust.")
    ] = None
    s3_sts_endpoint: Annotated[
        Text, _s3("--s3-sts-endpoint", metavar="URL", help="A token service (STS) elsewhere.")
    ] = None
    s3_no_sts: Annotated[
        Flag, _s3("--s3-no-sts/--s3-sts", help="There is no token service, or there is one.")
    ] = None
    s3_kms_key: Annotated[
        Text, _s3("--s3-kms-key", metavar="ARN", help="Key that new files are encrypted with.")
    ] = None
    s3_allowed_kms_key: Annotated[
        list[str] | None,
        _s3("--s3-allowed-kms-key", metavar="ARN", help="Another one that is used; may be repeated."),
    ] = None
    s3_no_kms: Annotated[
        Flag, _s3("--s3-no-kms/--s3-kms", help="Files are never encrypted with KMS keys, or may be.")
    ] = None

    gcs_key_file: Annotated[
        Text,
        _gcs("--gcs-key-file", metavar="FILE", help="Key of a service account, in JSON; - reads stdin."),
    ] = None
    gcs_key_env: Annotated[
        Text, _gcs("--gcs-key-env", metavar="VARIABLE", help="Variable that holds it.")
    ] = None
    gcs_service_account: Annotated[
        Text,
        _gcs("--gcs-service-account", metavar="EMAIL", help="Another account, which that one impersonates."),
    ] = None
    gcs_endpoint: Annotated[Text, _gcs("--gcs-endpoint", metavar="URL", help="Instead of Google's.")] = None
    gcs_token_endpoint: Annotated[
        Text, _gcs("--gcs-token-endpoint", metavar="URL", help="Instead of Google's token services.")
    ] = None

    azure_tenant_id: Annotated[
        Text, _azure("--azure-tenant-id", metavar="ID", help="Directory of the application; required.")
    ] = None
    azure_client_id: Annotated[
        Text, _azure("--azure-client-id", metavar="ID", help="Application that reaches the files.")
    ] = None
    azure_client_secret_file: Annotated[
        Text,
        _azure("--azure-client-secret-file", metavar="FILE", help="File with its secret; - reads stdin."),
    ] = None
    azure_client_secret_env: Annotated[
        Text, _azure("--azure-client-secret-env", metavar="VARIABLE", help="Variable that holds its secret.")
    ] = None
    azure_hierarchical: Annotated[
        Flag,
        _azure("--azure-hierarchical/--azure-flat", help="The account has directories (HNS), or has none."),
    ] = None
    azure_app_name: Annotated[
        Text, _azure("--azure-app-name", metavar="NAME", help="Name of a multi-tenant application.")
    ] = None
    azure_consent_url: Annotated[
        Text, _azure("--azure-consent-url", metavar="URL", help="Where its use is consented to.")
    ] = None
    azure_endpoint: Annotated[
        Text, _azure("--azure-endpoint", metavar="URL", help="Instead of the account's host.")
    ] = None
    azure_authority_host: Annotated[
        Text, _azure("--azure-authority-host", metavar="URL", help="Instead of Microsoft's login.")
    ] = None

    def to_fields(self, kind: str) -> dict[str, Any]:
        """What was said, as the management API names it, for a storage of this type.

        Secrets are read here. `BadInput` for flags of another type and for half a key.
        """
        for other, title in _TITLES.items():
            if other != kind and any(value is not None for value in self._of(other)):
                raise BadInput(
                    f"{'Local files take' if kind == 'FILE' else 'This storage takes'} no {other} options",
                    field="--location",
                    fix=f"Give a location of {title}, such as {_EXAMPLES[other]}, or leave its options out.",
                )
        given = {name: getattr(self, flag) for name, flag in _FIELDS.get(kind, _ANY).items()}
        if (secret := _SECRETS.get(kind)) is not None:
            given[secret.field] = read_secret(
                getattr(self, f"{secret.flag}_file"),
                getattr(self, f"{secret.flag}_env"),
                flag=_written(secret.flag),
                prompt=secret.prompt,
                is_one_line=secret.is_one_line,
            )
        _check_halves(given)
        return {name: value for name, value in given.items() if value is not None}

    def _of(self, kind: str) -> list[object]:
        prefix = f"{kind.lower()}_"
        return [getattr(self, each.name) for each in fields(self) if each.name.startswith(prefix)]


class _SecretFlag(NamedTuple):
    """A secret: what the API calls it, and the flags that say where it is (`…_file`, `…_env`)."""

    field: str
    flag: str
    prompt: str
    is_one_line: bool = True


_ANY: Final = {"storageName": "storage_name"}
_FIELDS: Final = {
    "S3": {
        **_ANY,
        "region": "s3_region",
        "endpoint": "s3_endpoint",
        "endpointInternal": "s3_endpoint_internal",
        "pathStyleAccess": "s3_path_style",
        "accessKeyId": "s3_access_key_id",
        "roleArn": "s3_role_arn",
        "externalId": "s3_external_id",
        "userArn": "s3_user_arn",
        "stsEndpoint": "s3_sts_endpoint",
        "stsUnavailable": "s3_no_sts",
        "currentKmsKey": "s3_kms_key",
        "allowedKmsKeys": "s3_allowed_kms_key",
        "kmsUnavailable": "s3_no_kms",
    },
    "GCS": {
        **_ANY,
        "gcsServiceAccount": "gcs_service_account",
        "endpoint": "gcs_endpoint",
        "tokenEndpoint": "gcs_token_endpoint",
    },
    "AZURE": {
        **_ANY,
        "tenantId": "azure_tenant_id",
        "clientId": "azure_client_id",
        "hierarchical": "azure_hierarchical",
        "multiTenantAppName": "azure_app_name",
        "consentUrl": "azure_consent_url",
        "endpoint": "azure_endpoint",
        "authorityHost": "azure_authority_host",
    },
}
"""By storage type: what the management API calls it, and the flag."""
_SECRETS: Final = {
    "S3": _SecretFlag("secretAccessKey", "s3_secret_access_key", "Secret access key"),
    "GCS": _SecretFlag("serviceAccountKey", "gcs_key", "Key of the service account", is_one_line=False),
    "AZURE": _SecretFlag("clientSecret", "azure_client_secret", "Client secret"),
}
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


def kind_of(location: str) -> str:
    """The storage type that a location says; S3 where it says nothing, for the server to refuse."""
    return KINDS.get(location.partition(":")[0].lower(), "S3")


def fields_of(kind: str) -> frozenset[str]:
    """What a storage of this type can say, as the management API names it."""
    secret = _SECRETS.get(kind)
    return frozenset((*_FIELDS.get(kind, _ANY), *([secret.field] if secret else ())))


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
        if (flag := _find_flag(kind, named)) is not None:
            error.details["field"] = flag
        raise


def _find_flag(kind: str, name: str) -> str | None:
    secret = _SECRETS.get(kind)
    if secret is not None and secret.field == name:
        return f"{_written(secret.flag)}-file"
    flag = _FIELDS.get(kind, _ANY).get(name)
    return _written(flag) if flag is not None else _PLACES.get(name)


def _written(flag: str) -> str:
    return f"--{flag.replace('_', '-')}"


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
    flags = [
        inspect.Parameter(
            each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type
        )
        for each in fields(StorageFlags)
    ]

    @functools.wraps(command)
    def call(remote: Remote, **given: Any) -> None:
        storage = StorageFlags(**{flag.name: given.pop(flag.name) for flag in flags})
        command(remote, storage, **given)

    keyword_only = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
    call.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[to.replace(kind=inspect.Parameter.POSITIONAL_ONLY), *keyword_only, *flags]
    )
    return call
