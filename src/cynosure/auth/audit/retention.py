"""What is older than the audit's own retention goes.

Rows of what was taken off the list are collected when the history that still shows them is.

Must not break: a batch goes only when all of its events are old, and the mark says up to where they went.
"""

from datetime import timedelta
from typing import Final

import msgspec

from cynosure.auth.audit.journal import EVENTS, POSITIONS, TRIMMED, Mark, commit, load_batches
from cynosure.persistence.commit import Prepared, State, View
from cynosure.persistence.commit.view import find_object
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.references import realm_reference
from cynosure.persistence.spi import RealmId

OPERATION: Final = "trim-events"
_BATCHES_AT_ONCE: Final = 256
