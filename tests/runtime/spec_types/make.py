"""Write the table of a revision from its published schema.

    python -m tests.runtime.spec_types.make REVISION path/to/schema.json            write the table
    python -m tests.runtime.spec_types.make REVISION path/to/schema.json --check    check that the table is up to date

The files are `schema/REVISION/schema.json` of the repository modelcontextprotocol/modelcontextprotocol. Exit code 1: the table differs;
2: the file is not a readable schema.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path

from tests.runtime.spec_types import TABLES
from tests.runtime.spec_types.notation import shorten


def table(revision: str, published: bytes) -> str:
    """Return the text of the table: a line for each type.

    Args:
        revision: name of the revision.
        published: bytes of the published file.

    Raises:
        ValueError: the file is not a schema, or has content that the notation cannot express.
    """
    document = json.loads(published)
    types = document.get("$defs") or document.get("definitions") if isinstance(document, dict) else None
    if not types:
        raise ValueError("there are no definitions\nhint: give the path of a schema.json of the specification")
    lines = [f"{json.dumps(name)}: {json.dumps(shorten(types[name], name))}" for name in sorted(types)]
    head = f'"revision": {json.dumps(revision)},\n"sha256": "{hashlib.sha256(published).hexdigest()}",\n'
    return "{\n" + head + '"types": {\n' + ",\n".join(lines) + "\n}\n}\n"


def main(arguments: list[str] | None = None) -> int:
    """Write or check one table; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.runtime.spec_types.make",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("revision")
    parser.add_argument("schema", type=Path)
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args(arguments)
    try:
        made = table(options.revision, options.schema.read_bytes())
    except (OSError, ValueError) as error:
        print(f"error: {options.schema}: {error}", file=sys.stderr)
        return 2
    file = TABLES / f"{options.revision}.json"
    if options.check:
        same = file.exists() and file.read_text("utf-8") == made
        print(f"{file.name} {'is' if same else 'is not'} what {options.schema} says")
        return 0 if same else 1
    file.write_text(made, "utf-8")
    print(f"wrote {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
