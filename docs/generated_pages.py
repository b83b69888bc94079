"""Pages of the site that code describes: every command with its options, every key and column of a case.

``docs/conf.py`` writes them into ``docs/reference/`` at each build; they are not kept in the repository.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Schema = dict[str, Any]


def write(directory: Path) -> None:
    """Write all generated pages, and leave those alone that would not change."""
    directory.mkdir(exist_ok=True)
    for name, text in {"commands.md": commands_page(), "case-keys.md": keys_page()}.items():
        page = directory / name
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def commands() -> dict[str, Any]:
    """Return every command of ``cobre`` by its full name, in the order of the help."""
    from typer.main import get_command

    from cobre.cli.app import app

    return dict(_commands("cobre", get_command(app)))


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield name, command
    for below, child in getattr(command, "commands", {}).items():
        if not child.hidden:
            yield from _commands(f"{name} {below}", child)


def commands_page() -> str:
    """Return the reference of the command line."""
    parts = [
        "# Commands",
        "",
        "What `cobre COMMAND --help` prints, on one page. The [user guide](../user-guide.md) explains what "
        "the commands do.",
        "",
    ]
    for name, command in commands().items():
        context = command.context_class(command, info_name=name)
        parts += [f"## {name}", "", _prose(command.help), ""]
        parts += ["```text", " ".join([name, *command.collect_usage_pieces(context)]), "```", ""]
        records = [record for parameter in command.params if (record := parameter.get_help_record(context))]
        rows = [f"| `{_cell(label)}` | {_cell(_prose(text))} |" for label, text in records]
        if rows:
            parts += ["| argument or option | meaning |", "|---|---|", *rows, ""]
        if name != "cobre" and command.epilog:
            parts += [_epilog(command.epilog), ""]
    return "\n".join(parts)


def _prose(text: str | None) -> str:
    """Return a help text as Markdown: lines that name a command become a list."""
    paragraphs = (text or "").replace("\\[", "[").split("\n\n")
    return "\n\n".join(
        f"- {found[1]} `{found[2]}`"
        if (found := re.fullmatch(r"(\S.*?)  +(cobre .*)", paragraph))
        else paragraph
        for paragraph in paragraphs
    )


def _epilog(text: str) -> str:
    """Return the examples of an epilog as a block of commands, and the rest as it is."""
    examples = [part for part in text.split("\n\n") if re.match(r"(cobre|mpiexec|srun|python) ", part)]
    rest = [part for part in text.split("\n\n") if part not in examples and part != "Examples:"]
    block = ["```sh\n" + "\n".join(examples) + "\n```"] if examples else []
    return "\n\n".join(block + [_prose(part) for part in rest if not part.startswith("Exit codes")])


def keys_page() -> str:
    """Return the reference of all files of a case with their keys and columns."""
    from cobre.case.format import describe, schema_paths

    parts = [
        "# Keys and columns of a case",
        "",
        "Every file of a case as the program reads it, made from the schemas that `cobre schema DIR` writes. "
        "[Case format](../case-format.md) explains them with examples.",
        "",
    ]
    for name in schema_paths():
        document = describe(name)
        parts += [f"## `{name}`", "", _sentence(document["description"], name), ""]
        parts += _columns(document) if name.endswith(".parquet") else _objects(document)
    return "\n".join(parts)


def _sentence(description: str, name: str) -> str:
    text = re.sub(rf"^`+{re.escape(name)}`+: ", "", description.strip())
    return _markdown(text[:1].upper() + text[1:])


def _columns(document: Schema) -> list[str]:
    rows = [
        f"| `{column['name']}` | {column['type']}{'' if column['required'] else ', optional'} "
        f"| {_cell(column['unit'] or '')} | {_cell(_markdown(column['description'] or ''))} |"
        for column in document["columns"]
    ]
    return ["| column | type | unit | meaning |", "|---|---|---|---|", *rows, ""]


def _objects(document: Schema) -> list[str]:
    lines = _properties(document, "")
    for title, definition in document.get("$defs", {}).items():
        if definition.get("properties"):
            lines += [f"### {title}", "", _markdown(definition.get("description", "")), ""]
            lines += _properties(definition, title)
    return lines


def _properties(schema: Schema, title: str) -> list[str]:
    properties = schema.get("properties", {})
    required = set(schema.get("required", ()))
    rows = [
        f"| {'**' if key in required else ''}`{key}`{'**' if key in required else ''} "
        f"| {_cell(_type(value))} | {_cell(_markdown(value.get('description', '')))} |"
        for key, value in properties.items()
        if key != "$schema"
    ]
    return ["| key | type | meaning |", "|---|---|---|", *rows, ""] if rows else []


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rsplit("/", 1)[-1])
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return " or ".join(dict.fromkeys(_type(member) for member in schema[union]))
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type(schema['items'])}" if "items" in schema else "list"
    limits = [
        f"{sign} {schema[key]}"
        for key, sign in {
            "minimum": "≥",
            "exclusiveMinimum": ">",
            "maximum": "≤",
            "exclusiveMaximum": "<",
        }.items()
        if key in schema and abs(schema[key]) < 2**31 - 1
    ]
    return " ".join([str(schema.get("format", kind)), *limits])


def _markdown(text: str) -> str:
    """Return a docstring's text as Markdown, on one line."""
    return re.sub(r"``(.+?)``", r"`\1`", " ".join(text.split()))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
