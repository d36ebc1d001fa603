"""Requests that change something, each under an Idempotency-Key where the server honours them.

One key per call, held until there is an answer: after a time-out, a lost connection or a failure of the
server, and while an earlier attempt goes on, the same bytes are sent under the same key again. So the answer
is that of the one time that the change was made, however many attempts it took.

Must not break: no attempt begins when the server may have forgotten the key, because it would make the change
again. And an answer that a server never keeps (401, 403) says nothing about the attempts before it.
"""

import copy
from datetime import timedelta
from typing import Any, Final, Self

import msgspec

from cynosure.client.api import ApiClient
from cynosure.client.errors import IdempotencyWindowExpired, ServerFailed, StillInProgress
from cynosure.client.http import Failed, Reply
from cynosure.client.idempotency import KEY_HEADER, Replay, check_key, make_key
from cynosure.client.retry import Failure, classify_keyed
from cynosure.client.waiting import Notice
from cynosure.common.clock import Clock
from cynosure.common.errors import CynosureError, NotAuthenticated, OutcomeUnknown, Unavailable
from cynosure.common.quantities import format_duration

_ATTEMPT_S: Final = 60.0
"""Longer than our servers let a repeated request wait for the first one to end (30 s)."""
_MARGIN_S: Final = 60.0
"""An attempt on its way must arrive while the key is known; of a short lifetime, a tenth is kept free."""
_FIRST_PAUSE_S: Final = 0.1
_MAX_PAUSE_S: Final = 10.0
_NEVER_KEPT: Final = frozenset({401, 403, 408, 419})


class Keyed:
    """An API whose changes carry keys. A base of the classes that have calls."""

    def __init__(self, api: ApiClient, catalog: str | None = None) -> None:
        """`catalog`: the one that is asked whether keys are honoured; without one, the management API."""
        self._api = api
        self._catalog = catalog
        self._key: str | None = None

    def with_key(self, key: str) -> Self:
        """The same API, for one change under the caller's own key.

        Whoever keeps the key can make the very same call again, from another process too, and gets the answer
        of the first one, within the lifetime that the server promises.
        """
        chosen = copy.copy(self)
        chosen._key = check_key(key)
        return chosen

    async def _change(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: dict[str, str] | None = None,
    ) -> Reply:
        api, key = self._api, self._key
        lifetime_s = None
        if api.keys.is_automatic:
            lifetime_s = await api.discovery.find_lifetime_s(self._catalog)
            if lifetime_s is None and key is not None and api.keys.on_unsupported is not None:
                api.keys.on_unsupported()
        if lifetime_s is None:
            return await self._send_once(method, path, body, query)
        key = key or make_key(api.clock.now_us())
        # Encoded once: what the caller does to `body` meanwhile must not make it another request.
        content = None if body is None else msgspec.Raw(msgspec.json.encode(body))
        return await _Repeating(api, key, lifetime_s).run(method, path, content, query)

    async def _send_once(
        self,
        method: str,
        path: str,
        body: Any,
        query: dict[str, str] | None,
        *,
        timeout_s: float = _ATTEMPT_S,
    ) -> Reply:
        """Without the server's promise, what may have been applied is not sent again."""
        headers = {KEY_HEADER: self._key} if self._key else None
        patience_s = self._api.keys.patience_s
        timeout_s = timeout_s if patience_s is None else min(timeout_s, patience_s)
        reply = await self._api.request(
            method,
            path,
            body=body,
            query=query,
            headers=headers,
            timeout_s=timeout_s,
            is_repeatable=False,
        )
        if self._key:
            _tell_replay(self._api, reply.is_replayed, method, path, self._key)
        return reply


