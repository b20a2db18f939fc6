"""A server with its own build backend, so that builds need no index. `files.json` lists the files of its wheel."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tests.pipeline.fake_stages import add_server

_BACKEND = """
import gzip, json, os, re, tarfile, zipfile
VERSION = re.search('version = "(.*)"', open("pyproject.toml").read())[1]
def build_sdist(out, settings=None):
    path = os.path.join(out, f"books-{VERSION}.tar.gz")
    with gzip.GzipFile(path, "wb", mtime=0) as file, tarfile.open(fileobj=file, mode="w") as archive:
        for name in ("backend.py", "files.json", "pyproject.toml"):
            info = tarfile.TarInfo(f"books-{VERSION}/{name}")
            info.size = os.path.getsize(name)
            archive.addfile(info, open(name, "rb"))
    return f"books-{VERSION}.tar.gz"
def build_wheel(out, settings=None, metadata=None):
    name = f"books-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(out, name), "w") as wheel:
        for path, text in json.load(open("files.json")).items():
            wheel.writestr(zipfile.ZipInfo(path.replace("VERSION", VERSION)), text.replace("VERSION", VERSION))
    return name
"""
INFO = "books-VERSION.dist-info"
FILES = {
    "books_mcp/__init__.py": "",
    f"{INFO}/METADATA": "Metadata-Version: 2.1\nName: books\nVersion: VERSION\n",
    f"{INFO}/WHEEL": "Wheel-Version: 1.0\nTag: py3-none-any\n",
    f"{INFO}/RECORD": "",
    f"{INFO}/entry_points.txt": "[console_scripts]\nbooks = books_mcp:main\nBooks_Admin = books_mcp:main\n",
}


def write_server(root: Path, files: Mapping[str, str], *, version: str = "1.0", allow: object = ()) -> Path:
    """Write the server `books`, whose wheel has `FILES` and these files; replace `VERSION` in them by its version."""
    folder = root / "servers" / "books"
    if not folder.is_dir():
        add_server(root, "books")
    system = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    (folder / "pyproject.toml").write_text(f'{system}[project]\nname = "books"\nversion = "{version}"\n')
    (folder / "backend.py").write_text(_BACKEND)
    (folder / "files.json").write_text(json.dumps(FILES | files))
    (folder / "mcpfactory.toml").write_text(
        f'[server]\nname = "books"\npackage = "books_mcp"\n[build]\nallow = {json.dumps(allow)}\n'
    )
    return folder
