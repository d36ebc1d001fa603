"""One value of every stored type of the catalog room, for the golden bytes.

A maintainer must not break: these values never change, as in `values.py`.
"""

from cynosure.catalog.closing import CLOSING_MARK, ClosingMark
from cynosure.catalog.dropped import DROPPED, DroppedEntity
from cynosure.catalog.entities import (
    CATALOG,
    GENERIC_TABLE,
    NAMESPACE,
    POLICY,
    CatalogEntity,
    GenericTableEntity,
    KeptLocation,
    NamespaceEntity,
    PolicyEntity,
)
from cynosure.catalog.managed.state import (
    CHUNK,
    POINTER,
    SCHEMA,
    TABLE,
    Piece,
    Sequence,
    TablePointer,
    TableSchema,
    TableState,
)
from cynosure.catalog.managed.view_state import VIEW, ViewState
from cynosure.catalog.planning.stored import PLAN_END, SCAN_PLAN, PlanEnd, ScanPlan
from cynosure.catalog.policies.mappings import POLICY_MAPPING, PolicyMapping
from cynosure.catalog.reports import METRICS_REPORT, MetricsReport
from cynosure.catalog.staged import STAGED, StagedTable
from cynosure.iceberg.fragments import Fragments
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import CatalogId, ObjId
from cynosure.storage.config import AzureStorage, FileStorage, GcsStorage, S3Kms, S3Storage, S3Sts

_AT_US = 1_767_225_600_000_000
_CHUNK = Fragments.of([(7, b'{"snapshot-id":7}'), (8, b'{"snapshot-id":8}')]).chunks[0]

