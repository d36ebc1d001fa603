"""The messages of a fragment's stream.

A maintainer must not break: both ends decode with these types only; an unknown message ends the stream.
"""

from typing import Final

import msgspec
from msgspec import Struct

from cynosure.query.scan_task import Credentials, InlineTask, ScanTask

MAX_FRAME_BYTES: Final = 64 * 2**20
BEAT_S: Final = 5.0
"""Between two beats of a worker."""

ROW_COLUMN: Final = "cyn_row"
"""Of batches of relations without columns: Spark cannot map to nothing. A tinyint of zeros."""


class Hello(Struct, frozen=True, tag=True):
    """The first message: which fragment, and who."""

    query_id: str
    fragment_id: str
    token: str
    """Bound to both; see `query.broker.tokens`."""
    attempt_id: int
    """Spark's `taskAttemptId`: what the gateway kills when it is lost. A later attempt fences the earlier."""
    attempt: int
    """0 for the first one of this fragment."""
    worker: str
    """The executor: `HOST/EXECUTOR-ID`."""
    process: str = ""
    """`HOST:PID` of the Python process."""
    place: str = ""
    """`STAGE/PARTITION` of Spark: a plan may read a relation in two places at once (a CTE that is inlined
    twice). Attempts of one place fence each other, those of two places do not."""

    def __repr__(self) -> str:
        return f"Hello({self.query_id}, {self.fragment_id}, attempt={self.attempt}, worker={self.worker})"


class Assigned(Struct, frozen=True, tag=True):
    """What to scan."""

    task: ScanTask
    beat_s: float = BEAT_S
    """Between two beats."""
    traceparent: str = ""
    """W3C trace context of the statement; empty: it is not traced."""

    def __repr__(self) -> str:
        return f"Assigned({self.task!r})"


class AssignedRows(Struct, frozen=True, tag=True):
    """Rows to give as they are."""

    task: InlineTask
    beat_s: float = BEAT_S
    traceparent: str = ""


class Refused(Struct, frozen=True, tag=True):
    """No: wrong token, a newer attempt, an ended statement. The reason is constant text."""

    reason: str


class NewCredentials(Struct, frozen=True, tag=True):
    """The newest win; taken between files."""

    credentials: Credentials


class Probe(Struct, frozen=True, tag=True):
    """Is anything going on? Answered by the scanning side with a `Beat` of this number."""

    number: int


class Stop(Struct, frozen=True, tag=True):
    """Nobody wants it any more."""

    reason: str


class Beat(Struct, frozen=True, tag=True):
    """Alive, and how far."""

    files: int = 0
    rows: int = 0
    bytes: int = 0
    probe: int = 0
    """The number of the probe that it answers; 0: none."""
    idle_ms: int = 0
    """For how long the scan has not moved. The thread that beats is not the one that scans."""


class Done(Struct, frozen=True, tag=True):
    """All batches were given to Spark."""

    rows: int
    bytes: int
    files: int
    elapsed_ms: int


class Left(Struct, frozen=True, tag=True):
    """Spark wants no more rows of it, and had so many: a LIMIT was reached."""

    rows: int
    bytes: int
    files: int
    elapsed_ms: int


class Failed(Struct, frozen=True, tag=True):
    """It failed. `kind` is the name of an error of ours; `message` is constant text, scrubbed."""

    kind: str
    message: str
    fix: str = ""
    is_worth_retrying: bool = True


Up = Hello | Beat | Done | Left | Failed
Down = Assigned | AssignedRows | Refused | NewCredentials | Probe | Stop

ENCODER: Final = msgspec.msgpack.Encoder()
UP: Final = msgspec.msgpack.Decoder(Up)
DOWN: Final = msgspec.msgpack.Decoder(Down)
