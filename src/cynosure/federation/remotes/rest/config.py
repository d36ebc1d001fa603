"""What a remote says about itself, before it is asked anything else and every few minutes.

A maintainer must not break: of all that a remote may send here, only what is read below counts. Above all it
cannot send us elsewhere: another `uri` is noted and ignored, and so is a prefix that leaves the URL.
"""

from typing import Final
from urllib.parse import unquote

from msgspec import Struct

from cynosure.common.telemetry.logs import WARNING, Log
from cynosure.federation.remote import Abilities
from cynosure.federation.remotes.rest.addresses import UNIT_SEPARATOR, is_prefix, is_separator

_VIEWS: Final = "GET /v1/{prefix}/namespaces/{namespace}/views/{view}"
_VIEW_REGISTRATION: Final = "POST /v1/{prefix}/namespaces/{namespace}/register-view"
_TRANSACTIONS: Final = "POST /v1/{prefix}/transactions/commit"
_log = Log(__name__)


class RemoteConfig(Struct, frozen=True):
    """What counts of it."""

    prefix: str = ""
    """Percent-encoded."""
    separator: str = UNIT_SEPARATOR
    """Between the levels of a namespace."""
    has_views: bool = True
    has_transactions: bool = True
    takes_keys: bool = False
    registers_views: bool = True

    def to_abilities(self) -> Abilities:
        """As the port tells it."""
        return Abilities(
            has_views=self.has_views,
            has_nested_namespaces=True,
            has_transactions=self.has_transactions,
            takes_keys=self.takes_keys,
            registers_views=self.registers_views,
        )


class ConfigAnswer(Struct, rename="kebab"):
    """The answer of `GET /v1/config`."""

    defaults: dict[str, str | None] | None = None
    overrides: dict[str, str | None] | None = None
    endpoints: list[str] | None = None
    idempotency_key_lifetime: str | None = None


def read_config(answer: ConfigAnswer, *, asked_at: str, catalog: str) -> RemoteConfig:
    """What counts of an answer; the rest is left out. `asked_at` is the connection's URL."""
    told = {**(answer.defaults or {}), **(answer.overrides or {})}
    if (told.get("uri") or asked_at).rstrip("/") != asked_at.rstrip("/"):
        _log.event("federation.remote_uri_ignored", level=WARNING, catalog=catalog)
    prefix = (told.get("prefix") or "").strip("/")
    if prefix and not is_prefix(prefix):
        _log.event("federation.remote_prefix_ignored", level=WARNING, catalog=catalog)
        prefix = ""
    separator = unquote(told.get("namespace-separator") or "")
    if answer.endpoints:
        has_views, has_transactions = _VIEWS in answer.endpoints, _TRANSACTIONS in answer.endpoints
        registers_views = has_views and _VIEW_REGISTRATION in answer.endpoints
    else:
        # Servers of before endpoints were told: the protocol says what they have.
        has_views, has_transactions = told.get("view-endpoints-supported") == "true", True
        registers_views = has_views
    return RemoteConfig(
        prefix=prefix,
        separator=separator if is_separator(separator) else UNIT_SEPARATOR,
        has_views=has_views,
        has_transactions=has_transactions,
        takes_keys=bool(answer.idempotency_key_lifetime),
        registers_views=registers_views,
    )
