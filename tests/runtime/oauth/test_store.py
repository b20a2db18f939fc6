"""Where logins are kept: files and keyrings."""

from __future__ import annotations

import asyncio
import re
import subprocess
from pathlib import Path

import pytest

from mcpfactory_runtime.oauth.steps_and_metadata import OAuthError
from mcpfactory_runtime.oauth.token_store import FileStore, KeyringStore, TokenStore, locked, open_store


class Ring:
    """What the package keyring offers, in memory; `locked` as a desktop's may be."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], str] = {}
        self.locked = False

    def get_password(self, service: str, name: str) -> str | None:
        if self.locked:
            raise RuntimeError("canary")
        return self.held.get((service, name))

    def set_password(self, service: str, name: str, value: str) -> None:
        self.held[service, name] = value

    def delete_password(self, service: str, name: str) -> None:
        del self.held[service, name]


@pytest.fixture(params=["files", "keyring"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> TokenStore:
    return FileStore(tmp_path / "t") if request.param == "files" else KeyringStore(tmp_path / "t", Ring())


def test_what_is_written_is_read_until_it_is_removed(store: TokenStore) -> None:
    assert store.read("a") is None
    assert not store.delete("a")
    store.write("a", {"n": 1})
    store.write("a", {"n": 2})
    store.write("b", {"n": 3})
    assert (store.read("a"), store.read("b")) == ({"n": 2}, {"n": 3})
    assert store.delete("a")
    assert (store.read("a"), store.read("b")) == (None, {"n": 3})


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(OAuthError, match=r"a\.json is damaged") as caught:
        FileStore(tmp_path).read("a")
    assert caught.value.code == "no_store"


@pytest.mark.parametrize("mode", [0o777, 0o2775, 0o1777])
def test_a_folder_that_others_may_write_is_refused_with_what_mends_it(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "tokens"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(OAuthError, match=rf"its mode is {mode:o}") as caught:
        FileStore(folder).write("a", {"n": 1})
    command = re.search(r"(chmod \S+ \S+);", str(caught.value))
    assert command is not None
    subprocess.run(command[1].split(), check=True)
    FileStore(folder).write("a", {"n": 1})


def test_a_keyring_that_is_locked_says_so_without_its_own_words(tmp_path: Path) -> None:
    ring = Ring()
    ring.locked = True
    with pytest.raises(OAuthError, match="MCPFACTORY_TOKEN_STORE=file") as caught:
        KeyringStore(tmp_path, ring).read("a")
    assert "canary" not in str(caught.value)


def test_the_environment_chooses_the_store(tmp_path: Path) -> None:
    assert open_store({"MCPFACTORY_TOKEN_STORE": str(tmp_path)}).folder == tmp_path
    settings = {"MCPFACTORY_TOKEN_STORE": "file", "XDG_CONFIG_HOME": str(tmp_path), "APPDATA": str(tmp_path)}
    chosen = open_store(settings)
    assert isinstance(chosen, FileStore)
    assert chosen.folder.name == "tokens"


@pytest.mark.anyio
async def test_one_at_a_time_holds_the_lock_of_a_key(tmp_path: Path) -> None:
    store, inside, most = FileStore(tmp_path), 0, 0

    async def work() -> None:
        nonlocal inside, most
        async with locked(store, "a"):
            inside += 1
            most = max(most, inside)
            await asyncio.to_thread(store.write, "a", {})
            inside -= 1

    async with locked(store, "b"):  # the lock of another key
        await asyncio.gather(*(work() for _ in range(5)))
    assert (inside, most) == (0, 1)
