"""One value of every stored type of the auth room, for the golden bytes.

A maintainer must not break: these values never change, as in `values.py`.
"""

from cynosure.auth.audit.events import EVENT_BATCH, EventBatch, StoredEvent, StoredTarget
from cynosure.auth.audit.sink import SINK_POSITION, SinkPosition
from cynosure.auth.entities import (
    CATALOG_ROLE,
    PRINCIPAL,
    PRINCIPAL_ROLE,
    CatalogRoleEntity,
    PrincipalEntity,
    PrincipalRoleEntity,
    StoredSecret,
)
from cynosure.auth.tokens.signing_keys import SIGNING_KEYS, SigningKeys, StoredKey
from cynosure.persistence.spi import ObjId

_AT_US = 1_767_225_600_000_000

AUTH_VALUES = {
    "principal": (
        PRINCIPAL,
        PrincipalEntity(
            id=ObjId(6001),
            name="etl",
            client_id="0011223344556677",
            created_us=_AT_US,
            updated_us=_AT_US + 1,
            version=3,
            properties={"team": "data"},
            secrets=(
                StoredSecret(generation=2, salt=b"salt-2", digest=bytes(range(32)), key="k1"),
                StoredSecret(generation=1, salt=b"salt-1", digest=bytes(32), key="k1"),
            ),
            is_rotation_required=True,
            is_trusted_service=True,
            subject="https://issuer.example account-7",
        ),
    ),
    "principal-role": (
        PRINCIPAL_ROLE,
        PrincipalRoleEntity(
            id=ObjId(6002),
            name="service_admin",
            created_us=_AT_US,
            updated_us=_AT_US,
            properties={"k": "v"},
            is_federated=True,
            realm_privileges=b"\x01\x02",
        ),
    ),
    "catalog-role": (
        CATALOG_ROLE,
        CatalogRoleEntity(
            id=ObjId(6003),
            name="reader",
            created_us=_AT_US,
            updated_us=_AT_US,
            version=2,
            properties={"k": "v"},
        ),
    ),
    "signing-keys": (
        SIGNING_KEYS,
        SigningKeys(
            keys=(
                StoredKey(kid="new", public=b"public-2", sealed=b"sealed-2", created_us=_AT_US),
                StoredKey(
                    kid="old",
                    public=b"public-1",
                    sealed=b"sealed-1",
                    created_us=_AT_US - 10,
                    retired_us=_AT_US,
                    good_until_us=_AT_US + 3_600_000_000,
                ),
            )
        ),
    ),
    "audit-batch": (
        EVENT_BATCH,
        EventBatch(
            first=7001,
            recorded_us=_AT_US + 5,
            events=(
                StoredEvent(
                    time_us=_AT_US,
                    kind="change",
                    decision="allowed",
                    operation="rename-table",
                    principal="ann",
                    actor="gateway",
                    roles=("etl",),
                    request_id="r1",
                    catalog="lake",
                    catalog_id="1001",
                    targets=(
                        StoredTarget(
                            kind="table",
                            name="a.new",
                            id="3001",
                            change="table-renamed",
                            before="a.old",
                            details={"privilege": "TABLE_READ_DATA"},
                        ),
                    ),
                    targets_omitted=2,
                    reference="main",
                    sequence=12,
                ),
                StoredEvent(
                    time_us=_AT_US + 1,
                    kind="denial",
                    decision="denied",
                    operation="drop-table",
                    principal="eve",
                    reason="no",
                    missing=("TABLE_DROP",),
                    count=3,
                ),
            ),
        ),
    ),
    "audit-sink": (SINK_POSITION, SinkPosition(sink="webhook", number=7002, updated_us=_AT_US)),
}
