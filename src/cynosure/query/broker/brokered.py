"""One statement's fragments at the broker, from `open_query` to `close`.

    place      where Spark's plan reads a fragment: (stage, partition). Attempts of one place fence each
               other; a plan may read one fragment in several places (a CTE that is inlined twice, sampling
               for a sort), and each of them is a reader in its own right

A maintainer must not break: a place has one live stream, the newest attempt's; after `close` there is no
task, no credential and no token left here, and nobody is called back.
"""

import asyncio
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Final

import msgspec

from cynosure.common.errors import BadInput, CynosureError
from cynosure.common.telemetry.tracing import current_traceparent
from cynosure.query.broker.failures import lost_again, read_too_often, to_error
from cynosure.query.broker.live_stream import LiveStream
from cynosure.query.broker.runtime import Outcome
from cynosure.query.broker.tokens import is_good, make_token
from cynosure.query.engine import FragmentReport, OnFragment, Relation
from cynosure.query.refreshing import CredentialRefresher
from cynosure.query.scan_task import Credentials, InlineTask, ScanTask
from cynosure.query.stream.frames import Assigned, AssignedRows, Failed, Hello, NewCredentials

LEAST_PLACES: Final = 64
"""In which one fragment may be read at once, at least. Most plans have a few. In a Cartesian product all
tasks with the same part of one side read it: as many as run at once."""
_PLACES_PER_SLOT: Final = 2
"""Attempts that end slowly are still here when others have their cores."""


class Refusal(StrEnum):
    """Why an attempt gets nothing, as it is counted."""

    OLD_ATTEMPT = "old_attempt"
    PLACES = "places"


KillAttempt = Callable[[int], None]
"""Told Spark's id of an attempt that must end: it was lost, or is stuck."""


class _Place:
    """One reader of a fragment."""

    def __init__(self) -> None:
        self.newest_attempt_id = -1
        self.live: LiveStream | None = None
        self.failures = 0


class _Fragment:
    def __init__(self, task: ScanTask | InlineTask, relation: Relation, digest: bytes) -> None:
        self.task = task
        self.relation = relation
        self.digest = digest
        self.places: dict[str, _Place] = {}

    def has_room(self, count_slots: Callable[[], int]) -> bool:
        """Whether one more place may read it. Forgets places that nobody reads in, when there are many."""
        if len(self.places) < LEAST_PLACES:
            return True
        most = max(_PLACES_PER_SLOT * count_slots(), LEAST_PLACES)
        if len(self.places) >= most:
            self.places = {name: place for name, place in self.places.items() if place.live is not None}
        return len(self.places) < most