class _Repeating:
    """All attempts at one change."""

    def __init__(self, api: ApiClient, key: str, lifetime_s: float) -> None:
        self._api = api
        self._key = key
        self._elapsed = _Elapsed(api.clock)
        self._notice = Notice(api.clock, api.on_wait)
        self._lifetime_s = lifetime_s
        self._window_s = lifetime_s - min(_MARGIN_S, lifetime_s / 10)
        patience_s = api.keys.patience_s
        self._deadline_s = self._window_s if patience_s is None else min(self._window_s, patience_s)
        self._pauses = 0
        self._may_be_applied = False

    async def run(
        self, method: str, path: str, content: msgspec.Raw | None, query: dict[str, str] | None
    ) -> Reply:
        while True:
            answer = await self._attempt(method, path, content, query)
            if isinstance(answer, Reply):
                _tell_replay(self._api, answer.is_replayed, method, path, self._key)
                return answer
            failure = answer.failure
            if answer.status:
                is_in_progress = isinstance(answer.error, StillInProgress)
                failure = classify_keyed(answer.status, is_in_progress=is_in_progress)
            if failure is None:
                is_replayed = bool(answer.error.details.get("is_replayed"))
                _tell_replay(self._api, is_replayed, method, path, self._key)
                raise self._refused(answer)
            self._may_be_applied |= failure is Failure.UNKNOWN
            is_nobody_there = failure is Failure.NOTHING_APPLIED and not answer.status
            if is_nobody_there and not self._api.is_patient and not self._may_be_applied:
                raise answer.error
            if not await self._pause(answer):
                raise self._give_up(answer.error) from answer.error

    async def _attempt(
        self, method: str, path: str, content: msgspec.Raw | None, query: dict[str, str] | None
    ) -> Reply | Failed:
        try:
            return await self._api.attempt(
                method,
                path,
                body=content,
                query=query,
                headers={KEY_HEADER: self._key},
                get_timeout_s=lambda: min(_ATTEMPT_S, self._deadline_s - self._elapsed.get_s()),
            )
        except (Unavailable, ServerFailed, OutcomeUnknown) as error:
            # There was no token to send it with.
            return Failed(Failure.NOTHING_APPLIED, error)
        except NotAuthenticated as error:
            return Failed(None, error, 401)

    async def _pause(self, answer: Failed) -> bool:
        """Wait for the next attempt; `False` when there must be none."""
        # The exponent is capped because a float overflows at 2**1024.
        bound_s = min(_MAX_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(self._pauses, 16))
        pause_s = max(bound_s * self._api.rng.uniform(0.5, 1.0), answer.retry_after_s)
        self._pauses += 1
        left_s = self._deadline_s - self._elapsed.get_s()
        if pause_s >= left_s:
            return False
        self._notice.give(answer.status, answer.error, pause_s=pause_s, left_s=left_s)
        await self._api.clock.sleep(pause_s)
        return self._elapsed.get_s() < self._deadline_s

    def _refused(self, answer: Failed) -> CynosureError:
        if answer.status not in _NEVER_KEPT or not self._may_be_applied:
            return answer.error
        unknown = self._unknown(answer.error)
        unknown.__cause__ = answer.error
        return unknown

    def _give_up(self, error: CynosureError) -> CynosureError:
        if self._deadline_s == self._window_s or self._elapsed.get_s() >= self._window_s:
            return IdempotencyWindowExpired(
                "No answer came for as long as the server honours the Idempotency-Key",
                fix="Look at the current state: the change may or may not have been made. If it is needed, "
                "send it with a new key.",
                idempotency_key=self._key,
                lifetime=_show(self._lifetime_s),
                reason=str(error),
            )
        return self._unknown(error) if self._may_be_applied else error

    def _unknown(self, error: CynosureError) -> OutcomeUnknown:
        left_s = max(0.0, self._window_s - self._elapsed.get_s())
        return OutcomeUnknown(
            "The server may or may not have applied the request",
            fix="Send the very same request with the same Idempotency-Key while that is good, and the first "
            "attempt's answer comes; or look at the current state.",
            idempotency_key=self._key,
            good_for=_show(left_s),
            reason=str(error),
        )


class _Elapsed:
    """Time since the first attempt, by whichever clock saw more: one stands while the machine sleeps."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._monotonic_s = clock.monotonic_s()
        self._wall_us = clock.now_us()

    def get_s(self) -> float:
        return max(
            self._clock.monotonic_s() - self._monotonic_s,
            (self._clock.now_us() - self._wall_us) / 1_000_000,
        )


def _tell_replay(api: ApiClient, is_replayed: bool, method: str, path: str, key: str) -> None:
    if is_replayed and api.keys.on_replay is not None:
        api.keys.on_replay(Replay(method, path, key))


def _show(seconds: float) -> str:
    return format_duration(timedelta(seconds=round(seconds)))
