"""One value of every stored type of the delegation room, for the golden bytes.

A maintainer must not break: these values never change, as in `values.py`.
"""

from cynosure.delegation.store.stored import DELEGATED_TASK, StoredTask

_AT_US = 1_767_225_600_000_000
_PAYLOAD = '{"task_type":"TABLE_PURGE","realm":"default","correlation_id":"purge-7-12"}'

DELEGATION_VALUES = {
    "delegated-task": (
        DELEGATED_TASK,
        StoredTask(
            task_id="0b6f1c0e-3c0f-5a35-9f51-0b8e4a3c2d11",
            version=1,
            task_type="TABLE_PURGE",
            task_payload=_PAYLOAD,
            status="SUBMITTED",
            received_us=_AT_US,
            last_status_change_us=_AT_US,
            created_us=_AT_US,
            fingerprint="ab" * 32,
            correlation_id="purge-7-12",
            catalog="lake",
        ),
    ),
    "delegated-task-tried-again": (
        DELEGATED_TASK,
        StoredTask(
            task_id="0b6f1c0e-3c0f-5a35-9f51-0b8e4a3c2d11",
            version=6,
            task_type="TABLE_PURGE",
            task_payload=_PAYLOAD,
            status="RUNNING",
            received_us=_AT_US,
            last_status_change_us=_AT_US + 9_000_000,
            created_us=_AT_US,
            attempt_count=2,
            parent_id="7a9e6f0c-17c5-5d5e-8a55-0c3b2f4d6e88",
            lease_acquired_us=_AT_US + 8_000_000,
            next_scheduled_run_us=_AT_US + 7_000_000,
            result_summary="The storage asked to slow down",
            result_extended="SlowDown: Please reduce your request rate",
            error_code="STORAGE_UNAVAILABLE",
            is_begun=True,
            execution_result={"files_deleted": 1000, "bytes_deleted": 2**33, "details": {"phases": ["data"]}},
            worker="delegation-1 4711",
            lease_token="cd" * 16,
            fingerprint="ab" * 32,
            correlation_id="purge-7-12",
            catalog="lake",
        ),
    ),
}
