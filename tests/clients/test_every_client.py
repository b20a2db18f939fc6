"""Each of the clients, with the configuration of a person who had others before us."""

from __future__ import annotations

import shutil

import pytest

from mcpfactory_pipeline.delivery.clients import config_edits
from mcpfactory_pipeline.delivery.clients.client_profiles import CLIENTS, ClientProfile
from mcpfactory_pipeline.delivery.clients.config_files import ClientConfigError, backups, client_config_path
from mcpfactory_pipeline.delivery.clients.entry import PROJECT, LaunchEntry
from mcpfactory_pipeline.delivery.clients.install import InstallTarget, install, remote_target, uninstall
from tests.clients.configs import UNREADABLE, config, give, home_in, is_only_more
from tests.subtest_table import parametrize_subtests

FORMS = [(row, form) for row in CLIENTS for form in row.forms]
CHANGES = (str, lambda text: text.replace("\n", "\r\n"), lambda text: "\ufeff" + text.rstrip())
PROJECTS = [row for row in CLIENTS if row.project]


def target(version: str = "1.2.3") -> InstallTarget:
    reached = LaunchEntry(
        "uvx", "/opt/uv/uvx", (f"bookshop-mcp=={version}",), ("BOOKSHOP_KEY",), literals={"LEVEL": "1"}
    )
    return InstallTarget("bookshop", reached, "index", lambda _: True, version)


def servers(client: ClientProfile, text: str) -> dict:
    data = config_edits.read(text, client.user)
    return config_edits.entries(data, config_edits.detect_layout(data, client.forms), client.user)


def line(entry: dict) -> list[str]:
    """The command line that a client makes of an entry."""
    words = entry.get("command", entry.get("cmd"))
    return words if isinstance(words, list) else [words, *entry["args"]]


def test_there_are_nineteen():
    assert len({row.id for row in CLIENTS}) == 19


@parametrize_subtests(
    "client, form, change",
    [(client, form, change) for client, form in FORMS for change in CHANGES],
    name=lambda client, form, change: f"{client.id} {'.'.join(form.container)} {CHANGES.index(change)}",
)
def test_a_server_comes_and_goes_and_every_other_byte_stays(tmp_path, client, form, change):
    home, before = home_in(tmp_path), change(config(client.user, form))
    file = give(client, home, before)

    assert install(client, target(), home).outcome == "installed"
    first = file.read_bytes().decode()
    assert is_only_more(before, first)
    assert (
        list(servers(client, first)) == ["other", "third", "bookshop"] if "third" in before else ["other", "bookshop"]
    )
    assert "bookshop-mcp==1.2.3" in str(servers(client, first)["bookshop"])

    assert install(client, target(), home).outcome == "unchanged"
    assert file.read_bytes().decode() == first

    assert install(client, target("2.0.0"), home).outcome == "updated"
    assert file.read_bytes().decode() == first.replace("1.2.3", "2.0.0")

    shutil.rmtree(home.state)  # nothing remembered: only what the file says
    assert uninstall(client, "bookshop", home).outcome == "removed"
    assert file.read_bytes().decode() == before
    assert uninstall(client, "bookshop", home).outcome == "absent"


@parametrize_subtests("client", CLIENTS, name=lambda client: client.id)
def test_a_file_that_was_not_there_is_gone_again(tmp_path, client):
    home = home_in(tmp_path)
    file, _ = client_config_path(client, home)
    install(client, target(), home)
    assert list(servers(client, file.read_text())) == ["bookshop"]
    install(client, target("2.0.0"), home)
    uninstall(client, "bookshop", home)
    assert not file.exists()


@parametrize_subtests("client", CLIENTS, name=lambda client: client.id)
def test_what_cannot_be_read_is_not_touched(tmp_path, client):
    home = home_in(tmp_path)
    for text in UNREADABLE[client.user.format]:
        file = give(client, home, text)
        with pytest.raises(ClientConfigError) as refused:
            install(client, target(), home)
        assert str(file) in str(refused.value)
        assert refused.value.hint
        with pytest.raises(ClientConfigError):
            uninstall(client, "bookshop", home)
        assert file.read_bytes() == text.encode()
    assert not home.state.exists()


@parametrize_subtests("client", CLIENTS, name=lambda client: client.id)
def test_no_secret_stands_in_the_file_and_the_program_is_named_by_its_whole_path(tmp_path, client):
    home = home_in(tmp_path)
    install(client, target(), home)
    entry = servers(client, client_config_path(client, home)[0].read_text())["bookshop"]
    assert line(entry) == ["/opt/uv/uvx", "bookshop-mcp==1.2.3"]
    variables = entry.get("env") or entry.get("envs") or entry.get("environment")
    assert variables["LEVEL"] == "1"
    if client.reference:
        assert variables["BOOKSHOP_KEY"] == client.reference.replace("VAR", "BOOKSHOP_KEY")
    elif "BOOKSHOP_KEY_FILE" in variables:
        assert variables["BOOKSHOP_KEY_FILE"] == str(home.secrets / "BOOKSHOP_KEY")
    else:
        assert ["BOOKSHOP_KEY"] in (entry.get("env_vars"), entry.get("env_keys"))


@parametrize_subtests("client", CLIENTS, name=lambda client: client.id)
def test_a_url_is_installed_or_refused_with_a_way_out(tmp_path, client):
    home, wanted = home_in(tmp_path), remote_target("https://mcp.shop.test/mcp")
    if client.forms[0].http is None:
        with pytest.raises(ClientConfigError) as refused:
            install(client, wanted, home)
        assert refused.value.hint
        return
    install(client, wanted, home)
    entry = servers(client, client_config_path(client, home)[0].read_text())["shop-test"]
    assert "https://mcp.shop.test/mcp" in entry.values()
    assert "<" not in str(entry)


