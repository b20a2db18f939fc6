"""What was found of each server is kept for the next dashboard: nothing that is the same is read again, and nothing that changed, or is damaged, is believed."""

from __future__ import annotations

import builtins
import errno
import hashlib
import hmac
import os
import shutil
import stat
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import from_json, to_json
from starlette.testclient import TestClient

from mcpfactory_pipeline.base.ids import utc_now
from mcpfactory_pipeline.clients.files import this_machine
from mcpfactory_pipeline.dashboard.app import create_app
from mcpfactory_pipeline.dashboard.cache import read_cache
from mcpfactory_pipeline.dashboard.cache_key import cache_key
from mcpfactory_pipeline.dashboard.export import export
from mcpfactory_pipeline.dashboard.facts import WorkspaceFacts
from mcpfactory_pipeline.dashboard.reader import WorkspaceReader
from mcpfactory_pipeline.promotion import decision
from tests.dashboard.conftest import Bench
from tests.dashboard.person import PEOPLE
from tests.dashboard.test_decision import shop
from tests.dashboard.test_export_states import broken, much, nothing
from tests.dashboard.test_watching import MORE

__all__ = ["shop"]

NOW = utc_now()
LONG_AGO = 1_700_000_000 * 10**9


def cache_file(bench: Bench) -> Path:
    return bench.workspace.pipeline / "locks" / "dashboard.cache"


def settle(bench: Bench) -> None:
    """A while passes in which no file changes."""
    for path in (bench.root, *bench.root.rglob("*")):
        os.utime(path, ns=(LONG_AGO, LONG_AGO))


def found(bench: Bench, *, keep: bool = False) -> WorkspaceFacts:
    """What a new dashboard finds, at a moment that is always the same."""
    reader = WorkspaceReader(bench.root, live=False, clock=lambda: NOW)
    facts = reader.workspace()
    if keep:
        reader.keep()
    return facts


def anew(bench: Bench) -> WorkspaceFacts:
    """What is found where nothing is kept."""
    cache_file(bench).unlink(missing_ok=True)
    return found(bench)


