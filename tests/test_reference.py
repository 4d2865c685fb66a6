"""The reference of the commands is the program's own, and every help text teaches."""

from __future__ import annotations

import shlex
import subprocess
import sys

import click
import pytest

from builder.cli import main
from tests import reference
from tests.conftest import ROOT

CONTEXTS = list(reference.commands(main))
every_command = pytest.mark.parametrize("context", CONTEXTS, ids=lambda context: context.command_path)


def test_the_reference_is_what_the_program_says() -> None:
    """Changed help, options or commands: write the page anew."""
    assert reference.PAGE.read_text(encoding="utf-8") == reference.text(), f"stale: run {reference.WRITE}"


def test_the_reference_holds_every_command_with_every_option() -> None:
    """Groups and what is below them; the README leads there, and names each of them too."""
    page, readme = reference.text(), (ROOT / "README.md").read_text(encoding="utf-8")
    rows = [line for line in readme.split("\n") if line.startswith("| `lesson ")]
    paths = [context.command_path for context in CONTEXTS]
    assert paths[0] == "lesson"
    assert {"lesson new model", "lesson new gpu", "lesson ledger"} <= set(paths)
    assert "(.github/COMMANDS.md)" in readme
    for context in CONTEXTS:
        assert f"\n## {context.command_path}\n" in page
        assert isinstance(context.command, click.Group) or any(f"`{context.command_path}`" in row for row in rows)
        for option in context.command.params:
            assert all(f"{name}" in page for name in option.opts if name.startswith("-"))


@every_command
def test_a_command_says_what_it_does_and_shows_it(context: click.Context) -> None:
    """A first sentence that fits the list of commands, an example, and a word on each of its options."""
    command = context.command
    assert context.parent is None or "..." not in command.get_short_help_str(limit=64)
    assert reference.examples(command), "its help needs a paragraph that begins with 'Example: '"
    for option in command.params:
        if isinstance(option, click.Option):
            assert (option.help or "").endswith("."), f"{option.opts[0]} needs a sentence of help"


@every_command
def test_an_example_is_a_command_line_that_is_understood(context: click.Context) -> None:
    """Each example names the command that it is of, with options that it has."""
    for line in reference.examples(context.command):
        for part in line.split(" && "):
            words = shlex.split(part)
            depth = len(context.command_path.split())
            assert words[0] == "lesson"
            if context.parent is None:
                continue
            assert " ".join(words[:depth]) == context.command_path
            known = {name for option in context.command.params for name in option.opts}
            assert {word for word in words[depth:] if word.startswith("-")} <= known


def test_the_page_is_only_written_when_asked() -> None:
    """Without --write, a word on how it is used."""
    command = [sys.executable, "-m", "tests.reference"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, f"usage: {reference.WRITE}\n")
