"""Skills as clients see them, and what cannot be published."""

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_runtime import Server
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, McpError
from mcpfactory_runtime.revisions import SKILLS
from mcpfactory_runtime.server.skills import MAX_FILES, MAX_SIZE, SkillError
from mcpfactory_runtime.testing import connect
from tests.runtime.requirements import requirement
from tests.runtime.skills.conftest import MakeSkill

pytestmark = pytest.mark.anyio

ROOT = "skill://acme/brew-tea"
FILES: dict[str, str | bytes] = {
    "references/leaves.md": "# Leaves\r\n",
    "references/deep/water.txt": "80 °C",
    "scripts/steep.py": "print('steep')\n",
    "assets/cup.png": b"\x89PNG\x00",
    "assets/strange file (1).unknown-kind": b"\xff\xfe\x00",
    ".hidden": "secret",
    ".git/config": "secret",
    "__pycache__/steep.pyc": b"\x00",
}


async def code(client: Client, method: str, **params: Any) -> int:
    with pytest.raises(McpError) as caught:
        await client.request(method, params)
    return caught.value.code


@pytest.fixture
def server(make_skill: MakeSkill) -> Server:
    made = Server("skilled", ttl_ms=5_000, cache_scope="public")
    made.add_skill(make_skill(files=FILES), prefix="acme")
    return made


@requirement("skill.advertised")
async def test_the_extension_is_advertised_with_directories_where_there_are_skills(server: Server) -> None:
    async with connect(server) as client:
        assert client.capabilities["extensions"][SKILLS] == {"directoryRead": True}
        assert "resources" in client.capabilities
    async with connect(Server("unskilled")) as client:
        assert "extensions" not in client.capabilities
        for method in ("skills/list", "skills/get", "resources/directory/read"):
            assert await code(client, method, uri=ROOT) == METHOD_NOT_FOUND