@pytest.fixture
def known(library: Bench) -> Bench:
    """The library, of which a dashboard kept what it found."""
    settle(library)
    found(library, keep=True)
    assert cache_file(library).is_file()
    return library


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every file that is opened."""
    files, real = list[str](), builtins.open

    def counted(file: Any, *arguments: Any, **options: Any) -> Any:
        files.append(str(file))
        return real(file, *arguments, **options)

    monkeypatch.setattr(builtins, "open", counted)
    return files


def read_of_servers(bench: Bench, opened: list[str]) -> int:
    """How many files of servers were opened since this was asked last."""
    count = sum(file.startswith(str(bench.root / "servers")) for file in opened)
    opened.clear()
    return count


def test_the_next_dashboard_opens_no_file_of_a_server(known: Bench, opened: list[str]) -> None:
    facts = found(known)
    assert read_of_servers(known, opened) == 0
    assert anew(known) == facts
    assert read_of_servers(known, opened) > 0


@pytest.mark.parametrize("what", MORE)
def test_what_changed_meanwhile_is_read(known: Bench, what: str) -> None:
    name, change = MORE[what]
    before = {server.name: server for server in found(known).servers}
    change(known)
    after = {server.name: server for server in found(known).servers}
    assert after == {server.name: server for server in anew(known).servers}
    assert {one for one in before if before[one] != after[one]} <= {name}


def test_a_server_that_came_or_went_is_seen(known: Bench) -> None:
    known.add("later")
    (known.root / "servers/zebra/mcpfactory.toml").unlink()
    assert [server.name for server in found(known).servers] == ["atlas", "bookshop", "later", "weather"]
    assert found(known) == anew(known)


@pytest.mark.parametrize("state", [nothing, much, broken])
def test_pages_of_what_was_kept_are_those_of_what_is_read(bench: Bench, tmp_path: Path, state: Any) -> None:
    state(bench)
    settle(bench)
    found(bench, keep=True)
    sites = []
    for place in ("kept", "read"):
        export(bench.root, tmp_path / place)
        files = sorted((tmp_path / place).rglob("*.*"))
        sites.append({file.relative_to(tmp_path / place): file.read_bytes() for file in files if file.is_file()})
        cache_file(bench).unlink(missing_ok=True)
    assert sites[0] == sites[1]


def test_who_approved_is_kept(shop: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPFACTORY_ACTOR", "Ada")
    decision.approve(shop.workspace, "bookshop", "production", reason="tried it")
    settle(shop)
    expected = found(shop, keep=True)
    assert [server.approved for server in expected.servers if server.approved]
    assert found(shop) == expected


def sealed(secret: bytes, of: str, body: bytes) -> bytes:
    """A memory with its first line."""
    return hmac.new(secret, b"2 %s " % of.encode() + body, hashlib.sha256).hexdigest().encode() + b"\n" + body


def without(member: str) -> Any:
    def changed(content: Any) -> Any:
        return {name: {key: value for key, value in one.items() if key != member} for name, one in content.items()}

    return changed


DAMAGE: dict[str, Any] = {
    "empty": lambda data: b"",
    "cut off": lambda data: data[: len(data) // 2],
    "no text": lambda data: b"\xff\xfe\n" + data,
    "another byte": lambda data: data.replace(b"bookshop", b"bookshoq", 1),
    "of something else": lambda data: b"0" * 64 + b"\n" + data.partition(b"\n")[2],
}
FORMS: dict[str, Any] = {
    "a list": lambda content: [],
    "texts": lambda content: dict.fromkeys(content, "text"),
    "nothing of a server": lambda content: {name: {} for name in content},
    **{f"no {member}": without(member) for member in ("paths", "stamps", "facts", "read_at")},
    "too few stamps": lambda content: {name: {**one, "stamps": one["stamps"][1:]} for name, one in content.items()},
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_memory_is_none_and_is_made_anew(known: Bench, damage: str) -> None:
    file, expected = cache_file(known), found(known)
    good = file.read_bytes()
    file.write_bytes(DAMAGE[damage](good))
    assert found(known, keep=True) == expected
    assert from_json(file.read_bytes().partition(b"\n")[2]).keys() == {"atlas", "bookshop", "weather", "zebra"}


@pytest.mark.parametrize("form", ["as it is", *FORMS])
def test_a_memory_of_another_form_is_none(known: Bench, form: str) -> None:
    file = cache_file(known)
    content = from_json(file.read_bytes().partition(b"\n")[2])
    body = to_json(FORMS.get(form, lambda known: known)(content))
    file.write_bytes(sealed(b"secret", "a workspace", body))
    assert len(read_cache(file, known.root, "a workspace", b"secret")) == (4 if form == "as it is" else 0)
    assert read_cache(file, known.root, "another", b"secret") == {}
    assert read_cache(file, known.root, "a workspace", b"another") == {}


def commit(root: Path) -> None:
    for words in (
        ("init", "-q"),
        ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "a"),
    ):
        subprocess.run(["git", "-C", str(root), *words], check=True)


OTHERWISE: dict[str, Callable[[Path, pytest.MonkeyPatch], object]] = {
    "a setting": lambda root, _patch: (root / "mcpfactory.toml").write_text(
        '[workspace]\nname = "library"\n[owners]\n"*" = ["Ada"]\n'
    ),
    "who asks": lambda _root, patch: patch.setenv("MCPFACTORY_ACTOR", "Somebody else"),
    "the commit": lambda root, _patch: commit(root),
    "the signers": lambda root, _patch: (root / "pipeline/allowed_signers").touch(),
}


@pytest.mark.parametrize("what", OTHERWISE)
def test_what_was_found_when_things_were_otherwise_is_not_believed(
    known: Bench, what: str, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found(known)
    assert read_of_servers(known, opened) == 0
    OTHERWISE[what](known.root, monkeypatch)
    found(known)
    assert read_of_servers(known, opened) > 0


def test_a_workspace_that_was_moved_is_read_anew(known: Bench, opened: list[str]) -> None:
    elsewhere = known.root.with_name("elsewhere")
    known.root.rename(elsewhere)
    WorkspaceReader(elsewhere).workspace()
    assert [file for file in opened if file.startswith(f"{elsewhere}/servers")]


def test_a_file_that_has_just_changed_is_not_trusted_to_keep_its_time(known: Bench) -> None:
    """A second change within the same tick of the clock would have the same stamp."""
    report = known.root / "servers/weather/.mcpfactory/report.json"
    report.write_text(report.read_text().replace("600", "700"))
    found(known, keep=True)
    assert "weather" not in from_json(cache_file(known).read_bytes().partition(b"\n")[2])
    settle(known)
    found(known, keep=True)
    assert "weather" in from_json(cache_file(known).read_bytes().partition(b"\n")[2])


def test_what_rests_on_files_elsewhere_is_not_kept(known: Bench) -> None:
    """A template of the workspace may change, and no file of the server does; a server that cannot be read may be made readable."""
    config = known.root / "servers/zebra/mcpfactory.toml"
    config.write_text(config.read_text().replace('template = "openapi"', 'template = "../../mine"'))
    known.store.state_file("weather").write_text("{")
    settle(known)
    found(known, keep=True)
    assert from_json(cache_file(known).read_bytes().partition(b"\n")[2]).keys() == {"atlas", "bookshop"}


def test_two_dashboards_at_once_leave_a_whole_memory(known: Bench) -> None:
    file, expected, over = cache_file(known), found(known), threading.Event()

    def keep() -> None:
        for _ in range(20):
            file.unlink(missing_ok=True)
            found(known, keep=True)

    def read() -> int:
        count = 0
        while not over.is_set():
            try:
                digest, _, body = file.read_bytes().partition(b"\n")
            except FileNotFoundError:
                continue
            assert len(digest) == 64
            assert from_json(body).keys() == {"atlas", "bookshop", "weather", "zebra"}
            count += 1
        return count

    with ThreadPoolExecutor(3) as pool:
        reading = pool.submit(read)
        for one in [pool.submit(keep), pool.submit(keep)]:
            one.result()
        over.set()
        assert reading.result() > 0
    assert found(known) == expected
    assert not list(file.parent.glob(".dashboard.cache*"))


def test_what_was_edited_in_place_is_read_whatever_time_the_file_was_given(known: Bench) -> None:
    """The same size, the same inode, and the time of the last write put back, as any program can."""
    report = known.root / "servers/weather/.mcpfactory/report.json"
    before, old = found(known), report.stat()
    with report.open("r+") as stream:
        text = stream.read()
        stream.seek(0)
        stream.write(text.replace('"tokens": 600', '"tokens": 700'))
    os.utime(report, ns=(old.st_atime_ns, old.st_mtime_ns))
    now = report.stat()
    assert (now.st_mtime_ns, now.st_size, now.st_ino) == (old.st_mtime_ns, old.st_size, old.st_ino)
    after = found(known)
    assert after == anew(known) != before


def test_a_state_in_which_a_byte_was_put_in_place_is_another(known: Bench) -> None:
    state = known.store.state_file("weather")
    reader = WorkspaceReader(known.root)
    before, old = reader.digest(), state.stat()
    state.write_bytes(state.read_bytes().replace(b"weather", b"weathor"))
    os.utime(state, ns=(old.st_atime_ns, old.st_mtime_ns))
    assert state.stat().st_size == old.st_size
    assert reader.digest() != before


def key_file() -> Path:
    """Where the secret is by which a dashboard knows what it kept."""
    return this_machine(os.environ).state.parent / "dashboard.key"


def test_the_secret_is_one_persons_and_outside_of_the_workspace(known: Bench) -> None:
    key = key_file()
    assert not key.is_relative_to(known.root)
    assert (stat.S_IMODE(key.stat().st_mode), len(key.read_bytes())) == (0o600, 32)
    secret = key.read_bytes()
    found(known, keep=True)
    assert key.read_bytes() == secret
    kept = b"".join(file.read_bytes() for file in known.workspace.pipeline.rglob("*") if file.is_file())
    assert secret not in kept
    assert secret.hex().encode() not in kept


def others_may_read(key: Path) -> None:
    key.chmod(0o640)


def a_link(key: Path) -> None:
    key.rename(key.with_name("elsewhere"))
    key.symlink_to("elsewhere")


def a_folder(key: Path) -> None:
    key.unlink()
    key.mkdir()


def short(key: Path) -> None:
    key.write_bytes(key.read_bytes()[:16])


def another(key: Path) -> None:
    key.write_bytes(bytes(32))


def no_folder(key: Path) -> None:
    shutil.rmtree(key.parent)
    key.parent.write_text("a file where the folder was")


@pytest.mark.parametrize("spoil", [others_may_read, a_link, a_folder, short, no_folder, another])
def test_without_a_secret_of_ones_own_nothing_is_believed_or_kept(
    known: Bench, spoil: Callable[[Path], None], opened: list[str]
) -> None:
    expected, before = found(known), cache_file(known).read_bytes()
    assert read_of_servers(known, opened) == 0
    spoil(key_file())
    assert found(known, keep=True) == expected
    assert read_of_servers(known, opened) > 0
    assert (cache_file(known).read_bytes() == before) == (spoil is not another)
    assert found(known) == expected


def test_a_secret_is_made_where_files_have_one_name_only(
    known: Bench, monkeypatch: pytest.MonkeyPatch, opened: list[str]
) -> None:
    def refuse(*_names: object) -> None:
        raise PermissionError(errno.EPERM, "no hard links here")

    monkeypatch.setattr(os, "link", refuse)
    key_file().unlink()
    found(known, keep=True)
    assert (stat.S_IMODE(key_file().stat().st_mode), len(key_file().read_bytes())) == (0o600, 32)
    assert [one.name for one in key_file().parent.glob(".*.tmp")] == []
    read_of_servers(known, opened)
    found(known)
    assert read_of_servers(known, opened) == 0


def test_of_many_who_are_first_each_has_the_one_secret(known: Bench) -> None:
    for _ in range(20):
        key_file().unlink()
        start = threading.Barrier(6)

        def asked(_number: int, start: threading.Barrier = start) -> bytes:
            start.wait()
            return cache_key(known.root)

        with ThreadPoolExecutor(6) as pool:
            assert set(pool.map(asked, range(6))) == {key_file().read_bytes()}


def test_a_secret_below_the_workspace_is_none(library: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "LOCALAPPDATA", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(library.root / "home"))
    settle(library)
    found(library, keep=True)
    assert not key_file().exists()
    assert not cache_file(library).exists()


@pytest.mark.parametrize("secret", ["none", "its owner's"])
def test_nothing_is_decided_by_what_is_kept(shop: Bench, secret: str) -> None:
    """Who has no secret of its owner's makes no page lie; and who has says what is shown: what is done is checked by the files themselves."""
    settle(shop)
    reader = WorkspaceReader(shop.root)
    reader.workspace()
    reader.keep()

    def asked() -> tuple[str, dict[str, Any]]:
        client = TestClient(create_app(shop.root, people=PEOPLE), base_url="http://127.0.0.1")
        headers = {"Authorization": f"Bearer {PEOPLE['Ada']}", "Accept": "application/json"}
        values = {"channel": "production", "reason": "tried it"}
        board = client.get("/board/", headers={"Accept": "text/html"}).text
        answer = client.get("/servers/bookshop/actions/approve/", params=values, headers=headers).json()
        return board, {**answer, "ticket": "", "evidence": "is shown"}

    board, honest = asked()
    assert ("2.0.0" in board, "9.9.9" in board, "settled" in honest) == (True, False, True)
    file = cache_file(shop)
    kept = from_json(file.read_bytes().partition(b"\n")[2])
    facts = kept["bookshop"]["facts"]
    facts["row"]["version"], facts["row"]["expect"]["production"] = "9.9.9", "forged"
    facts["row"]["rejected"] = facts["row"]["holds"] = {}
    facts["items"] = [{**item, "expect": "forged"} for item in facts["items"]]
    body = to_json(kept)
    keys = {"its owner's": key_file().read_bytes()}
    first = hashlib.sha256(b"2 %s " % reader._of.encode() + body).hexdigest().encode() + b"\n" + body
    file.write_bytes(sealed(keys[secret], reader._of, body) if secret in keys else first)
    board, told = asked()
    assert ("9.9.9" in board) == (secret in keys)
    assert told == honest
