"""The static site: the same pages, links that work from a disk, nothing from elsewhere."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mcpfactory_pipeline.base.errors import PipelineError
from mcpfactory_pipeline.base.hashing import hash_file
from mcpfactory_pipeline.dashboard.export import export
from tests.dashboard.conftest import WorkspaceBuilder
from tests.system import contents
from tests.timeouts import TIMEOUT


@pytest.fixture
def site(four_servers: WorkspaceBuilder, tmp_path: Path) -> Path:
    export(four_servers.root, tmp_path / "site")
    return tmp_path / "site"


def test_the_site_has_a_page_and_its_data_for_every_server(four_servers: WorkspaceBuilder, tmp_path: Path) -> None:
    files = export(four_servers.root, tmp_path / "site")
    names = {file.relative_to(tmp_path / "site").as_posix() for file in files}
    assert {
        "index.html",
        "index.json",
        "board/index.html",
        "runs/index.html",
        ".nojekyll",
        "assets/style.css",
        "assets/page.js",
    } <= names
    for server in ("atlas", "bookshop", "weather", "zebra"):
        assert {
            f"servers/{server}/index.html",
            f"servers/{server}/index.json",
            f"servers/{server}/tools/index.html",
        } <= names
    assert all(file.is_file() for file in files)


@pytest.mark.parametrize(("place", "words"), [("file", "is a file"), ("file/site", "cannot be written")])
def test_a_place_that_cannot_be_written_is_said(
    four_servers: WorkspaceBuilder, tmp_path: Path, place: str, words: str
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PipelineError, match=words):
        export(four_servers.root, tmp_path / place)


def test_pages_carry_the_policy_and_name_no_other_host_to_load_from(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text("utf-8")
        assert 'http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;' in text
        assert re.findall(r'(?:src|href)="(?:https?:)?//', text) == []
    assert "@import" not in (site / "assets/style.css").read_text()
    assert "url(" not in (site / "assets/style.css").read_text()


RECORD = "assets/export.json"


def test_an_export_into_an_earlier_one_is_what_a_fresh_one_is(
    four_servers: WorkspaceBuilder, site: Path, tmp_path: Path
) -> None:
    four_servers.passed("weather", "generate", message="other")
    shutil.rmtree(four_servers.root / "servers" / "zebra")
    (site / "servers/atlas/index.html").write_text("edited")
    (site / "board/index.json").unlink()
    (site / "own.txt").write_text("mine")
    export(four_servers.root, site)
    export(four_servers.root, tmp_path / "fresh")
    assert contents(site) == {**contents(tmp_path / "fresh"), "own.txt": b"mine"}
    assert not (site / "servers/zebra").exists()


@pytest.mark.parametrize(
    "path", ["../mine.txt", "/etc/hostname", "linked/mine.txt", "servers/../../mine.txt", ".git/config"]
)
def test_nothing_outside_of_the_site_is_removed_whatever_the_record_says(
    four_servers: WorkspaceBuilder, site: Path, tmp_path: Path, path: str
) -> None:
    for file in (tmp_path / "mine.txt", tmp_path / "elsewhere/mine.txt", site / ".git/config"):
        file.parent.mkdir(exist_ok=True)
        file.write_text("mine")
    (site / "linked").symlink_to(tmp_path / "elsewhere")
    (site / RECORD).write_text(json.dumps([*json.loads((site / RECORD).read_bytes()), path]))
    export(four_servers.root, site)
    assert all(
        file.read_text() == "mine"
        for file in (tmp_path / "mine.txt", tmp_path / "elsewhere/mine.txt", site / ".git/config")
    )


@pytest.mark.parametrize("place", ["board", "board/index.html", "index.json", "assets"])
def test_a_link_is_replaced_and_nothing_is_written_where_it_leads(
    four_servers: WorkspaceBuilder, site: Path, tmp_path: Path, place: str
) -> None:
    elsewhere, fresh = tmp_path / "elsewhere", contents(site)
    (site / place).rename(elsewhere)
    (site / place).symlink_to(elsewhere)
    before = contents(elsewhere) or elsewhere.read_bytes()
    export(four_servers.root, site)
    assert contents(site) == fresh
    assert not any(path.is_symlink() for path in site.rglob("*"))
    assert (contents(elsewhere) or elsewhere.read_bytes()) == before


def chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    assert found is not None, "chromium is not installed\nhint: apt-get install chromium"
    return found


def opened(page: str, profile: Path) -> str:
    """The page as the browser has it after its script ran; what the browser complains of is in the text, too."""
    command = [
        chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
        "--disable-background-networking", "--disable-component-update", f"--user-data-dir={profile}",
        "--enable-logging=stderr", "--dump-dom", page,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=True)
    return done.stdout + "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)


@pytest.mark.browser
def test_the_board_opens_from_a_disk_in_a_browser_and_filters(site: Path, tmp_path: Path) -> None:
    dom = opened(f"{(site / 'board/index.html').as_uri()}#status=failed", tmp_path / "profile")
    assert "CONSOLE" not in dom  # neither errors nor violations of the policy
    assert re.search(r'<button type="button" id="theme"[^>]* aria-label="(Dark|Light) theme"', dom)  # the script ran
    assert "1 of 4 shown" in dom
    assert re.search(r'<tr data-name="bookshop" data-status="passed" hidden="">', dom)
    assert re.search(r'<tr data-name="atlas" data-status="failed">', dom)


@pytest.mark.browser
def test_the_page_of_a_server_opens_from_a_disk_without_complaints(site: Path, tmp_path: Path) -> None:
    dom = opened((site / "servers/atlas/index.html").as_uri(), tmp_path / "profile")
    assert "CONSOLE" not in dom
    assert "tool-calls.some-succeed" in dom


def test_an_export_has_logs_only_on_request_and_no_path_of_this_machine(
    builder: WorkspaceBuilder, tmp_path: Path
) -> None:
    builder.add("atlas")
    folder = builder.workspace.artifacts / "atlas/logs"
    folder.mkdir(parents=True)
    (folder / "test.log").write_text("token=hunter2\n")
    said = f"see {builder.root.resolve()}/servers/atlas/x.py"
    known = {"logs/test.log": hash_file(folder / "test.log")}
    builder.finished("atlas", "test", "failed", message=said, artifacts=known)
    for logs in (False, True):
        site = tmp_path / f"site-{logs}"
        export(builder.root, site, logs=logs)
        text = "".join(file.read_text("utf-8") for file in site.rglob("index.*"))
        assert ("hunter2" in text) == logs
        assert "see servers/atlas/x.py" in text
        assert str(builder.root) not in text
