"""What servers do for requests with an Idempotency-Key: production's `commit_as` and its companions.

Every shape that operations of the catalog have is here: one commit; a look at the state and slow work before
it (`register`); a commit of its own on the way (`provision`); an answer without any commit, another one each
time (`stage`); a refusal that needs no state (`malformed`); one commit for several requests (`join`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final

import msgspec

from cynosure.auth.caller import Caller
from cynosure.auth.committing import commit_as, commit_part, end_rehearsal, find_recalled, refusing
from cynosure.auth.committing_together import Member, Worked, commit_together
from cynosure.auth.receipts import Kept, Recall, Sealed
from cynosure.auth.request_key import RequestKey
from cynosure.catalog.recalling import RecalledVersion, Version
from cynosure.common.errors import AlreadyExists, BadInput, Conflict, Forbidden, NotFound
from cynosure.idempotency.record import Answer
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId, RefKey
from cynosure.testing.sim.keyed_history import KeyedAttempt, KeyedHistory
from cynosure.testing.sim.operations import ENTITY, SHARED, Operation, prepare
from cynosure.testing.sim.server import REALM, SimServer

EFFECTLESS: Final = frozenset({"stage", "malformed"})
"""Kinds that commit nothing."""
_CREATING: Final = frozenset({"create", "register", "provision", "stage"})
_ON_A_NAME: Final = frozenset({"increment", "set-if", "rename", "drop", "join"})
_LEFT_OUT: Final = 0.1
"""Chance that a change does nothing for one of those who could share it."""
_HELPER: Final = Operation("ensure", ("helper", "helpers/"))


def meaning(operation: Operation) -> Operation:
    """The change that an operation comes down to."""
    if operation.kind == "join":
        return Operation("join", (operation.args[0], 1))
    return Operation("create", operation.args) if operation.kind in _CREATING else operation


class KeyedWork:
    """One request, as its server executes it; several times, if need be."""

    def __init__(
        self, attempt: KeyedAttempt, server: SimServer, keyed: KeyedHistory, rng: Random, *, slow: float
    ) -> None:
        self._attempt = attempt
        self._server = server
        self._keyed = keyed
        self._rng = rng
        self._slow = slow
        self._hides = rng.random() < 0.5
        self._runs = 0
        self._committer = server.committers[attempt.reference]

    async def execute(self, key: RequestKey) -> Answer:
        """See `cynosure.idempotency.engine.Execute`."""
        attempt, history = self._attempt, self._keyed.history
        self._runs += 1
        how = "rehearses" if key.is_rehearsal else "executes again" if key.is_repeat else "executes"
        history.note(self._server.name, how, attempt.request_id, key.hash[:8])
        history.count(f"server {how}")
        if self._is_answered(key):
            body = await self._do(self._caller(key))
        else:
            executing = self._server.executing
            if key.hash in executing:
                text = f"{self._server.name} {key.hash[:8]}"
                history.breach("a server executes a key one at a time", text)
            executing.add(key.hash)
            try:
                body = await self._do(self._caller(key))
            finally:
                executing.discard(key.hash)
        if key.is_recalled:
            history.count("answers recalled")
        return Answer(200, (), msgspec.msgpack.encode(body))

    def _is_answered(self, key: RequestKey) -> bool:
        """Whether the key is in the chain, as far as this server knows: then any number may ask."""
        assert self._server.idempotency is not None
        running = self._server.idempotency._running.get(key.hash)
        return running is not None and running.is_noting

    def _caller(self, key: RequestKey) -> Caller:
        return Caller(self._attempt.principal, REALM, f"{self._attempt.request_id}.{self._runs}", key)

    async def _do(self, caller: Caller) -> list[Any]:
        operation = self._attempt.operation
        match operation.kind:
            case "malformed":
                raise BadInput("This cannot be asked for", field="name", fix="Ask for something else.")
            case "stage":
                return await self._stage(operation.args[0])
            case "register":
                return await self._register(caller)
            case "provision":
                return await self._provision(caller)
            case "join":
                return await self._join(caller)
        return await self._commit(caller)

    async def _stage(self, name: str) -> list[Any]:
        await self._require_free(name)
        await self._take_time()
        return [self._server.ids.next(), 0, 0]

    async def _register(self, caller: Caller) -> list[Any]:
        recalled = await find_recalled(self._committer, caller, check=self._check, recall=self._recall())
        if recalled is not None:
            return _body(recalled.result, recalled.commit_id, recalled.sequence)
        async with refusing(self._committer, caller, "register"):
            await self._check((await self._committer.read()).state)
            end_rehearsal(caller)
            await self._require_free(self._attempt.operation.args[0])
            await self._take_time()
        return await self._commit(caller)

    async def _provision(self, caller: Caller) -> list[Any]:
        recalled = await find_recalled(self._committer, caller, check=self._check, recall=self._recall())
        if recalled is not None:
            return _body(recalled.result, recalled.commit_id, recalled.sequence)
        async with refusing(self._committer, caller, "provision"):
            await self._check((await self._committer.read()).state)
            end_rehearsal(caller)
            part = msgspec.structs.replace(caller, request_id=f"{caller.request_id}/part")
            await commit_part(self._committer, part, "helper", lambda view: self._prepare(_HELPER, view))
        return await self._commit(caller)

    async def _join(self, caller: Caller) -> list[Any]:
        """Alone, or with those who want the same of this server meanwhile: as appends to a table."""
        name = self._attempt.operation.args[0]
        member = Member(caller, "join", self._check, self._recall())

        async def alone() -> Any:
            return (await self._commit(caller))[0]

        async def together(members: Sequence[Member[Any]]) -> Mapping[Member[Any], Any]:
            return await self._commit_together(name, members)

        key = (self._attempt.reference, name)
        return [await self._server.joining.run(key, member, alone, together)]

    async def _commit_together(self, name: str, members: Sequence[Member[Any]]) -> Mapping[Member[Any], Any]:
        async def work(view: View, allowed: Sequence[Member[Any]]) -> Worked[Any]:
            await self._take_time()
            if self._rng.random() < _LEFT_OUT / 2:
                raise Conflict("Not for several at once")
            taken = [member for member in allowed if self._rng.random() >= _LEFT_OUT] or allowed[:1]
            prepared = await self._prepare(Operation("join", (name, len(taken))), view)
            results = dict.fromkeys(taken, prepared.result)
            return Worked(results, prepared.changes, prepared.objects, prepared.feed, prepared.feed)

        results = await commit_together(self._committer, members, work)
        history = self._keyed.history
        history.note(self._server.name, "joins", name, [each.caller.request_id for each in results])
        history.count("requests joined", len(results))
        history.count("requests left out", len(members) - len(results))
        return results

    async def _commit(self, caller: Caller) -> list[Any]:
        operation = meaning(self._attempt.operation)

        async def prepare_on(view: View) -> Prepared[Any]:
            guards = await self._check(view)
            await self._take_time()
            prepared = await self._prepare(operation, view)
            if operation.kind != "create":
                return replace(prepared, guards=guards)
            (made,) = [each for each in prepared.objects if each.type is ENTITY]
            return replace(prepared, guards=guards, result=Version(ObjRef(made.id, ENTITY.name), made.value))

        done = await commit_as(
            self._committer, caller, operation.kind, prepare_on, check=self._check, recall=self._recall()
        )
        return _body(done.result, done.commit_id, done.sequence)

    def _recall(self) -> Recall[Any]:
        kind = meaning(self._attempt.operation).kind
        if kind == "create":
            return RecalledVersion(ENTITY)
        return Sealed(Any) if kind == "transfer" else Kept(Any)

    async def _prepare(self, operation: Operation, view: View) -> Prepared[Any]:
        text = self._rng.randbytes(self._rng.choice((4, 700)))
        return await prepare(operation, view, new_id=self._server.ids.next, text=text, number=0)

    async def _require_free(self, name: str) -> None:
        view = (await self._committer.read()).state
        await self._check(view)
        if await view.find("names", name.encode()) is not None:
            raise AlreadyExists("The name is taken", name=name)

    async def _check(self, view: View) -> Mapping[RefKey, ObjId]:
        """Authorize, as operations do: by the rights of now, on what is there under a name."""
        operation = self._attempt.operation
        if not self._keyed.may(self._attempt.principal):
            refusal = Forbidden("No right to do this")
            if self._hides:
                raise NotFound("No such entity") from refusal
            raise refusal
        is_needed = operation.kind in _ON_A_NAME and not operation.args[0].startswith(SHARED)
        if is_needed and await view.find("names", operation.args[0].encode()) is None:
            raise NotFound("No such entity", name=operation.args[0])
        return {}

    async def _take_time(self) -> None:
        if self._rng.random() < self._slow:
            await self._server.clock.sleep(self._rng.expovariate(0.6))


def _body(result: Any, commit_id: ObjId, sequence: int) -> list[Any]:
    plain = result.value.stable_id if isinstance(result, Version) else result
    return [plain, commit_id, sequence]
