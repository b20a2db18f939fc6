"""Explain an error that ended a server: the location in the server's code, and the fix.

`start.py` loads this file in the server's environment, so this file uses only the standard library. Clients show only a
few final lines of a server's output, so an explanation has at most eight lines.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
import traceback
from contextlib import suppress
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Final

_CODE: Final = 160  # maximum characters of a shown line of code; a message may be three times as long
_STEPS: Final = 2  # maximum number of stack frames to show before the frame with the error

# Import name → distribution name, for popular packages whose two names differ.
_DISTRIBUTIONS: Final = {
    "Crypto": "pycryptodome", "PIL": "pillow", "bs4": "beautifulsoup4", "cv2": "opencv-python", "dateutil": "python-dateutil",
    "docx": "python-docx", "dotenv": "python-dotenv", "fitz": "PyMuPDF", "git": "GitPython", "github": "PyGithub",
    "gitlab": "python-gitlab", "googleapiclient": "google-api-python-client", "grpc": "grpcio", "jose": "python-jose",
    "jwt": "PyJWT", "ldap": "python-ldap", "magic": "python-magic", "pkg_resources": "setuptools", "pptx": "python-pptx",
    "psycopg2": "psycopg2-binary", "serial": "pyserial", "skimage": "scikit-image", "sklearn": "scikit-learn",
    "slugify": "python-slugify", "yaml": "PyYAML", "zmq": "pyzmq",
}  # fmt: skip
# Popular packages whose import and distribution names are equal.
_SAME: Final = frozenset(
    (
        "mcpfactory_runtime",
        "aiohttp",
        "anthropic",
        "boto3",
        "httpx",
        "jinja2",
        "lxml",
        "numpy",
        "openai",
        "pandas",
        "redis",
        "requests",
        "sqlalchemy",
    )
)
_FACTORY: Final = ("mcpfactory", "mcpfactory_pipeline", "mcpfactory_codegen")


def explain_error(error: BaseException, package: str, folder: str) -> str:
    """Explain an error in lines: `error:`, the code, the chain of calls, and `hint:`."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    sources = _Sources(Path(folder), package)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if sources.of_library(frame.filename)]
    own = [frame for frame in frames if sources.contains(frame.filename)]
    if isinstance(error, SyntaxError) and error.filename:
        place, code = f"{sources.display_path(error.filename)}:{error.lineno}", _marked_line(error)
        led = own
    elif own:
        place, code = f"{sources.display_path(own[-1].filename)}:{own[-1].lineno}", [own[-1].line or ""]
        led = own[:-1]
    else:
        place, code, led = sources.home, [], []
    lines = [f"error: {place}: {_message(error)}", *(f"    {text[:_CODE]}" for text in code if text.strip())]
    # Leave out `__main__`, which only imports the server.
    steps = [one for one in led if os.path.basename(one.filename) != "__main__.py"]  # noqa: PTH119 - no pathlib here
    lines += [
        f"  called from {sources.display_path(one.filename)}:{one.lineno}: {(one.line or '')[:_CODE]}"
        for one in steps[-_STEPS:]
    ]
    if own and frames[-1] is not own[-1] and not isinstance(error, SyntaxError):
        last = frames[-1]
        lines.append(f"  raised in {sources.display_path(last.filename)}:{last.lineno}: {(last.line or '')[:_CODE]}")
    return "\n".join([*lines, f"hint: {_hint(error, frames, sources)}"]) + "\n"


class _Sources:
    """The server's own files, and the paths to display for them."""

    def __init__(self, folder: Path, package: str) -> None:
        self.folder, self.package = folder, package
        self.home = f"servers/{folder.name}" if folder.parent.name == "servers" else folder.name
        self.project = f"{self.home}/pyproject.toml"

    def contains(self, file: str) -> bool:
        return self._own(file) is not None

    def display_path(self, file: str) -> str:
        own = self._own(file)
        if own is not None:
            return f"{self.home}/{own}"
        return _installed(file) or file

    def module(self, name: str) -> Path:
        return self.folder / "src" / Path(*name.split("."))

    @staticmethod
    def of_library(file: str) -> bool:
        """Return False for frames of Python's import machinery and of our start script."""
        return not file.startswith("<frozen ") and os.path.basename(file) not in {"start.py", "runpy.py"}  # noqa: PTH119 - no pathlib here

    def _own(self, file: str) -> str | None:
        with suppress(ValueError):
            inside = Path(file).relative_to(self.folder)
            return None if ".venv" in inside.parts else inside.as_posix()
        top = self.package.split(".", maxsplit=1)[0]
        installed = _installed(file)
        return f"src/{installed}" if installed and installed.startswith(f"{top}/") else None


def _installed(file: str) -> str:
    """Return a library's path below site-packages; "" for other files."""
    _, found, inside = file.replace("\\", "/").rpartition("/site-packages/")
    return inside if found else ""


