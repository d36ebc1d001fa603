"""All SQL on tasks in PostgreSQL.

`delegation_task_versions` has every version of every task, in the columns of the proposal and some of ours.
`delegation_tasks` has the newest of each once more, with the time from which on it can be taken (`ready_us`,
see `waiting.py`; nothing when it has ended): what leasing locks and orders by.

A maintainer must not break: each change is one statement, so one transaction, and begins at the task's row in
`delegation_tasks`. Whoever waits for that row finds it as it is by then, and what is written afterwards is
taken from that row, not from a table that was read before.
"""

# ruff: noqa: S608 - the only text put in is a schema name that `address.py` has checked

from typing import Final

FORMAT_VERSION: Final = 1
"""Layout of the tables, in `store_format`. Raise it when an older version could not use them."""

_COLUMNS: Final = (
    ("realm", 'text COLLATE "C" NOT NULL'),
    ("task_id", "uuid NOT NULL"),
    ("version", "integer NOT NULL"),
    ("parent_id", "uuid"),
    ("task_type", 'text COLLATE "C" NOT NULL'),
    ("task_payload", "text NOT NULL"),
    ("status", 'text COLLATE "C" NOT NULL'),
    ("received_timestamp", "timestamptz NOT NULL"),
    ("last_status_change_ts", "timestamptz NOT NULL"),
    ("attempt_count", "integer NOT NULL"),
    ("created_ts", "timestamptz NOT NULL"),
    ("lease_acquired_ts", "timestamptz"),
    ("result_summary", "text"),
    ("result_extended", "text"),
    ("next_scheduled_run_ts", "timestamptz"),
    ("error_code", "text"),
    ("is_begun", "boolean NOT NULL"),
    ("execution_result", "text NOT NULL"),
    ("worker", 'text COLLATE "C"'),
    ("lease_token", 'text COLLATE "C" NOT NULL'),
    ("fingerprint", "text NOT NULL"),
    ("correlation_id", "text NOT NULL"),
    ("catalog", 'text COLLATE "C" NOT NULL'),
)
_NAMES: Final = ", ".join(name for name, _ in _COLUMNS)
CHANGING: Final = (
    "version", "status", "last_status_change_ts", "attempt_count", "lease_acquired_ts", "result_summary",
    "result_extended", "next_scheduled_run_ts", "error_code", "is_begun", "execution_result", "worker",
    "lease_token",
)  # fmt: skip
"""Columns that differ between versions of a task. The others are of the task, and are never sent again."""
_LEASED: Final = "status IN ('ACQUIRING_RESOURCES', 'RUNNING')"
_WAITS: Final = "status IN ('SUBMITTED', 'RETRY_SCHEDULED')"
_TASK: Final = "realm = $1 AND task_id = $2"
_HELD: Final = f"{_TASK} AND lease_token = $3 AND {_LEASED} AND ready_us > 0"


def _of(table: str) -> str:
    return ", ".join(f"{table}.{name}" for name, _ in _COLUMNS)