class BrokeredQuery:
    """What the engine gets for one statement. Made by `Broker.open_query`."""

    def __init__(
        self,
        query_id: str,
        relations: Iterable[Relation],
        *,
        address: str,
        ca_pem: str,
        refresher: CredentialRefresher,
        on_fragment: OnFragment,
        kill_attempt: KillAttempt,
        retries: int,
        count_slots: Callable[[], int],
        forget: Callable[["BrokeredQuery"], None],
    ) -> None:
        self.query_id = query_id
        self.address = address
        self.ca_pem = ca_pem
        self.tokens: dict[str, str] = {}
        """By fragment id, for the engine; gone with `close`. Streams are judged by their hashes."""
        self.failed: asyncio.Future[CynosureError] = asyncio.get_running_loop().create_future()
        """Its *result* is why the statement cannot succeed any more; pending while it can."""
        self._fragments: dict[str, _Fragment] = {}
        self._newest: dict[str, Credentials] = {}
        self._refresher = refresher
        self._on_fragment = on_fragment
        self._kill_attempt = kill_attempt
        self._retries = retries
        self._count_slots = count_slots
        self._forget = forget
        self._is_closed = False
        # Streams are served by tasks of their own, which know nothing of the statement's span.
        self._traceparent = current_traceparent()
        for relation in relations:
            self._add(relation)

    def _add(self, relation: Relation) -> None:
        for task in relation.fragments:
            if task.fragment_id in self._fragments:
                raise BadInput(
                    "Two fragments of a statement have one id",
                    field="fragment_id",
                    fix="Give every fragment of a statement an id of its own.",
                )
            token, digest = make_token()
            self.tokens[task.fragment_id] = token
            self._fragments[task.fragment_id] = _Fragment(task, relation, digest)
        first = next(iter(relation.fragments), None)
        if relation.renew is not None and isinstance(first, ScanTask):
            view = relation.view
            self._refresher.register(
                (self.query_id, view), first.credentials, relation.renew, lambda new: self._push(view, new)
            )

    def knows(self, fragment_id: str, token: str) -> bool:
        """Whether this token is the fragment's."""
        fragment = self._fragments.get(fragment_id)
        return is_good(token, None if fragment is None else fragment.digest)

    def admit(self, hello: Hello) -> Refusal | None:
        """Why an attempt with a good token gets nothing; None: it gets its task."""
        fragment = self._fragments[hello.fragment_id]
        place = fragment.places.get(hello.place)
        if place is None:
            if fragment.has_room(self._count_slots):
                return None
            if not self.failed.done():
                # The attempt hears that nobody wants it, and Spark only that it failed.
                self.failed.set_result(read_too_often(fragment_id=hello.fragment_id))
            return Refusal.PLACES
        return Refusal.OLD_ATTEMPT if hello.attempt_id < place.newest_attempt_id else None

    def begin(self, stream: LiveStream) -> LiveStream | None:
        """A stream goes live; the one that it fences."""
        fragment = self._fragments[stream.hello.fragment_id]
        place = fragment.places.setdefault(stream.hello.place, _Place())
        place.newest_attempt_id = stream.hello.attempt_id
        fenced, place.live = place.live, stream
        return fenced

    def shown(self, fragment_id: str) -> str:
        """What people call the table of a fragment."""
        return self._fragments[fragment_id].relation.shown

    def assignment(self, fragment_id: str, beat_s: float) -> Assigned | AssignedRows:
        """What is sent, with the newest credentials."""
        fragment = self._fragments[fragment_id]
        if isinstance(fragment.task, InlineTask):
            return AssignedRows(fragment.task, beat_s, self._traceparent)
        newest = self._newest.get(fragment.relation.view, fragment.task.credentials)
        task = msgspec.structs.replace(fragment.task, credentials=newest)
        return Assigned(task, beat_s, self._traceparent)

    def live(self) -> list[LiveStream]:
        """All streams of it."""
        return [
            place.live
            for fragment in self._fragments.values()
            for place in fragment.places.values()
            if place.live is not None
        ]

    def end(self, stream: LiveStream, failed: Failed | None, elapsed_ms: int) -> None:
        """One attempt is over: `stream.outcome` says how."""
        if self._is_closed:
            return
        place = self._fragments[stream.hello.fragment_id].places.setdefault(stream.hello.place, _Place())
        if place.live is stream:
            place.live = None
        if stream.outcome in (Outcome.FENCED, Outcome.STOPPED):
            return
        is_success = stream.outcome in (Outcome.DONE, Outcome.LEFT)
        self._on_fragment(
            FragmentReport(
                fragment_id=stream.hello.fragment_id,
                is_success=is_success,
                elapsed_ms=elapsed_ms,
                rows=stream.rows if is_success else 0,
                worker=stream.hello.worker,
                bytes=stream.bytes_read,
                attempt=stream.hello.attempt,
            )
        )
        if not is_success:
            self._count_failure(place, stream, failed)

    def kill(self, stream: LiveStream) -> None:
        """Have Spark end an attempt that does not end by itself."""
        if not self._is_closed:
            self._kill_attempt(stream.hello.attempt_id)

    def close(self) -> None:
        """The statement is over: its streams end, and everything is forgotten. Twice is fine."""
        if self._is_closed:
            return
        self._is_closed = True
        streams = self.live()
        for relation in {each.relation.view for each in self._fragments.values()}:
            self._refresher.unregister((self.query_id, relation))
        self._fragments.clear()
        self._newest.clear()
        self.tokens.clear()
        self.failed.cancel()
        self._forget(self)
        for stream in streams:
            stream.settle(Outcome.STOPPED)
            stream.stop("The statement is over")

    def _count_failure(self, place: _Place, stream: LiveStream, failed: Failed | None) -> None:
        place.failures += 1
        is_final = place.failures > self._retries or (failed is not None and not failed.is_worth_retrying)
        if not is_final or self.failed.done():
            return
        fragment_id = stream.hello.fragment_id
        if failed is None:
            self.failed.set_result(lost_again(fragment_id=fragment_id, attempts=place.failures))
        else:
            self.failed.set_result(to_error(failed, fragment_id=fragment_id, attempts=place.failures))

    def _push(self, view: str, credentials: Credentials) -> None:
        self._newest[view] = credentials
        for fragment in self._fragments.values():
            if fragment.relation.view == view:
                for place in fragment.places.values():
                    if place.live is not None:
                        place.live.send(NewCredentials(credentials))
