"""Workspace with promoted candidates, whose packages are written by hand and not built."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from mcpfactory_pipeline.base.hashing import hash_bytes, hash_named_texts
from mcpfactory_pipeline.base.ids import new_id
from mcpfactory_pipeline.maintenance.workspace_setup import apply_setup, plan_workspace_setup
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.written_packages import tarball, zipped

API = """\
from mcpfactory_runtime.upstream import SecurityScheme
SCHEMES = (SecurityScheme("apiKey", "apiKey", ("BOOKS_API_KEY",), place="header", parameter="X-Api-Key"),
           SecurityScheme("login", "oauth2", ("BOOKS_TOKEN", "BOOKS_CLIENT_ID", "BOOKS_CLIENT_SECRET")))
"""
TOOLS = [
    {"name": "list_books", "description": "Find books.", "inputSchema": {"type": "object"}},
    {"name": "get_book", "description": "Get a book.", "inputSchema": {"type": "object"}},
]
NAME = "io.github.acme/books"
CONFIG = f'[server]\nname = "books"\n[publish]\ntargets = ["pypi", "registry"]\nmcp_name = "{NAME}"\n'
README = f"# Books\n\nFinds books.\n\n<!-- mcp-name: {NAME} -->\n"


class PromotedWorkspace:
    """Workspace with the server `books`, and candidates that are promoted to production one by one."""

    def __init__(self, root: Path) -> None:
        self.workspace = apply_setup(plan_workspace_setup(root), git=False)
        folder = root / "servers" / "books"
        folder.mkdir(parents=True)
        (folder / "mcpfactory.toml").write_text('[server]\nname = "books"\npackage = "books_mcp"\ntemplate = "none"\n')

    @property
    def state(self):
        return Store(self.workspace).state("books")

    @property
    def events(self):
        return Store(self.workspace).history("books")

    def configure(self, text: str) -> None:
        """Replace the settings of the workspace."""
        (self.workspace.root / "mcpfactory.toml").write_text(f'[workspace]\nname = "shelf"\n{text}')
        self.workspace = Workspace.find(self.workspace.root)

    def put(self, version: str = "1.0.0", *, channel: str = "production", **parts: object) -> str:
        """Create and promote a candidate of a version; return its ID. `parts` are arguments of `packages`."""
        files = packages(version, **parts)
        hashes = {name: hash_bytes(data) for name, data in files.items()}
        candidate = hash_named_texts(hashes).removeprefix("sha256:")[:16]
        folder = self.workspace.artifacts / "books" / candidate
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (folder / name).write_bytes(data)
        with Store(self.workspace).transaction("books") as transaction:
            built = {"version": version, "files": hashes, "facts": {}}
            transaction.append(
                "stage.finished", stage="build", run=new_id(), outcome="passed", fingerprint="f", inputs={}, candidate=candidate,
                built=built,
            )  # fmt: skip
            for name in dict.fromkeys(("staging", channel)):
                transaction.append("promoted", channel=name, candidate=candidate, version=version)
        return candidate


def packages(
    version: str = "1.0.0",
    *,
    name: str = "books-mcp",
    summary: str = "Finds books",
    readme: str = README,
    config: str = CONFIG,
    requires: tuple[str, ...] = (),
    sdist: bool = True,
    licence: str = "Apache-2.0",
    program: str = "books_mcp:main",
    package: str = "books_mcp",
    code: bytes = b"",
    api: str = API,
    extra: Mapping[str, bytes] = MappingProxyType({}),
) -> Mapping[str, bytes]:
    """Return a wheel and a source distribution by name; `code` is in the package, `extra` at the top of the latter."""
    stem = f"{name.replace('-', '_')}-{version}"
    about = [
        f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\nSummary: {summary}\nLicense-Expression: {licence}"
    ]
    about += [f"Requires-Dist: {one}" for one in requires]
    metadata = "\n".join([*about, "Requires-Python: >=3.11", "Description-Content-Type: text/markdown", "", readme])
    manifest = {"manifest": 1, "server": {"name": "books", "version": version, "title": "Books"}, "tools": TOOLS}
    init = code or f'__version__ = "{version}"\ndef main():\n    print("books {version}")\n'
    wheel = {
        f"{package}/__init__.py": init,
        f"{package}/_generated/manifest.json": json.dumps(manifest),
        f"{package}/_generated/api.py": api,
        f"{stem}.dist-info/METADATA": metadata,
        f"{stem}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{stem}.dist-info/entry_points.txt": f"[console_scripts]\n{name} = {program}\n",
    }
    record = f"{stem}.dist-info/RECORD"
    wheel[record] = "".join(f"{path},,\n" for path in (*wheel, record))
    files = {f"{stem}-py3-none-any.whl": zipped(wheel)}
    if sdist:
        source = {"PKG-INFO": metadata, "mcpfactory.toml": config, "README.md": readme, **extra}
        files[f"{stem}.tar.gz"] = tarball(source, stem)
    return files