@requirement("skill.list", "skill.get", "skill.digest", "skill.read")
async def test_every_file_is_listed_with_digest_and_size_and_reads_as_listed(server: Server) -> None:
    async with connect(server) as client:
        listed = await client.request("skills/list")
        assert (listed["ttlMs"], listed["cacheScope"]) == (5_000, "public")
        (skill,) = listed["skills"]
        got = await client.request("skills/get", {"uri": skill["uri"]})
        assert got["skill"] == skill
        assert (got["ttlMs"], got["cacheScope"]) == (5_000, "public")
        assert "nextCursor" not in got
        assert skill["uri"] == f"{ROOT}/SKILL.md"
        assert skill["frontmatter"] == {"name": "brew-tea", "description": "Brew tea well."}
        uris = [file["uri"].removeprefix(f"{ROOT}/") for file in skill["resources"]]
        assert uris == [
            "SKILL.md",
            "assets/cup.png",
            "assets/strange%20file%20(1).unknown-kind",
            "references/deep/water.txt",
            "references/leaves.md",
            "scripts/steep.py",
        ]
        kinds = {}
        for file in skill["resources"]:
            (contents,) = await client.read_resource(file["uri"])
            assert contents["uri"] == file["uri"]
            data = contents["text"].encode() if "text" in contents else base64.b64decode(contents["blob"])
            assert len(data) == file["size"]
            assert file["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
            kinds[file["uri"].rpartition("/")[2]] = contents["mimeType"]
    assert kinds["SKILL.md"] == kinds["leaves.md"] == "text/markdown"
    assert (kinds["cup.png"], kinds["steep.py"]) == ("image/png", "text/x-python")


@requirement("skill.directories")
async def test_folders_list_what_lies_directly_in_them(server: Server) -> None:
    async with connect(server) as client:
        root = (await client.request("resources/directory/read", {"uri": ROOT}))["resources"]
        assert {item["uri"].removeprefix(f"{ROOT}/"): item.get("mimeType") for item in root} == {
            "SKILL.md": "text/markdown",
            "assets": "inode/directory",
            "references": "inode/directory",
            "scripts": "inode/directory",
        }
        inner = (await client.request("resources/directory/read", {"uri": f"{ROOT}/references"}))["resources"]
        assert {item["name"]: item.get("mimeType") for item in inner} == {
            "deep": "inode/directory",
            "leaves.md": "text/markdown",
        }
        for uri in (
            f"{ROOT}/SKILL.md",
            f"{ROOT}/",
            f"{ROOT}/nothing",
            f"{ROOT}/.git",
            "skill://acme",
            "file:///etc",
            5,
        ):
            assert await code(client, "resources/directory/read", uri=uri) == INVALID_PARAMS


@requirement("skill.unknown")
async def test_what_is_not_served_is_refused(server: Server) -> None:
    async with connect(server) as client:
        for uri in ("skill://nothing/SKILL.md", ROOT, f"{ROOT}/references/leaves.md", 5, None):
            assert await code(client, "skills/get", uri=uri) == INVALID_PARAMS


ESCAPES = (
    *("../outside.txt", "references/../../outside.txt", "%2e%2e/outside.txt", "..%2Foutside.txt", "/etc/passwd"),
    *("references/..%5C..%5Coutside.txt", "%2Fetc%2Fpasswd", "./SKILL.md", "references//leaves.md", ""),
    *(".hidden", ".git/config", "__pycache__/steep.pyc", "references", "SKILL.md%00", "SKILL.md/"),
)


@pytest.mark.parametrize("path", ESCAPES)
async def test_no_uri_leads_out_of_the_folder_or_to_what_is_left_out(server: Server, tmp_path: Path, path: str) -> None:
    (tmp_path / "skills" / "outside.txt").write_text("secret")
    async with connect(server) as client:
        assert await code(client, "resources/read", uri=f"{ROOT}/{path}") == INVALID_PARAMS


async def test_a_changed_file_has_its_new_digest_in_the_next_answer(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "skills" / "brew-tea"
    async with connect(server) as client:
        before = (await client.request("skills/get", {"uri": f"{ROOT}/SKILL.md"}))["skill"]["resources"]
        (folder / "references" / "leaves.md").write_text("# Other leaves\n")
        (folder / "new.md").write_text("new")
        (folder / "scripts" / "steep.py").unlink()
        after = (await client.request("skills/get", {"uri": f"{ROOT}/SKILL.md"}))["skill"]["resources"]
        digests = [{file["uri"]: file["digest"] for file in files} for files in (before, after)]
        assert digests[0][f"{ROOT}/references/leaves.md"] != digests[1][f"{ROOT}/references/leaves.md"]
        assert digests[0].keys() - digests[1].keys() == {f"{ROOT}/scripts/steep.py"}
        assert digests[1].keys() - digests[0].keys() == {f"{ROOT}/new.md"}
        assert (await client.read_resource(f"{ROOT}/new.md"))[0]["text"] == "new"
        assert await code(client, "resources/read", uri=f"{ROOT}/scripts/steep.py") == INVALID_PARAMS


async def test_a_link_that_appears_later_is_never_followed(server: Server, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("secret")
    (tmp_path / "skills" / "brew-tea" / "link.txt").symlink_to(tmp_path / "outside.txt")
    async with connect(server) as client:
        assert await code(client, "skills/get", uri=f"{ROOT}/SKILL.md") == INTERNAL_ERROR
        with pytest.raises(McpError) as caught:
            await client.read_resource(f"{ROOT}/link.txt")
        assert str(tmp_path) not in str(caught.value)


WRONG = {
    "no front matter": ("brew-tea", "", "name None"),
    "no name": ("brew-tea", "description: x", "name None"),
    "capitals": ("Brew", "name: Brew\ndescription: x", "name 'Brew'"),
    "hyphens": ("a--b", "name: a--b\ndescription: x", "name 'a--b'"),
    "other name": ("brew-tea", "name: brew-coffee\ndescription: x", "hint: use the same name for the folder"),
    "no description": ("brew-tea", "name: brew-tea", "description must be"),
    "long description": ("brew-tea", "name: brew-tea\ndescription: " + "x" * 1025, "description must be"),
    "yaml": ("brew-tea", "name: brew-tea\ndescription: [x]", "line 3: lists"),
}


@pytest.mark.parametrize(("name", "front", "message"), WRONG.values(), ids=WRONG)
def test_what_is_no_skill_is_refused(make_skill: MakeSkill, name: str, front: str, message: str) -> None:
    with pytest.raises(SkillError) as caught:
        Server("x").add_skill(make_skill(name, front))
    assert message in str(caught.value)


def test_a_folder_without_skills_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(SkillError, match=r"no SKILL\.md"):
        Server("x").add_skill(tmp_path / "empty")
    with pytest.raises(SkillError, match="no such folder"):
        Server("x").add_skill(tmp_path / "nothing")
    with pytest.raises(SkillError, match="hint: use add_skill"):
        Server("x").add_skills(tmp_path)


@requirement("skill.limits")
def test_what_hosts_need_not_accept_is_refused(make_skill: MakeSkill) -> None:
    fitting = {f"{number}.md": "" for number in range(MAX_FILES - 1)}
    Server("x").add_skill(make_skill("fitting", files=fitting))
    with pytest.raises(SkillError, match=str(MAX_FILES)):
        Server("x").add_skill(make_skill("too-many", files={**fitting, "one-more.md": ""}))
    large = make_skill("large", files={"large.bin": b""})
    os.truncate(large / "large.bin", MAX_SIZE - (large / "SKILL.md").stat().st_size)
    Server("x").add_skill(large)
    os.truncate(large / "large.bin", MAX_SIZE)
    with pytest.raises(SkillError, match=str(MAX_SIZE)):
        Server("x").add_skill(large)


def test_links_are_refused(make_skill: MakeSkill, tmp_path: Path) -> None:
    folder = make_skill()
    (folder / "link").symlink_to(tmp_path)
    with pytest.raises(SkillError, match="link is a link"):
        Server("x").add_skill(folder)


def test_all_skills_of_a_folder_are_added_in_the_order_of_names_and_each_once(make_skill: MakeSkill) -> None:
    make_skill("b")
    folder = make_skill("a").parent
    server = Server("x")
    assert server.add_skills(folder) == ["skill://a/SKILL.md", "skill://b/SKILL.md"]
    with pytest.raises(ValueError, match=r"skill://a/SKILL\.md' already exists"):
        server.add_skill(folder / "a")