@parametrize_subtests("client", CLIENTS, name=lambda client: client.id)
def test_a_token_is_a_reference_or_refused(tmp_path, client):
    home, wanted = home_in(tmp_path), remote_target("https://mcp.shop.test/mcp", variable="SHOP_TOKEN")
    if client.header is None and client.id != "codex":
        with pytest.raises(ClientConfigError) as refused:
            install(client, wanted, home)
        assert refused.value.hint
        return
    install(client, wanted, home)
    assert "SHOP_TOKEN" in client_config_path(client, home)[0].read_text()


@parametrize_subtests("client", PROJECTS, name=lambda client: client.id)
def test_a_projects_file_names_nothing_of_this_machine(tmp_path, client):
    home, project = home_in(tmp_path / "home"), tmp_path / "project"
    change = install(client, target(), home, project=project)
    text = (project / change.file).read_text()
    assert "bookshop-mcp==1.2.3" in text
    assert "/opt/uv" not in text
    assert str(tmp_path) not in text
    uninstall(client, "bookshop", home, project=project)
    assert [path for path in project.rglob("*") if path.is_file()] == []


@parametrize_subtests("client", PROJECTS, name=lambda client: client.id)
def test_a_server_of_the_project_is_started_in_the_clients_own_words_or_refused(tmp_path, client):
    home, project = home_in(tmp_path / "home"), tmp_path / "project"
    reached = LaunchEntry(
        "mcpfactory", "/opt/python", ("run", "bookshop", "--workspace", f"{PROJECT}/all"), before=("-m", "mcpfactory")
    )
    wanted = InstallTarget("bookshop", reached, "source", lambda _: True)
    if client.folder is None:
        with pytest.raises(ClientConfigError) as refused:
            install(client, wanted, home, project=project)
        assert "--from index" in refused.value.hint
        assert not project.exists()
        return
    change = install(client, wanted, home, project=project)
    assert change.entry is not None
    assert line(dict(change.entry)) == ["mcpfactory", "run", "bookshop", "--workspace", f"{client.folder}/all"]
    assert "PATH" in change.todo[0]


@pytest.mark.parametrize("shared", [False, True], ids=["the user's", "a project's"])
def test_a_file_that_others_may_read_is_for_its_owner_once_a_secret_is_in_it(tmp_path, shared):
    client, home = next(row for row in CLIENTS if row.project), home_in(tmp_path / "home")
    project = tmp_path if shared else None
    file = give(client, home, "{}", project)
    file.chmod(0o644)
    install(client, target(), home, project=project)
    assert file.stat().st_mode & 0o777 == 0o644
    secret = LaunchEntry("uvx", "/opt/uv/uvx", ("bookshop-mcp",), (), literals={"BOOKSHOP_TOKEN": "ghp_" + "aB3" * 12})
    change = install(client, InstallTarget("bookshop", secret, "index", lambda _: True, "2"), home, project=project)
    assert file.stat().st_mode & 0o777 == 0o600
    assert "readable only by its owner" in change.todo[-1]
    again = install(client, InstallTarget("bookshop", secret, "index", lambda _: True, "3"), home, project=project)
    assert all("readable only by its owner" not in one for one in again.todo)


def test_what_a_person_added_to_an_entry_stays_when_the_version_changes(tmp_path):
    client = next(row for row in CLIENTS if row.id == "cline")
    home = home_in(tmp_path)
    file = client_config_path(client, home)[0]
    install(client, target(), home)
    text = file.read_text().replace('"disabled": false', '"disabled": true,\n      "autoApprove": ["list_books"]')
    file.write_text(text.replace('"LEVEL": "1"', '"LEVEL": "1",\n        "MINE": "2"'))
    install(client, target("2.0.0"), home)
    entry = servers(client, file.read_text())["bookshop"]
    assert (entry["disabled"], entry["autoApprove"], entry["env"]["MINE"]) == (True, ["list_books"], "2")
    assert entry["args"] == ["bookshop-mcp==2.0.0"]


def test_what_the_file_was_is_kept_for_its_owner_only(tmp_path):
    client, home = CLIENTS[0], home_in(tmp_path)
    file = give(client, home, '{"mine": "secret"}')
    file.chmod(0o600)
    change = install(client, target(), home)
    kept = tmp_path / str(change.kept)
    assert kept.read_text() == '{"mine": "secret"}'
    assert kept.stat().st_mode & 0o077 == 0
    assert file.stat().st_mode & 0o777 == 0o600
    for number in range(15):
        install(client, target(f"{number}.0"), home)
    assert len(backups(file, home)) == 10


def test_a_link_stays_a_link(tmp_path):
    client, home = CLIENTS[1], home_in(tmp_path)
    real = tmp_path / "dotfiles.json"
    real.write_text("{}\n")
    (tmp_path / ".claude.json").symlink_to(real)
    install(client, target(), home)
    assert (tmp_path / ".claude.json").is_symlink()
    assert "bookshop" in real.read_text()


def test_a_dry_run_changes_nothing(tmp_path):
    home = home_in(tmp_path)
    assert install(CLIENTS[0], target(), home, dry_run=True).outcome == "installed"
    assert list(tmp_path.iterdir()) == []
