"""All SQL on a store in PostgreSQL.

A maintainer must not break: `swap_ref` is one statement. In it the update comes first and the insert asks
for its result, so a writer that waits for the row's lock and then loses writes no rows; and two statements
that carry the same rows (a repeat after an unknown outcome) meet at the reference's row, always in that
order, never at the rows in different orders, which could deadlock. Both take effect at the same commit, so
nobody sees the reference without its rows.
"""

# ruff: noqa: S608 - the only text put in is a schema name that `address.py` has checked

from typing import Final

FORMAT_VERSION: Final = 1
"""Layout of the tables, in `store_format`. Raise it when an older version could not use the store."""

INSERT, SWAP, DELETE_IF = range(3)
"""Kinds of conditional writes, as `EachStatements.mixed` is told them."""

_OBJECT: Final = "realm = $1 AND catalog = $2 AND type = $3 AND id = $4"
_REF: Final = "realm = $1 AND catalog = $2 AND name = $3"
_ROWS: Final = "(realm, catalog, type, id, blob, token, created_us)"


class EachStatements:
    """Conditional writes of many rows, one execution each. Those that are applied return their position.

    Relaxed ones change how the transaction commits by the way: the setting is local to it, and where no row
    is returned there is nothing to commit.
    """

    def __init__(self, objects: str, *, is_relaxed: bool) -> None:
        relaxing = ", set_config('synchronous_commit', 'off', true)" if is_relaxed else ""
        self.insert = f"""INSERT INTO {objects} {_ROWS} VALUES ($1, $2, $3, $4, $5, $6, $7)
            ON CONFLICT DO NOTHING RETURNING $8::integer{relaxing}"""
        self.swap = f"""UPDATE {objects} SET blob = $5, token = $6, created_us = $7
            WHERE {_OBJECT} AND token = $8 RETURNING $9::integer{relaxing}"""
        self.delete_if = f"""DELETE FROM {objects}
            WHERE {_OBJECT} AND token = $5 RETURNING $6::integer{relaxing}"""
        self.mixed = f"""WITH inserted AS (
                INSERT INTO {objects} {_ROWS}
                SELECT $1, $2, $3, $4, $5, $6, $7 WHERE $9::integer = {INSERT}
                ON CONFLICT DO NOTHING RETURNING true), swapped AS (
                UPDATE {objects} SET blob = $5, token = $6, created_us = $7
                WHERE $9::integer = {SWAP} AND {_OBJECT} AND token = $8 RETURNING true), deleted AS (
                DELETE FROM {objects}
                WHERE $9::integer = {DELETE_IF} AND {_OBJECT} AND token = $8 RETURNING true)
            SELECT $10::integer{relaxing}
            FROM (TABLE inserted UNION ALL TABLE swapped UNION ALL TABLE deleted) AS applied"""


