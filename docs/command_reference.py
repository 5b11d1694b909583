"""The commands and their options on the page of the command line, made from their own help."""

import re
from collections.abc import Iterator

import typer
from typer.core import TyperCommand, TyperGroup

DOCNAME = "reference/command-line"


def commands(group: TyperGroup, prefix: str) -> Iterator[tuple[str, TyperCommand]]:
    """Yield every command that ``--help`` lists, with the words that call it."""
    for name in group.list_commands(typer.Context(group)):
        command = group.commands[name]
        if hasattr(command, "commands"):
            yield from commands(command, f"{prefix} {name}")
        elif not command.hidden:
            yield f"{prefix} {name}", command


def plain(text: str) -> str:
    """Return a text with the letters escaped that mean something in Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>$|~])", r"\\\1", " ".join(text.split()))


def in_code(text: str) -> str:
    """Return a text for a cell of a table, between backquotes."""
    return text.replace("|", r"\|")


def section(words: str, command: TyperCommand) -> str:
    """Return a command as a section: what it does, an example, a row for each option."""
    context = typer.Context(command, info_name=words)
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    rows = [(re.sub(r" <.*>$", "", name), text) for name, text in filter(None, records)]
    rows = [(name, text) for name, text in rows if name != "--help"]
    lines = [f"## {words}", "", plain(command.help or ""), ""]
    if command.epilog:
        lines += ["```console", f"$ {command.epilog.removeprefix('Example: ')}", "```", ""]
    if rows:
        lines += ["| option | meaning |", "|---|---|"]
        lines += [f"| `{in_code(name)}` | {plain(text)} |" for name, text in rows]
    return "\n".join(lines) + "\n"


def page(group: TyperGroup) -> str:
    """Return a section for each command, in the order of ``--help``."""
    return "\n".join(section(*found) for found in commands(group, "bayesrisk"))


def source_read(app: object, docname: str, source: list[str]) -> None:
    """Put the commands behind what the page itself says, when Sphinx reads it."""
    if docname == DOCNAME:
        from typer.main import get_command

        from bayesrisk.cli.app import app as commands_of_ours

        source[0] += "\n" + page(get_command(commands_of_ours))
