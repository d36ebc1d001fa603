"""An earlier state made current again, as a new commit.

Nothing is rewritten: the commits in between stay in the log, and the restore can itself be undone.
Restoring is per reference, so restoring a catalog's `main` never touches its grants; references that
decide who may do what are refused unless asked for by name, because the past holds revoked rights.

Must not break: only what garbage collection retains may be restored (`retained.py`), or it could be
swept at that very moment.
"""

from datetime import timedelta

from cynosure.common.clock import Clock
from cynosure.common.errors import BadInput
from cynosure.persistence.commit.committer import Committer
from cynosure.persistence.commit.records import Change, raw_detail
from cynosure.persistence.commit.request import AlreadyCommitted, Committed, Prepared, Request
from cynosure.persistence.commit.view import View
from cynosure.persistence.history.compare import compare
from cynosure.persistence.history.retained import load_retained
from cynosure.persistence.spi import ObjId

GUARDING_REFERENCES = ("grants", "principals", "settings")
"""Their past holds revoked rights, secrets and signing keys."""
RECORDS = ("audit", "tasks")
"""What happened cannot be made not to have happened."""
_FEED_ENTRIES = 1_000
"""Entries listed one by one in the change feed; a longer restore is followed with a diff."""


async def restore(
    committer: Committer,
    target: ObjId,
    *,
    principal: str,
    request_id: str,
    clock: Clock,
    retention: timedelta,
    revive_rights: bool = False,
) -> Committed[int] | AlreadyCommitted:
    """Commit the state at `target` again. The result is the number of entries that changed."""
    if committer.key.name in RECORDS:
        raise BadInput(
            "This reference is a record and is not restored",
            field="reference",
            fix="Leave it as it is; its past is in its log.",
            reference=committer.key.name,
        )
    if committer.key.name in GUARDING_REFERENCES and not revive_rights:
        raise BadInput(
            "Restoring this reference would revive revoked rights",
            field="reference",
            fix="Restore 'main' or 'catalogs' instead, or ask for revoked rights explicitly.",
            reference=committer.key.name,
        )

    async def prepare(view: View) -> Prepared[int]:
        current = view.committed
        past = await load_retained(
            committer.store, current.commit_id, target, clock=clock, retention=retention
        )
        changes: dict[str, dict[bytes, bytes | None]] = {}
        listed: list[Change] = []
        count = 0
        async for entry in compare(current, past.state):
            changes.setdefault(entry.index, {})[entry.key] = entry.after
            count += 1
            if count <= _FEED_ENTRIES:
                listed.append(
                    Change(
                        kind="restored-entry",
                        index=entry.index,
                        key=entry.key,
                        before=entry.before,
                        after=entry.after,
                    )
                )
        summary = Change(
            kind="restored", index="", key=b"", detail=raw_detail({"to": target, "entries": count})
        )
        return Prepared(result=count, changes=changes, feed=[summary, *listed])

    return await committer.commit(
        Request(prepare, principal, operation="restore", request_id=request_id, is_exclusive=True)
    )