CATALOG_VALUES = {
    "catalog-file": (
        CATALOG,
        CatalogEntity(
            id=CatalogId("1001"),
            name="lake",
            base_location="file:///warehouse/lake",
            storage=FileStorage(allowed_locations=("file:///warehouse/lake",)),
            created_us=_AT_US,
            updated_us=_AT_US + 1,
            version=2,
            properties={"owner": "data team"},
        ),
    ),
    "catalog-gcs": (
        CATALOG,
        CatalogEntity(
            id=CatalogId("1004"),
            name="lake",
            base_location="gs://bucket/lake",
            storage=GcsStorage(
                allowed_locations=("gs://bucket/lake",),
                gcs_service_account="lake@project.iam.gserviceaccount.com",
                endpoint="https://gcs.example.com",
                token_endpoint="https://tokens.example.com",
                sealed_keys=b"sealed",
                storage_name="archive",
            ),
            created_us=_AT_US,
            updated_us=_AT_US,
        ),
    ),
    "catalog-azure": (
        CATALOG,
        CatalogEntity(
            id=CatalogId("1005"),
            name="lake",
            base_location="abfss://lake@acct.dfs.core.windows.net/lake",
            storage=AzureStorage(
                allowed_locations=("abfss://lake@acct.dfs.core.windows.net/lake",),
                tenant_id="11111111-2222-3333-4444-555555555555",
                multi_tenant_app_name="Cynosure",
                consent_url="https://login.example.com/consent",
                hierarchical=True,
                endpoint="https://azure.example.com",
                authority_host="https://login.example.com",
                sealed_keys=b"sealed",
                storage_name="archive",
            ),
            created_us=_AT_US,
            updated_us=_AT_US,
        ),
    ),
    "catalog-s3": (
        CATALOG,
        CatalogEntity(
            id=CatalogId("1002"),
            name="lake",
            base_location="s3://bucket/lake",
            storage=S3Storage(
                allowed_locations=("s3://bucket/lake",),
                region="eu-central-1",
                endpoint="https://s3.example.com",
                path_style_access=True,
                sealed_keys=b"sealed",
            ),
            created_us=_AT_US,
            updated_us=_AT_US,
        ),
    ),
    "catalog-s3-roles": (
        CATALOG,
        CatalogEntity(
            id=CatalogId("1003"),
            name="lake",
            base_location="s3://bucket/lake",
            storage=S3Storage(
                allowed_locations=("s3://bucket/lake",),
                endpoint="https://s3.example.com",
                endpoint_internal="https://s3.internal",
                sealed_keys=b"sealed",
                storage_name="archive",
                sts=S3Sts(
                    role_arn="arn:aws:iam::123456789012:role/lake",
                    external_id="lake:1",
                    user_arn="arn:aws:iam::123456789012:user/catalog",
                    endpoint="https://sts.example.com",
                    is_unavailable=True,
                ),
                kms=S3Kms(
                    current_key="arn:aws:kms:us-east-1:123456789012:key/1",
                    allowed_keys=("arn:aws:kms:us-east-1:123456789012:key/2",),
                    is_unavailable=True,
                ),
            ),
            created_us=_AT_US,
            updated_us=_AT_US,
        ),
    ),
    "namespace": (
        NAMESPACE,
        NamespaceEntity(id=ObjId(2001), created_us=_AT_US, updated_us=_AT_US, properties={"k": "v"}),
    ),
    "catalog-external": (
        CATALOG,
        CatalogEntity(
            id=CatalogId("1004"),
            name="theirs",
            base_location="file:///warehouse/theirs",
            storage=FileStorage(allowed_locations=("file:///warehouse/theirs",)),
            created_us=_AT_US,
            updated_us=_AT_US,
            kind="EXTERNAL",
        ),
    ),
    "generic-table": (
        GENERIC_TABLE,
        GenericTableEntity(
            id=ObjId(7001),
            format="delta",
            created_us=_AT_US,
            location="s3://bucket/events",
            doc="Raw events.",
            properties={"k": "v"},
        ),
    ),
    "policy": (
        POLICY,
        PolicyEntity(
            id=ObjId(6001),
            type="system.data-compaction",
            created_us=_AT_US,
            updated_us=_AT_US + 1,
            content='{"enable":true}',
            description="Keep files large.",
            version=1,
            created_by="alice",
        ),
    ),
    "policy-mapping": (
        POLICY_MAPPING,
        PolicyMapping(
            policy_id=ObjId(6001),
            target_id=ObjId(3001),
            target_kind="table",
            attached_us=_AT_US,
            attached_by="alice",
            parameters={"k": "v"},
            detail=raw_detail({"columns": [1]}),
        ),
    ),
    "closing-mark": (CLOSING_MARK, ClosingMark(principal="alice", closed_us=_AT_US)),
    "dropped": (
        DROPPED,
        DroppedEntity(
            kind="table",
            entity_id=ObjId(3001),
            path=("a", "b", "t"),
            state=ObjRef(ObjId(3002), "table"),
            dropped_us=_AT_US,
            principal="alice",
            location="s3://bucket/lake/a/b/t-bb9",
            is_purge_requested=True,
        ),
    ),
    "table": (
        TABLE,
        TableState(
            id=ObjId(3001),
            created_us=_AT_US,
            updated_us=_AT_US + 1,
            metadata_location="s3://bucket/lake/a/b/t-bb9/metadata/00001-x.metadata.json",
            file_number=1,
            format_version=3,
            table_uuid="9c12d441-03fe-4693-9a96-a0705ddf69c1",
            location="s3://bucket/lake/a/b/t-bb9",
            last_sequence_number=34,
            last_updated_ms=_AT_US // 1000,
            last_column_id=3,
            current_schema_id=1,
            default_spec_id=0,
            last_partition_id=1000,
            default_sort_order_id=3,
            current_snapshot_id=8,
            next_row_id=12,
            schemas=(b'{"type":"struct","schema-id":0,"fields":[]}', 3003),
            partition_specs=(b'{"spec-id":0,"fields":[]}',),
            sort_orders=(b'{"order-id":3,"fields":[]}',),
            properties={"owner": "data team"},
            refs={"main": b'{"snapshot-id":8,"type":"branch"}'},
            encryption_keys={"k1": b'{"key-id":"k1"}'},
            other_fields={"x-future": b"true"},
            snapshots=Sequence((Piece(ObjId(3004)), Piece(ObjId(3005), 3)), _CHUNK),
            snapshot_log=Sequence((Piece(ObjId(3006)),)),
            metadata_log=Sequence((), _CHUNK),
            ref_pieces={8: 1},
        ),
    ),
    "table-pointer": (
        POINTER,
        TablePointer(
            id=ObjId(3001),
            created_us=_AT_US,
            metadata_location="s3://bucket/t/metadata/v1.metadata.json",
            location="s3://bucket/t",
        ),
    ),
    "table-schema": (SCHEMA, TableSchema(json=b'{"type":"struct","schema-id":1,"fields":[]}')),
    "table-chunk": (CHUNK, _CHUNK),
    "view": (
        VIEW,
        ViewState(
            id=ObjId(4001),
            created_us=_AT_US,
            updated_us=_AT_US,
            metadata_location="s3://bucket/lake/v/metadata/00000-x.metadata.json",
            file_number=0,
            location="s3://bucket/lake/v",
            json=b'{"view-uuid":"x"}',
        ),
    ),
    "metrics-report": (
        METRICS_REPORT,
        MetricsReport(
            id=ObjId(5001),
            table_id=ObjId(3001),
            type="scan-report",
            received_us=_AT_US,
            principal="alice",
            json=b'{"report-type":"scan-report"}',
            snapshot_id=8,
        ),
    ),
    "scan-plan": (
        SCAN_PLAN,
        ScanPlan(
            id=ObjId(5101),
            table_id=ObjId(3001),
            state_id=ObjId(3002),
            request=b'{"snapshot-id":8}',
            principal_id=ObjId(7001),
            created_us=_AT_US,
            actor_id=ObjId(7002),
        ),
    ),
    "scan-plan-end": (PLAN_END, PlanEnd(ended_us=_AT_US)),
    "catalog-tightened": (
        CATALOG,
        CatalogEntity(
            id=CatalogId("1003"),
            name="lake",
            base_location="file:///warehouse/lake/new",
            storage=FileStorage(allowed_locations=("file:///warehouse/lake/new",)),
            created_us=_AT_US,
            updated_us=_AT_US + 2,
            version=3,
            kept=(KeptLocation("file:///warehouse/lake", _AT_US + 2),),
        ),
    ),
    "staged-table": (
        STAGED,
        StagedTable(
            id=ObjId(6001),
            path=("ns", "t"),
            table_uuid="9c12d441-03fe-4693-9a96-a0705ddf69c1",
            location="s3://bucket/lake/ns/t-1771",
            claims=("s3://bucket/data/t",),
            principal_id=7001,
            principal="alice",
            created_us=_AT_US,
        ),
    ),
    "staged-table-with-metadata": (
        STAGED,
        StagedTable(
            id=ObjId(6002),
            path=("ns", "t"),
            table_uuid="9c12d441-03fe-4693-9a96-a0705ddf69c1",
            location="s3://bucket/lake/ns/t-1771",
            claims=("s3://bucket/data/t",),
            principal_id=7001,
            principal="alice",
            created_us=_AT_US,
            sealed_metadata=bytes(range(64)),
        ),
    ),
    "table-pointer-with-claims": (
        POINTER,
        TablePointer(
            id=ObjId(3002),
            created_us=_AT_US,
            metadata_location="s3://bucket/imports/v1.metadata.json",
            location="s3://bucket/t2",
            claims=("s3://bucket/imports/v1.metadata.json",),
        ),
    ),
    "view-with-claims": (
        VIEW,
        ViewState(
            id=ObjId(4002),
            created_us=_AT_US,
            updated_us=_AT_US,
            metadata_location="s3://bucket/lake/w/metadata/00001-x.metadata.json",
            file_number=1,
            location="s3://bucket/lake/w",
            json=b'{"view-uuid":"y"}',
            claims=("s3://bucket/lake/v",),
        ),
    ),
    "dropped-with-claims": (
        DROPPED,
        DroppedEntity(
            kind="table",
            entity_id=ObjId(3003),
            path=("ns", "t"),
            state=ObjRef(ObjId(3004), "table"),
            dropped_us=_AT_US,
            principal="alice",
            location="s3://bucket/t3",
            claims=("s3://bucket/data/t3", "s3://bucket/old/t3"),
            heir_id=7001,
        ),
    ),
    "table-with-claims": (
        TABLE,
        TableState(
            id=ObjId(3005),
            created_us=_AT_US,
            updated_us=_AT_US,
            metadata_location="s3://bucket/t5/metadata/00001-x.metadata.json",
            file_number=1,
            format_version=2,
            table_uuid="9c12d441-03fe-4693-9a96-a0705ddf69c2",
            location="s3://bucket/t5",
            last_sequence_number=0,
            last_updated_ms=_AT_US // 1000,
            last_column_id=1,
            current_schema_id=0,
            default_spec_id=0,
            last_partition_id=999,
            default_sort_order_id=0,
            properties={"write.data.path": "s3://bucket/data/t5"},
            claims=("s3://bucket/data/t5", "s3://bucket/old/t5"),
        ),
    ),
}
