"""The tutorial, typed as it stands in docs: every block by a shell, in an empty home; what it says is printed is printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.repository.markdown_pages import Page
from tests.system import free_port

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/tutorial/first-server.md"
MARK = "=== block"
# What goes on until a person ends it: waited for until it says where it is, and ended.
ASIDE = """\
: > aside.txt  # there before it is read: a process in the background opens it when it comes to it
{command} > aside.txt 2>&1 &
aside=$!
timeout 300 sh -c "tail -n +1 -f --pid=$aside aside.txt | grep -m 1 http://"
kill $aside; wait $aside || true; rm aside.txt
"""


def script(blocks: list[str]) -> str:
    """What is typed, as one script that ends at the first failure and takes its background jobs with it."""
    lines = ["set -euo pipefail", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"]
    for number, block in enumerate(blocks):
        lines.append(f"echo '{MARK}' {number}")
        lines += [
            ASIDE.format(command=line.partition("#")[0].strip()) if "Ctrl-C" in line else line
            for line in block.splitlines()
        ]
    return "\n".join(lines)


def test_the_tutorial_works_as_it_is_typed_and_prints_what_it_says(tmp_path):
    page = Page(PAGE, PAGE.name)
    both = sorted(
        [(line, "typed", text) for text, line in page.blocks("")]
        + [(line, "printed", text) for text, line in page.blocks("text")]
    )
    typed = [text for _, kind, text in both if kind == "typed"]
    assert len(typed) > 8
    text = script(typed)
    for port in ("8642", "8000"):
        text = text.replace(port, str(free_port()))
    who = {f"GIT_{who}_{what}": "ada@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("MCPFACTORY_", "BOOKSHOP_"))}
    cache = subprocess.run(
        ["uv", "cache", "dir"], env=kept | {"PATH": path()}, capture_output=True, text=True, check=True
    )
    done = subprocess.run(
        ["bash", "-c", text], cwd=ROOT, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, env={**kept, **who, "HOME": str(tmp_path), "UV_CACHE_DIR": cache.stdout.strip(), "PATH": path()},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
    printed = done.stdout.split(MARK)[1:]
    number = -1
    for line, kind, block in both:
        if kind == "typed":
            number += 1
            continue
        at = 0
        for said in block.splitlines():
            pattern = ".*".join(re.escape(part) for part in said.split("…"))
            found = re.compile(pattern).search(printed[number], at)
            assert found, f"{PAGE.name}:{line}: {said!r} is not what was printed:\n{printed[number]}"
            at = found.end()


def path() -> str:
    """The command line of this environment first."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
