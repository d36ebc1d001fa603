"""The tour of `./dev demo`: what can be shown is shown, under a title that fits."""

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
TITLE_WIDTH = 80 - len("99/99   ─")

Step = Callable[..., Any]


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    monkeypatch.setattr(sys, "path", [str(SCRIPTS), *sys.path])
    before = set(sys.modules)
    yield run_path(str(SCRIPTS / "demo"))
    for name in set(sys.modules) - before:
        if name.partition(".")[0] == "tour":
            del sys.modules[name]


def steps_of(demo: dict[str, Any]) -> Sequence[Step]:
    return [*demo["ON_FILES"], *demo["ON_S3"]]


def test_every_step_has_a_title_that_fits_into_a_line(demo: dict[str, Any]) -> None:
    titles = {step.__name__: inspect.getdoc(step) or "" for step in steps_of(demo)}

    assert [name for name, title in titles.items() if not 0 < len(title) <= TITLE_WIDTH] == []


def test_every_step_that_was_written_is_in_a_tour(demo: dict[str, Any]) -> None:
    modules = [path.stem for path in (SCRIPTS / "tour").glob("[a-z]*.py") if path.stem != "stage"]
    written = {
        function
        for name in modules
        for function in vars(import_module(f"tour.{name}")).values()
        if inspect.iscoroutinefunction(function)
        and list(inspect.signature(function).parameters) == ["tour"]
        and function.__doc__
    }

    assert written - set(steps_of(demo)) == set()
