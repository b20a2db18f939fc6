"""Run by the interpreter of a peer: reads what to look for as JSON, and prints what is there. Uses nothing but that peer.

A probe is one or several of these, with blanks between; all must hold:

  package.module:Class.member          it can be imported
  package.module:Class.member(word)    and it is a function with this parameter
  ~expression                          no class or function of the package has a name that the regular expression finds
  =expression                          some class or function of the package does
  %distribution                        it is installed
"""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import importlib.util
import inspect
import json
import re
import sys
from functools import cache, reduce
from pathlib import Path
from typing import Any


def holds(package: str, probe: str) -> bool:
    """Whether all parts of a probe hold."""
    return all(_holds(package, part) for part in probe.split())


def _holds(package: str, part: str) -> bool:
    if part[0] in "~=":
        found = any(re.search(part[1:], name) for name in _names(package))
        return found is (part[0] == "=")
    if part[0] == "%":
        return any(True for _ in importlib.metadata.distributions(name=part[1:]))
    place, _, word = part.removesuffix(")").partition("(")
    module, _, path = place.partition(":")
    try:
        thing: Any = (
            reduce(getattr, path.split("."), importlib.import_module(module))
            if path
            else importlib.import_module(module)
        )
        return not word or word in inspect.signature(thing).parameters
    except (ImportError, AttributeError):
        return False


@cache
def _names(package: str) -> list[str]:
    """All names of classes, functions and their parameters in the package's source."""
    found = importlib.util.find_spec(package)
    assert found is not None, package
    assert found.origin is not None, package
    names: list[str] = []
    for file in Path(found.origin).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                names.append(node.name)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names += [one.arg for one in (*node.args.args, *node.args.kwonlyargs)]
    return names


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    versions = {name: importlib.metadata.version(name) for name in asked["distributions"]}
    answers = {key: holds(asked["package"], probe) for key, probe in asked["probes"].items()}
    json.dump({"versions": versions, "answers": answers}, sys.stdout)
