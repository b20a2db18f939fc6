"""The entry of a server in Docker's MCP catalogue: `server.yaml` and `tools.json`, as its validator wants them. Pure.

An entry is a pull request that people review: it is made here, and sent by nobody.
"""

from __future__ import annotations

import ast
import io
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from mcpfactory_pipeline.publish.release import Release, Variable

__all__ = ["entry", "entry_name", "title", "to_yaml", "tools"]

_API: Final = re.compile(r"(?:.*/)?_generated/api\.py")
_SMALL: Final = ("and", "for")  # words that a title may write small


def entry_name(release: Release) -> str:
    """Return the name of the entry and its folder: small letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", release.server.lower()).strip("-")


def title(release: Release) -> str:
    """Return the title as the catalogue wants it: every word with a capital, and neither MCP nor Server in it."""
    words = re.sub(r"MCP|Servers?", "", release.title or release.server).replace("-", " ").split()
    return (
        " ".join(word if word in _SMALL else word[:1].upper() + word[1:] for word in words)
        or entry_name(release).capitalize()
    )


def entry(release: Release, settings: Mapping[str, str]) -> dict[str, Any]:
    """`server.yaml` as data; `settings` are those of the target `docker`. What is not known is left out."""
    name, about = entry_name(release), release.metadata
    links = {label.lower(): url for label, url in about.urls.items()}
    plain = [variable for variable in release.variables if not variable.secret]
    fields = {
        "name": name,
        "image": settings["image"] or f"mcp/{name}",
        "type": "server",
        "meta": {"category": settings["category"], "tags": [name]},
        "about": {"title": title(release), "description": about.summary, "icon": links.get("icon", "")},
        "source": {
            "project": settings["project"] or links.get("repository", "") or links.get("source", ""),
            "commit": settings["commit"],
            "directory": settings["directory"] or f"servers/{release.server}",
        },
        "run": {"allowHosts": list(_hosts(release))},
        "config": {
            "description": f"What {title(release)} needs to know" if release.variables else "",
            "secrets": [_secret(name, variable) for variable in release.variables if variable.secret],
            "env": [_env(name, variable) for variable in plain],
            "parameters": _parameters(plain),
        },
    }
    return {key: value for key, value in ((key, _without_blanks(value)) for key, value in fields.items()) if value}


def _without_blanks(value: Any) -> Any:
    return {key: one for key, one in value.items() if one} if isinstance(value, dict) else value


def _secret(name: str, variable: Variable) -> dict[str, str]:
    return {"name": f"{name}.{variable.name.lower()}", "env": variable.name, "example": f"<{variable.name}>"}


def _env(name: str, variable: Variable) -> dict[str, str]:
    key = variable.name.lower()
    return {
        "name": variable.name,
        "example": variable.default or f"<{variable.name}>",
        "value": f"{{{{{name}.{key}}}}}",
    }


def _parameters(variables: list[Variable]) -> dict[str, Any]:
    if not variables:
        return {}
    rows = {one.name.lower(): {"type": "string", "description": one.description or one.name} for one in variables}
    needed = [one.name.lower() for one in variables if one.required]
    return {"type": "object", "properties": rows, **({"required": needed} if needed else {})}


def _hosts(release: Release) -> Iterator[str]:
    """`host:port` of the API, as the generated `api.py` has it, read as data; a container may be held to it."""
    with zipfile.ZipFile(io.BytesIO(release.files[release.wheel])) as wheel:
        texts = [wheel.read(name).decode() for name in wheel.namelist() if _API.fullmatch(name)]
    for text in texts:
        for node in ast.parse(text).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "BASE_URL":
                parts = urlsplit(str(ast.literal_eval(node.value)))
                if parts.scheme == "https" and parts.hostname:
                    yield f"{parts.hostname}:{parts.port or 443}"


def tools(release: Release) -> bytes:
    """`tools.json`: name, description and arguments of each tool. Every argument has a description, for the catalogue asks for it."""
    rows = []
    for tool in release.tools:
        properties = dict(tool.get("inputSchema", {}).get("properties", {}))
        arguments = [
            {"name": name, "type": _type(schema), "desc": _description(schema) or name}
            for name, schema in properties.items()
        ]
        rows.append({"name": tool["name"], "description": tool.get("description", ""), "arguments": arguments})
    return (json.dumps(rows, indent=2, ensure_ascii=False) + "\n").encode()


def _type(schema: Any) -> str:
    kind = schema.get("type", "string") if isinstance(schema, dict) else "string"
    return str(kind[0] if isinstance(kind, list) and kind else kind)


def _description(schema: Any) -> str:
    return str(schema.get("description", "")) if isinstance(schema, dict) else ""


# --- YAML as prettier writes it, for the catalogue's validator compares ---


def to_yaml(data: Mapping[str, Any]) -> bytes:
    """Mappings, lists of mappings or texts, and texts, in block style: two spaces, lists indented, quotes where they must be."""
    return ("\n".join(_lines(data)) + "\n").encode()


def _lines(value: Any, indent: str = "") -> Iterator[str]:
    for key, one in value.items():
        if isinstance(one, dict):
            yield f"{indent}{key}:"
            yield from _lines(one, indent + "  ")
        elif isinstance(one, list):
            yield f"{indent}{key}:"
            for row in one:
                first, *rest = _lines(row, indent + "    ") if isinstance(row, dict) else (_text(row),)
                yield f"{indent}  - {first.lstrip()}"
                yield from rest
        else:
            yield f"{indent}{key}: {_text(one)}"


def _text(text: str) -> str:
    """Return a scalar: plain where YAML reads it back as it is, else in the quotes that need fewer escapes."""
    try:
        if yaml.safe_load(f"key: {text}") == {"key": text} and "\n" not in text:
            return text
    except yaml.YAMLError:
        pass
    if '"' in text and "'" not in text and "\\" not in text and text.isprintable():
        return f"'{text}'"
    return json.dumps(text, ensure_ascii=False)
