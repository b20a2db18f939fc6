"""Paths that somebody who is not trusted names: in URIs of resources, and in arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpfactory_runtime import McpError, Server, ToolError, safe_join
from mcpfactory_runtime.revisions import REVISIONS
from mcpfactory_runtime.testing import connect


def server_of(folder: Path, **options: object) -> Server:
    server = Server("files")

    @server.resource("files:///{name}", **options)  # type: ignore[arg-type]
    def one(name: str) -> str:
        return (folder / name).read_text()

    @server.resource("files:///{+rest}")
    def any_below(rest: str) -> str:
        return (folder / rest).read_text()

    return server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "open" / "sub").mkdir(parents=True)
    (tmp_path / "open" / "a.txt").write_text("a")
    (tmp_path / "open" / "sub" / "b.txt").write_text("b")
    return tmp_path / "open"


@pytest.mark.parametrize(
    "path", ["..%2Fsecret.txt", "%2e%2e/secret.txt", "sub/..%2F../secret.txt", "a.txt%00", "%2Fetc%2Fhostname"]
)
@pytest.mark.anyio
async def test_a_path_out_of_the_folder_is_no_resource_of_any_template(folder: Path, path: str) -> None:
    async with connect(server_of(folder)) as client:
        with pytest.raises(McpError) as failure:
            await client.read_resource(f"files:///{path}")
    assert failure.value.code in {revision.resource_not_found for revision in REVISIONS.values()}
    assert "secret" not in str(failure.value).replace("secret.txt", "")


@pytest.mark.anyio
async def test_what_is_in_the_folder_is_read_and_an_exempt_variable_is_handed_over(folder: Path) -> None:
    async with connect(server_of(folder)) as client:
        assert (await client.read_resource("files:///a.txt"))[0]["text"] == "a"
        assert (await client.read_resource("files:///sub/b.txt"))[0]["text"] == "b"
    async with connect(server_of(folder, exempt_params={"name"})) as client:
        assert (await client.read_resource("files:///..%2Fsecret.txt"))[0]["text"] == "secret"


def test_paths_are_joined_below_a_folder(folder: Path) -> None:
    (folder / "link").symlink_to(folder.parent)
    assert safe_join(folder, "sub", "b.txt").read_text() == "b"
    assert safe_join(folder, "new.txt") == folder.resolve() / "new.txt"
    assert safe_join(folder, "sub/../a.txt").read_text() == "a"
    for wrong in ("../secret.txt", "/etc/hostname", "link/secret.txt", "a\0", "sub/../../secret.txt"):
        with pytest.raises(ToolError, match="outside"):
            safe_join(folder, wrong)
