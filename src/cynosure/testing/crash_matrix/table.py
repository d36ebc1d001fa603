"""Results of trials as a page of the documentation.

Must not break: the page says what was seen, each cell of it, and a trial that found something wrong shows it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from cynosure.testing.crash_matrix.halting import How
from cynosure.testing.crash_matrix.trial import Step, Verdict

_COLUMNS: Final = (
    "before reserve",
    "after reserve",
    "before commit",
    "after commit",
    "before finalize",
    "after finalize",
)
_FAULTS: Final[Mapping[How, str]] = {
    "kill": "The first server is killed (`kill -9`)",
    "stop": "The first server is stopped (SIGSTOP), and goes on when another has answered",
}
_HEAD: Final = """# Requests whose server dies

Made by `./dev soak crashes`. A request with an Idempotency-Key is sent to one server, which halts at one step
of it: before or after it reserves the key, before or after the swap that commits, before or after it finishes
the record of the key. Then the same request goes to a second server on the same database, and again. A killed
server is started again and asked as well. A stopped one goes on, and its answer is looked at.

A cell says what the second server did, and then what the client of the first one was told in the end.

| word | means |
|---|---|
| did | it executed the request: the first server had not got so far |
| found | it found what the first server had done, and gave the answer to that |
| same | the first server's client was told the same, in status and body |
| 5xx | it was told that status, which says that the server does not know or cannot |
| none | it was told nothing: the server was dead |
| (empty) | the request has no such step |

In every cell that does not say otherwise: the effect is there, once; all answers but a 5xx are the same in
status and body, secrets included, which work; every repeated answer says `Idempotency-Replayed: true`; and
after the first server went on, nothing has changed any more. `other steps` are changes of references on the
way to the commit and after it, such as making a catalog's own reference; it halts before and after each.
`append files together` are 12 requests at once to one table: whoever comes first is committed alone, the
others by a commit that they share, which is among the other steps. A cell says `found` when the second server
found one of them done, and the worst that a client of the first one was told.
"""


class Result(NamedTuple):
    """One trial."""

    store: str
    mutation: str
    how: How
    step: Step
    verdict: Verdict


def render(results: Sequence[Result]) -> str:
    """The page."""
    wrong = [each for each in results if each.verdict.problems]
    parts = [_HEAD, f"{len(results)} trials, {len(wrong)} of them with something wrong.\n"]
    for store in dict.fromkeys(each.store for each in results):
        for how, title in _FAULTS.items():
            parts += [f"## {store}: {title[0].lower()}{title[1:]}\n", _table(_of(results, store, how))]
    if wrong:
        parts += ["## What was wrong\n", "\n".join(_describe(each) for each in wrong) + "\n"]
    return "\n".join(parts)


def _of(results: Iterable[Result], store: str, how: How) -> list[Result]:
    return [each for each in results if (each.store, each.how) == (store, how)]


def _table(results: Sequence[Result]) -> str:
    lines = [
        f"| request | {' | '.join(_COLUMNS)} | other steps |",
        "|---" * (len(_COLUMNS) + 2) + "|",
    ]
    for mutation in dict.fromkeys(each.mutation for each in results):
        ours = [each for each in results if each.mutation == mutation]
        cells = [
            " ".join(_cell(each.verdict) for each in ours if str(each.step) == name) for name in _COLUMNS
        ]
        others = [each for each in ours if str(each.step) not in _COLUMNS]
        lines.append(f"| {mutation} | {' | '.join(cells)} | {_others(others)} |")
    return "\n".join(lines) + "\n"


def _cell(verdict: Verdict) -> str:
    if verdict.problems:
        return "**WRONG**"
    first = verdict.first
    told = {"nothing": "none", str(verdict.status): "same"}.get(first, first)
    return f"{'found' if verdict.is_replayed else 'did'}, {told}"


def _others(results: Sequence[Result]) -> str:
    if not results:
        return ""
    cells = [_cell(each.verdict) for each in results]
    return "; ".join(f"{cells.count(cell)}: {cell}" for cell in dict.fromkeys(cells))


def _describe(result: Result) -> str:
    problems = "; ".join(result.verdict.problems)
    return f"- {result.store}, {result.mutation}, {result.how} {result.step}: {problems}"