class Statements:
    """The statements, for the tables of one schema."""

    version = FORMAT_VERSION

    def __init__(self, schema: str) -> None:
        # A lateral lookup per key with OFFSET 0 can only be planned as one lookup per key. A plain join is
        # planned and cached while the table is small, and then reads all of a table that has grown.
        of_key = "realm = k.realm AND catalog = k.catalog"
        objects, refs = f'"{schema}".objects', f'"{schema}".refs'
        self.layout = (
            f"""CREATE TABLE {objects} (
                realm text COLLATE "C" NOT NULL, catalog text COLLATE "C" NOT NULL,
                type text COLLATE "C" NOT NULL, id bigint NOT NULL,
                blob bytea NOT NULL, token text COLLATE "C" NOT NULL, created_us bigint NOT NULL,
                PRIMARY KEY (realm, catalog, type, id))""",
            # Objects are compressed above, where it pays; trying again costs the server CPU only.
            f"ALTER TABLE {objects} ALTER COLUMN blob SET STORAGE EXTERNAL",
            # Half-empty pages, so that new versions of the one row that moves stay on its page.
            f"""CREATE TABLE {refs} (
                realm text COLLATE "C" NOT NULL, catalog text COLLATE "C" NOT NULL,
                name text COLLATE "C" NOT NULL, head bigint NOT NULL, generation bigint NOT NULL,
                recent bigint[] NOT NULL, created_us bigint NOT NULL,
                PRIMARY KEY (realm, catalog, name)) WITH (fillfactor = 50)""",
            f'CREATE TABLE "{schema}".store_format (version integer NOT NULL)',
            f'INSERT INTO "{schema}".store_format VALUES ({FORMAT_VERSION})',
        )
        # A server that acknowledges before the log is on disk would lose acknowledged commits. Stronger
        # settings (remote_apply) are the operator's choice and stay.
        self.greet = f"""SELECT version, CASE WHEN current_setting('synchronous_commit') = 'off'
            THEN set_config('synchronous_commit', 'on', false) END FROM "{schema}".store_format"""

        self.fetch = f"""SELECT k.at, o.blob, o.token, o.created_us
            FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[])
                WITH ORDINALITY AS k (realm, catalog, type, id, at),
            LATERAL (SELECT blob, token, created_us FROM {objects}
                     WHERE {of_key} AND type = k.type AND id = k.id OFFSET 0) AS o"""
        self.fetch_one = f"SELECT blob, token, created_us FROM {objects} WHERE {_OBJECT}"
        self.write = f"""INSERT INTO {objects} {_ROWS}
            SELECT realm, catalog, type, id, blob, '', created_us
            FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bytea[], $6::bigint[])
                AS r (realm, catalog, type, id, blob, created_us)
            ON CONFLICT DO NOTHING"""
        self.insert = f"""INSERT INTO {objects} {_ROWS} VALUES ($1, $2, $3, $4, $5, $6, $7)
            ON CONFLICT DO NOTHING RETURNING true"""
        self.swap = f"""UPDATE {objects} SET blob = $5, token = $6, created_us = $7
            WHERE {_OBJECT} AND token = $8 RETURNING true"""
        self.delete_if = f"DELETE FROM {objects} WHERE {_OBJECT} AND token = $5 RETURNING true"
        self.write_each = EachStatements(objects, is_relaxed=False)
        self.write_each_relaxed = EachStatements(objects, is_relaxed=True)
        self.delete = f"""DELETE FROM {objects} AS o
            USING unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS k (realm, catalog, type, id)
            WHERE o.realm = k.realm AND o.catalog = k.catalog AND o.type = k.type AND o.id = k.id"""
        heads = f"SELECT realm, catalog, type, id, token, created_us, length(blob) FROM {objects}"
        in_order = "ORDER BY realm, catalog, type, id"
        self.scan_first = f"{heads} {in_order} LIMIT $1"
        self.scan = f"{heads} WHERE (realm, catalog, type, id) > ($2, $3, $4, $5) {in_order} LIMIT $1"

        self.fetch_refs = f"""SELECT k.at, r.head, r.generation, r.recent, r.created_us
            FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS k (realm, catalog, name, at),
            LATERAL (SELECT head, generation, recent, created_us FROM {refs}
                     WHERE {of_key} AND name = k.name OFFSET 0) AS r"""
        self.fetch_ref = f"SELECT head, generation, recent, created_us FROM {refs} WHERE {_REF}"
        self.list_refs = f"""SELECT realm, catalog, name, head, generation, recent, created_us FROM {refs}
            WHERE $1::text IS NULL OR realm = $1 ORDER BY realm, catalog, name"""
        self.insert_ref = f"""INSERT INTO {refs} (realm, catalog, name, head, generation, recent, created_us)
            VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING RETURNING true"""
        self.swap_ref = f"""UPDATE {refs} SET head = $4, generation = $5, recent = $6, created_us = $7
            WHERE {_REF} AND head = $8 AND generation = $9 RETURNING true"""
        self.swap_ref_with_rows = f"""WITH moved AS ({self.swap_ref}), written AS (
                INSERT INTO {objects} {_ROWS}
                SELECT realm, catalog, type, id, blob, '', created_us
                FROM unnest($10::text[], $11::text[], $12::text[], $13::bigint[], $14::bytea[], $15::bigint[])
                    AS r (realm, catalog, type, id, blob, created_us)
                WHERE EXISTS (SELECT FROM moved)
                ON CONFLICT DO NOTHING)
            SELECT true FROM moved"""
        self.delete_ref = f"DELETE FROM {refs} WHERE {_REF} AND head = $4 AND generation = $5 RETURNING true"
        self.fetch_held = f"""SELECT head, generation, recent, r.created_us, blob, token, o.created_us
            FROM {refs} AS r LEFT JOIN {objects} AS o
                ON o.realm = r.realm AND o.catalog = r.catalog AND o.type = $4 AND o.id = r.head
            WHERE r.realm = $1 AND r.catalog = $2 AND r.name = $3"""