def _message(error: BaseException) -> str:
    """Return an error's kind and message as one line, including Python's suggestion."""
    kind = type(error).__name__
    formatted = traceback.TracebackException.from_exception(error).format_exception_only()
    text = next((part for part in formatted if part.startswith(kind) or f".{kind}" in part), kind)
    # Remove the path at the end of the message of an ImportError.
    text = re.sub(r" \((?:/|[A-Za-z]:)[^()]*\)$", "", " ".join(text.split()))
    return text if len(text) <= 3 * _CODE else f"{text[: 3 * _CODE]}…"


def _marked_line(error: SyntaxError) -> list[str]:
    line = (error.text or "").rstrip("\n")
    bare = line.lstrip()
    column = (error.offset or 0) - 1 - (len(line) - len(bare))
    return [bare, " " * column + "^"] if 0 <= column <= len(bare) else [bare]


# -- hints -------------------------------------------------------------------------------------------------------------


def _hint(error: BaseException, frames: list[traceback.FrameSummary], sources: _Sources) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name:
        return _missing_module(error.name, frames, sources)
    if isinstance(error, ImportError):
        return _missing_name(error, sources)
    if isinstance(error, SyntaxError):
        return "correct the line; the mark shows where Python found the error"
    if isinstance(error, NameError):
        return "define or import that name before this line, or correct its spelling"
    if frames and not sources.contains(frames[-1].filename):
        return "check the arguments on that line of the server; the called library refused them"
    return "correct that line of the server; this error ended it"


def _missing_module(name: str, frames: list[traceback.FrameSummary], sources: _Sources) -> str:
    top = name.split(".", maxsplit=1)[0]
    if top == sources.package.split(".", maxsplit=1)[0]:
        return _own_module(name, sources)
    if top in _FACTORY:
        return "import only mcpfactory_runtime of mcpfactory's packages: a server runs without the factory"
    if top in sys.stdlib_module_names:
        return f"{top} is part of Python, but has no such module: correct the import"
    wanted, sure = _distribution(name)
    if top in packages_distributions():
        return f"{top} is installed, but has no such module: correct the import, or require another version of {wanted}"
    if frames and not sources.contains(frames[-1].filename):
        library = sources.display_path(frames[-1].filename).split("/", maxsplit=1)[0]
        return (
            f'{library} needs it but does not declare it: add "{wanted}" to [project] dependencies in {sources.project}'
        )
    which = f'"{wanted}"' if sure else f'the package that has it, perhaps "{wanted}",'
    return (
        f"add {which} to [project] dependencies in {sources.project}"
        f" (or: uv add --frozen --project {sources.home} {wanted}); the next start installs it"
    )


def _own_module(name: str, sources: _Sources) -> str:
    place = sources.module(name)
    if place == sources.module(sources.package) or not place.parent.is_dir():
        return f"make src/{name.replace('.', '/')}/ in {sources.home}, or correct server.package in {sources.home}/mcpfactory.toml"
    there = sorted(one.stem for one in place.parent.iterdir() if one.suffix == ".py" or (one / "__init__.py").is_file())
    near = difflib.get_close_matches(place.name, there, 1)
    return f"did you mean {near[0]}?" if near else f"make {sources.display_path(f'{place}.py')}, or correct the import"


def _missing_name(error: ImportError, sources: _Sources) -> str:
    """Return the hint for a missing name, or for a package that cannot be run."""
    found = re.match(r"cannot import name '([^']+)' from (partially initialized module )?'([^']+)'", str(error))
    if found is None:
        if "cannot be directly executed" in str(error):
            main = f"{sources.home}/src/{sources.package.replace('.', '/')}/__main__.py"
            return f'make {main}: "from .server import main" and "main()"'
        if str(error).startswith("No module named"):
            return f"make src/{sources.package}/ in {sources.home}, or correct server.package in {sources.home}/mcpfactory.toml"
        return "correct that import; the imported library may need another version, or a missing system library"
    name, circle, module = found.groups()
    if circle:
        return "two modules import each other: move what both need into a third, or one import into its function"
    if module.split(".", maxsplit=1)[0] != sources.package.split(".", maxsplit=1)[0]:
        return f"the installed {module} has no {name}: correct the import, or the version in {sources.project}"
    if name == "main":
        return "end that module with a function main() that calls server.run()"
    return f"define {name} in {module}, or correct the import"


def _distribution(name: str) -> tuple[str, bool]:
    """Return the distribution that provides a module, and True if it is known or False if it is a guess."""
    top = name.split(".", maxsplit=1)[0]
    known = _DISTRIBUTIONS.get(top) or (top if top in _SAME else "")
    return known or top.replace("_", "-"), bool(known)
