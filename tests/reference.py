"""The reference of all commands, made from the program itself: .github/COMMANDS.md.

    .venv/bin/python -m tests.reference --write

writes it anew; tests/test_reference.py fails where it is stale.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from builder.cli import EXIT_STATUS, main

PAGE = Path(__file__).parents[1] / ".github" / "COMMANDS.md"
WRITE = ".venv/bin/python -m tests.reference --write"
EXAMPLE = "Example: "


def commands(
    command: click.Command, parent: click.Context | None = None, name: str = "lesson"
) -> Iterator[click.Context]:
    """A context for a command and, in the order of --help, for each below it."""
    context = command.make_context(name, [], parent, resilient_parsing=True)
    yield context
    if isinstance(command, click.Group):
        for word in command.list_commands(context):
            below = command.get_command(context, word)
            assert below is not None
            yield from commands(below, context, word)


def paragraphs(command: click.Command) -> list[str]:
    """The paragraphs of a command's help, each on a line of its own, examples last."""
    return [" ".join(part.split()) for part in (command.help or "").split("\n\n")]


def examples(command: click.Command) -> list[str]:
    """The command lines that its help shows."""
    return [part.removeprefix(EXAMPLE) for part in paragraphs(command) if part.startswith(EXAMPLE)]


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


def _section(context: click.Context) -> Iterator[str]:
    command = context.command
    yield f"## {context.command_path}"
    yield f"    {context.command_path} {' '.join(command.collect_usage_pieces(context))}"
    yield from (part for part in paragraphs(command) if not part.startswith(EXAMPLE))
    for line in examples(command):
        yield f"```sh\n{line}\n```"
    options = [option for option in command.params if isinstance(option, click.Option)]
    records = [record for option in options if (record := option.get_help_record(context))]
    if records:
        rows = [f"| `{_cell(given)}` | {_cell(what)} |" for given, what in records]
        yield "\n".join(["| option | |", "|---|---|", *rows])


def text() -> str:
    """The whole page."""
    head = [
        "# The commands",
        f"Made from the program, by `{WRITE}`: change the help in `builder/cli.py`, not this page.",
        f"{EXIT_STATUS} Errors come on stderr as `path:line:column: what is wrong`, with the remedy on a line "
        "below; on a terminal they quote the line too. `-h` and `--help` work everywhere.",
    ]
    sections = [part for context in commands(main) for part in _section(context)]
    return "\n\n".join([*head, *sections]) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(text(), encoding="utf-8")
    else:
        sys.exit(f"usage: {WRITE}")