class TaskStatements:
    """The statements, for the tables of one schema."""

    version = FORMAT_VERSION

    def __init__(self, schema: str) -> None:
        tasks, versions = f'"{schema}".delegation_tasks', f'"{schema}".delegation_task_versions'
        receipts = f'"{schema}".delegation_receipts'
        columns = ", ".join(f"{name} {kind}" for name, kind in _COLUMNS)
        self.layout = (
            f"CREATE TABLE {versions} ({columns}, PRIMARY KEY (realm, task_id, version))",
            # Half-empty pages: a row is written anew by every change of its task.
            f"""CREATE TABLE {tasks} ({columns}, ready_us bigint, progress text,
                PRIMARY KEY (realm, task_id)) WITH (fillfactor = 50)""",
            f"""CREATE TABLE {receipts} (
                realm text COLLATE "C" NOT NULL, task_id uuid NOT NULL, batch text COLLATE "C" NOT NULL,
                files bigint NOT NULL, bytes bigint NOT NULL, finished_us bigint NOT NULL,
                PRIMARY KEY (realm, task_id, batch))""",
            f"""CREATE INDEX delegation_tasks_ready ON {tasks} (realm, ready_us, task_id)
                WHERE ready_us IS NOT NULL""",
            f"""CREATE INDEX delegation_tasks_ended ON {tasks} (realm, last_status_change_ts)
                WHERE ready_us IS NULL""",
            # Of first versions, which never change: the rows that do have as few indexes as can be.
            f"""CREATE INDEX delegation_tasks_created ON {versions} (realm, created_ts DESC, task_id)
                WHERE version = 1""",
            f"""CREATE INDEX delegation_tasks_children ON {versions} (realm, parent_id, created_ts, task_id)
                WHERE version = 1 AND parent_id IS NOT NULL""",
            f'CREATE TABLE "{schema}".store_format (version integer NOT NULL)',
            f'INSERT INTO "{schema}".store_format VALUES ({FORMAT_VERSION})',
        )
        # Without a version where the schema is a store of another kind; see also the backend's own.
        self.greet = f"""SELECT CASE WHEN to_regclass('{tasks}') IS NOT NULL THEN version END,
            CASE WHEN current_setting('synchronous_commit') = 'off'
            THEN set_config('synchronous_commit', 'on', false) END FROM "{schema}".store_format"""

        # Whole rows of tasks are given as one JSON document.
        self.insert = f"""WITH made AS (
                INSERT INTO {tasks} ({_NAMES}, ready_us)
                SELECT {_NAMES}, $2 FROM jsonb_populate_recordset(NULL::{versions}, $1::jsonb)
                ON CONFLICT DO NOTHING RETURNING {_NAMES}), written AS (
                INSERT INTO {versions} ({_NAMES}) SELECT {_NAMES} FROM made)
            SELECT true FROM made"""
        self.find = f"SELECT {_NAMES} FROM {tasks} WHERE {_TASK}"
        self.history = f"SELECT {_NAMES} FROM {versions} WHERE {_TASK} ORDER BY version"
        first = f"""SELECT {_of("t")} FROM {versions} AS v JOIN {tasks} AS t USING (realm, task_id)
            WHERE v.realm = $1 AND v.version = 1"""
        self.list = f"""{first} AND ($2::text IS NULL OR t.status = $2)
                AND ($3::text IS NULL OR t.task_type = $3) AND ($4::text IS NULL OR t.catalog = $4)
                AND ($5::timestamptz IS NULL OR v.created_ts <= $5)
                AND ($5::timestamptz IS NULL OR v.created_ts < $5 OR v.task_id > $6::uuid)
            ORDER BY v.created_ts DESC, v.task_id LIMIT $7"""
        self.children = f"{first} AND v.parent_id = $2 ORDER BY v.created_ts, v.task_id"
        expected = """t.realm = $1 AND t.task_id = $2 AND t.version = $3 AND t.status = $4
                    AND t.lease_token = $5 AND t.created_ts = $6"""
        changes = ", ".join(f"{name} = ${at}" for at, name in enumerate(CHANGING, 9))
        self.swap = f"""WITH moved AS (
                UPDATE {tasks} AS t SET {changes}, ready_us = CASE WHEN $7 THEN t.ready_us ELSE $8 END
                WHERE {expected} RETURNING {_NAMES}), written AS (
                INSERT INTO {versions} ({_NAMES}) SELECT {_NAMES} FROM moved)
            SELECT true FROM moved"""
        # Two versions at once, and receipts that go.
        self.swap_and_follow = f"""WITH given AS (
                SELECT {_NAMES} FROM jsonb_populate_recordset(NULL::{versions}, $7::jsonb)), moved AS (
                UPDATE {tasks} AS t SET ({_NAMES}) = ROW ({_of("g")}), ready_us = $8
                FROM given AS g WHERE g.version = t.version + 2 AND {expected}
                RETURNING t.task_id), written AS (
                INSERT INTO {versions} ({_NAMES})
                SELECT {_NAMES} FROM given WHERE EXISTS (SELECT FROM moved)), cleared AS (
                DELETE FROM {receipts} WHERE {_TASK} AND EXISTS (SELECT FROM moved))
            SELECT true FROM moved"""

        self.lease = f"""WITH picked AS MATERIALIZED (
                SELECT task_id, status FROM {tasks}
                WHERE realm = $1 AND ready_us <= $2
                ORDER BY ready_us, task_id LIMIT 1 FOR UPDATE SKIP LOCKED), taken AS (
                UPDATE {tasks} AS t SET version = t.version + 1, status = 'ACQUIRING_RESOURCES',
                    last_status_change_ts = $3, attempt_count = t.attempt_count + 1, lease_acquired_ts = $3,
                    next_scheduled_run_ts = NULL, worker = $4, lease_token = $5, ready_us = $6
                FROM picked AS p WHERE t.realm = $1 AND t.task_id = p.task_id
                RETURNING {_of("t")}, p.status AS before), written AS (
                INSERT INTO {versions} ({_NAMES}) SELECT {_NAMES} FROM taken)
            SELECT {_NAMES}, before FROM taken"""
        self.find_lease = f"""SELECT {_of("t")}, v.status FROM {tasks} AS t, {versions} AS v
            WHERE t.realm = $1 AND t.ready_us = $2 AND t.lease_token = $3
                AND v.realm = t.realm AND v.task_id = t.task_id AND v.version = t.version - 1"""
        self.keep = f"""UPDATE {tasks} SET ready_us = greatest(ready_us, $5)
            WHERE {_HELD} AND ready_us > $4 RETURNING ready_us"""
        self.report = f"UPDATE {tasks} SET progress = $4 WHERE {_HELD} RETURNING true"
        self.progress = f"SELECT progress FROM {tasks} WHERE {_TASK}"
        self.release = f"""UPDATE {tasks} SET ready_us = 0
            WHERE realm = $1 AND ready_us > 0 AND worker = $2 AND {_LEASED} RETURNING task_id"""
        self.put_receipts = f"""WITH held AS (
                SELECT task_id FROM {tasks} WHERE {_HELD} FOR NO KEY UPDATE), kept AS (
                INSERT INTO {receipts} (realm, task_id, batch, files, bytes, finished_us)
                SELECT $1, $2, batch, files, bytes, finished_us
                FROM unnest($4::text[], $5::bigint[], $6::bigint[], $7::bigint[])
                    AS r (batch, files, bytes, finished_us)
                WHERE EXISTS (SELECT FROM held) ON CONFLICT DO NOTHING)
            SELECT true FROM held"""
        self.receipts = f"SELECT batch, files, bytes, finished_us FROM {receipts} WHERE {_TASK}"
        self.next_due = f"""SELECT ready_us FROM {tasks}
            WHERE realm = $1 AND ready_us IS NOT NULL AND {_WAITS} ORDER BY ready_us, task_id LIMIT 1"""
        self.forget = f"""WITH old AS MATERIALIZED (
                SELECT task_id FROM {tasks}
                WHERE realm = $1 AND ready_us IS NULL AND last_status_change_ts < $2
                ORDER BY last_status_change_ts LIMIT $3 FOR UPDATE SKIP LOCKED), gone AS (
                DELETE FROM {tasks} AS t USING old WHERE t.realm = $1 AND t.task_id = old.task_id
                RETURNING t.task_id), versions AS (
                DELETE FROM {versions} AS v USING gone WHERE v.realm = $1 AND v.task_id = gone.task_id
                ), receipts AS (
                DELETE FROM {receipts} AS r USING gone WHERE r.realm = $1 AND r.task_id = gone.task_id)
            SELECT task_id FROM gone"""
