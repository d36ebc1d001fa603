"""List tasks, page by page.

Must not break: a page token goes on with the listing it was given for, and with no other.
"""

import hashlib
from datetime import timedelta
from typing import Final

from cynosure.catalog.task_executor import TaskPage, TaskQuery
from cynosure.common.errors import BadInput, BadPageToken
from cynosure.common.paging import PageTokens
from cynosure.delegation.service.context import TaskContext
from cynosure.delegation.service.details import to_details
from cynosure.delegation.store.port import TaskFilter

MAX_PAGE_SIZE: Final = 1_000
_TOKEN_LIFE: Final = timedelta(days=1)


async def list_tasks(context: TaskContext, query: TaskQuery) -> TaskPage:
    """Tasks, those that were created last first. `BadInput` names what is wrong with the question."""
    if not 1 <= query.page_size <= MAX_PAGE_SIZE:
        raise BadInput(
            "The size of a page is out of bounds",
            field="page_size",
            fix=f"Ask for 1 to {MAX_PAGE_SIZE} tasks.",
            value=query.page_size,
        )
    if "\0" in (query.catalog or ""):
        raise BadInput("No catalog is called so", field="catalog", fix="Name a catalog, or leave it out.")
    tokens, scope = _tokens(context), f"{query.status}\0{query.task_type}\0{query.catalog}"
    after = None
    if query.page_token is not None:
        try:
            after = tokens.open(scope, query.page_token).decode()
        except UnicodeDecodeError as error:
            raise BadPageToken(
                "The page token was not issued for this listing",
                field="page_token",
                fix="List again without a page token.",
            ) from error
    wanted = TaskFilter(query.status, query.task_type, query.catalog)
    records, following = await context.store.list(wanted, limit=query.page_size, after=after)
    token = None if following is None else tokens.seal(scope, following.encode())
    return TaskPage([to_details(each) for each in records], token)


def _tokens(context: TaskContext) -> PageTokens:
    # All instances must read each other's tokens, and share nothing but the tasks. So the key is no secret:
    # it keeps mistakes out. Whoever forges a token sees what the same request without one shows as well.
    key = hashlib.sha256(b"tasks\0" + context.realm.encode()).digest()
    return PageTokens(key, context.clock, _TOKEN_LIFE)
