"""Whether all that a table names is its own, where no credentials see to that.

A job on Spark reads and deletes what manifests name, and their writers name what they like. In an object
store the catalog's credentials open the table's places and nothing else. Local files have none: Spark touches
all that the service's user may.

A maintainer must not break: what cannot be read here may be read by Spark, so it is refused as well.
"""

from contextlib import aclosing

from cynosure.delegation.catalog_access import TableAccess
from cynosure.delegation.jobs.live_files.expanding import MOST_NAMED, Expanding
from cynosure.delegation.jobs.live_files.patient import PatientFileIO
from cynosure.delegation.jobs.live_files.places import Places
from cynosure.delegation.jobs.live_files.references import Role, read_references
from cynosure.delegation.jobs.port import JobContext, JobFailed


async def require_own_files(context: JobContext, table: TableAccess) -> None:
    """`JobFailed` when a table of local files names some that are not in its places."""
    facts = table.facts
    if not any(place.scheme == "file" for place in facts.places):
        return
    places = Places(facts.places)
    walk = Expanding(PatientFileIO(table.files, context.clock), places, with_deleted=True)
    outside: list[str] = []
    async with aclosing(walk.run(read_references(facts.metadata, None))) as pages:
        async for found in pages:
            # Earlier metadata files may be elsewhere: no job touches them.
            outside += [path for role, path in found if role != Role.METADATA and places.find(path) is None]
            if outside:
                break
    trouble = walk.trouble
    if outside or trouble.corrupt_count or trouble.missing_count or trouble.encrypted_count:
        unread = [*trouble.corrupt, *trouble.missing, *trouble.encrypted]
        raise JobFailed(
            "The table names local files outside of its own places, or manifests that cannot be read",
            code="FILES_OUTSIDE",
            status=409,
            fix="Roll it back to a snapshot with files of its own, or copy the files into its location.",
            paths=[*outside, *unread][:MOST_NAMED],
        )
