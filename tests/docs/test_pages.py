"""Pages lead somewhere: their links exist, and so do the commands they show, with their flags."""

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from cynosure.cli.main import GROUPS, app

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
FENCED = re.compile(r"^```(?:bash|sh)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"(?<!`)`(cynosure [^`]+)`(?!`)")
WORD = re.compile(r"[a-z][a-z-]*(?:\|[a-z][a-z-]*)*")


def anchors_of(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.strip().lower()).replace(" ", "-") for each in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_pages_and_headings(page: Path) -> None:
    broken = []
    for path, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", page.read_text()):
        if ":" in path:
            continue
        linked = (page.parent / path).resolve() if path else page
        if not linked.exists() or (anchor and anchor not in anchors_of(linked)):
            broken.append((path, anchor))

    assert broken == []


def test_every_page_is_in_the_list_of_pages() -> None:
    folder = ROOT / "docs"
    listed = (folder / "README.md").read_text()

    pages = [
        path.relative_to(folder).as_posix() for path in folder.rglob("*.md") if path.parent.name != "adr"
    ]

    assert [each for each in pages if each != "README.md" and f"({each})" not in listed] == []


def shown_commands(text: str) -> Iterator[list[str]]:
    for block in FENCED.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("cynosure "):
                yield line.partition("  # ")[0].split()[1:]
    for line in INLINE.findall(text):
        yield line.split()[1:]


@cache
def load_commands() -> dict[str, TyperCommand | TyperGroup]:
    """The first word behind `cynosure`, with groups imported."""
    whole = get_command(app)
    assert isinstance(whole, TyperGroup)
    found = dict(whole.commands)
    for _, name, module, _ in GROUPS:
        found[name] = get_group(import_module(f"cynosure.cli.{module}").app)
    return found  # type: ignore[return-value]


def find_wrong(words: list[str], commands: dict[str, TyperCommand | TyperGroup]) -> str:
    """What is wrong with a command that a page shows; empty when nothing is."""
    if not words or not WORD.fullmatch(words[0]):
        return ""
    for name in words[0].split("|"):
        command = commands.get(name)
        if command is None:
            return f"no command {name}"
        rest = words[1:]
        if isinstance(command, TyperGroup):
            if wrong := find_wrong(rest, command.commands):  # type: ignore[arg-type]
                return f"{name}: {wrong}"
            continue
        known = {flag for each in command.params for flag in (*each.opts, *each.secondary_opts)}
        flags = [flag for word in rest for flag in re.findall(r"^\[?(--[a-z0-9-]+)", word)]
        if unknown := [flag for flag in flags if flag not in known]:
            return f"{name} has no {unknown}"
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_that_a_page_shows_exist_with_their_flags(page: Path) -> None:
    commands = load_commands()

    found = {" ".join(words): find_wrong(words, commands) for words in shown_commands(page.read_text())}

    assert {line: wrong for line, wrong in found.items() if wrong} == {}
