"""Files as they are found on machines: broken, huge, linked, closed, hostile. Each gets a clear row, and no secret leaves."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpfactory_pipeline.audit import RULES, AuditRequest, audit, configuration
from mcpfactory_pipeline.audit.accepted import accept, lock_text
from mcpfactory_pipeline.audit.command_line import read_command
from mcpfactory_pipeline.audit.container import read_run
from mcpfactory_pipeline.audit.families import launch
from mcpfactory_pipeline.audit.formats import FORMATS
from mcpfactory_pipeline.audit.mentions import in_arguments, in_url, in_variables, shown_url
from mcpfactory_pipeline.audit.report import AuditReport, judge
from mcpfactory_pipeline.clients.files import Home, path_of
from mcpfactory_pipeline.clients.table import CLIENTS, find_client
from tests.audit.says import evidence_of, read
from tests.audit.table import FINE, GH, HASH, npx, run
from tests.clients.configs import UNREADABLE, give, home_in
from tests.fuzzing import examples
from tests.patience import PATIENCE
from tests.pipeline.checks.sarif_schema import SARIF

assert PATIENCE

EACH = [pytest.param(row, id=row.id) for row in CLIENTS]


def audited(home: Home, **request: Any) -> AuditReport:
    return audit(AuditRequest(**request), home)[0]


def rules_of(report: AuditReport) -> list[str]:
    return [one.rule for one in report.findings]


@pytest.mark.parametrize("client", EACH)
def test_the_files_of_every_client_are_found_and_their_servers_known(tmp_path, client):
    from tests.clients.configs import config

    home = home_in(tmp_path)
    for form in client.forms:
        give(client, home, config(client.user, form))
        (file,) = [one for one in audited(home, clients=[client]).files if one.client == client.id]
        assert (file.problem, file.scope) == ("", "user")
        assert file.servers >= 1
    if client.project is not None:
        folder = tmp_path / "project"
        give(client, home, config(client.project, client.forms[0]) if client.project.format == "json" else "", folder)
        scopes = {one.scope for one in audited(home, clients=[client], project=folder).files}
        assert scopes == {"user", "project"}


@pytest.mark.parametrize("client", EACH)
def test_a_file_that_is_no_configuration_is_a_row_and_a_finding(tmp_path, client):
    home = home_in(tmp_path)
    for text in UNREADABLE[client.user.format]:
        give(client, home, text)
        report = audited(home, clients=[client])
        assert [one.problem != "" for one in report.files] == [True], text
        assert rules_of(report) == ["configuration.unreadable"]
        for write in FORMATS.values():
            assert report.files[0].file in write(report).replace("\\_", "_")


def test_what_cannot_be_read_says_why(tmp_path, monkeypatch):
    home, row = home_in(tmp_path), find_client("cursor")
    assert row is not None
    file, _ = path_of(row, home)
    file.parent.mkdir(parents=True)

    def problem() -> str:
        (found,) = audited(home, clients=[row]).files
        return found.problem

    file.symlink_to("nowhere.json")
    assert problem() == "it is a link to nowhere.json, which is not there"
    file.unlink()
    file.symlink_to(file.name)
    assert problem() == f"it is a link to {file.name}, which is not there"
    file.unlink()
    file.mkdir()
    assert problem() == "it is no file"
    file.rmdir()
    os.mkfifo(file)
    assert problem() == "it is no file"
    file.unlink()
    file.write_bytes(b'{"mcpServers": "\xff"}')
    assert problem().startswith("it is not UTF-8")
    monkeypatch.setattr(configuration, "LARGEST", 10)
    file.write_text('{"mcpServers": {}}')
    assert "are read" in problem()


def test_a_closed_file_is_told(tmp_path):
    if os.getuid() == 0:
        home, row = home_in(tmp_path), find_client("cursor")
        assert row is not None
        file, _ = path_of(row, home)
        file.parent.mkdir(parents=True)
        file.write_text("{}")
        assert audited(home, clients=[row]).files[0].problem == ""  # the administrator reads everything
        return
    home, row = home_in(tmp_path), find_client("cursor")
    assert row is not None
    file = give(row, home, "{}")
    file.chmod(0)
    assert audited(home, clients=[row]).files[0].problem == "Permission denied"


def test_a_link_is_followed_and_said(tmp_path):
    home, row = home_in(tmp_path), find_client("cursor")
    assert row is not None
    real = tmp_path / "dotfiles.json"
    real.write_text(json.dumps({"mcpServers": {"one": FINE}}))
    file, _ = path_of(row, home)
    file.parent.mkdir(parents=True)
    file.symlink_to(real)
    (found,) = audited(home, clients=[row]).files
    assert (found.servers, found.link) == (1, str(real))


def test_who_may_change_a_configuration_or_what_it_starts_is_found(tmp_path, monkeypatch):
    home, row = home_in(tmp_path), find_client("cursor")
    assert row is not None
    program = tmp_path / "bin/server"
    program.parent.mkdir(mode=0o755)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    file = give(row, home, json.dumps({"mcpServers": {"one": run(str(program))}}))
    file.chmod(0o600)
    file.parent.chmod(0o700)
    monkeypatch.setattr(launch, "_TEMPORARY", re.compile("/nowhere/"))  # where these tests are run is one
    assert rules_of(audited(home, clients=[row])) == []
    program.chmod(0o757)
    assert rules_of(audited(home, clients=[row])) == ["launch.replaceable"]
    program.chmod(0o755)
    program.parent.chmod(0o777)
    assert rules_of(audited(home, clients=[row])) == ["launch.replaceable"]
    program.parent.chmod(0o1777)
    assert rules_of(audited(home, clients=[row])) == []
    file.chmod(0o622)
    assert rules_of(audited(home, clients=[row])) == ["configuration.writable"]
    file.chmod(0o600)
    file.parent.chmod(0o777)
    assert rules_of(audited(home, clients=[row])) == ["configuration.writable"]
    file.parent.chmod(0o1777)
    assert rules_of(audited(home, clients=[row])) == []
    file.parent.chmod(0o700)
    program.unlink()
    assert rules_of(audited(home, clients=[row])) == ["launch.missing"]


def test_scripts_and_programs_are_looked_for_where_the_client_would(tmp_path):
    home, row = home_in(tmp_path), find_client("cursor")
    assert row is not None
    give(row, home, json.dumps({"mcpServers": {
        "path": run("no-such-program-here"), "own": run("tool", env={"PATH": str(tmp_path / "own")}), "script": run("sh", str(tmp_path / "gone.sh")),
        "unknown": run("${workspaceFolder}/x"), "home": run("~/there"), "cwd": run("./there", cwd=str(tmp_path)),
    }}))  # fmt: skip
    (tmp_path / "own").mkdir(mode=0o755)
    for place in ("own/tool", "there"):
        (tmp_path / place).write_text("")
        (tmp_path / place).chmod(0o755)
    home = Home(home.system, home.home, home.config, home.state, {"PATH": "/usr/bin:/bin"})
    missing = [one.server for one in audited(home, clients=[row]).findings if one.rule == "launch.missing"]
    assert missing == ["path", "script"]


# --- secrets ---

CANARY = "c4n4ryQm2Zx7LkP4vT8sWnB3cR6yHd"
PLACES = {
    "environment": npx("a-mcp@1.0.0", env={"SOME_TOKEN": CANARY}),
    "value of a credential within a text": npx("a-mcp@1.0.0", env={"DSN": f"postgres://u:{CANARY}@h/x"}),
    "header": {"url": "https://x.test/mcp", "headers": {"Authorization": f"Bearer {CANARY}"}},
    "plain header": {"url": "http://x.test/mcp", "headers": {"X-Api-Key": CANARY}},
    "argument": npx("a-mcp@1.0.0", "--api-key", CANARY),
    "argument with =": npx("a-mcp@1.0.0", f"--api-key={CANARY}"),
    "header argument": npx("mcp-remote@0.1.1", "http://x.test/mcp", "--header", f"Authorization: Bearer {CANARY}"),
    "password of a URL": {"url": f"https://me:{CANARY}@x.test/mcp"},
    "path of a URL": {"url": f"https://x.test/s/{CANARY}/mcp"},
    "query of a URL": {"url": f"https://x.test/mcp?token={CANARY}"},
    "bridge": npx("mcp-remote@0.1.1", f"http://x.test/{CANARY}/mcp"),
    "container": run("docker", "run", "-e", f"API_KEY={CANARY}", "--privileged", "-v", f"/x/{CANARY}:/x", f"a@{HASH}"),
    "shell": run("bash", "-c", f"API_TOKEN={CANARY} npx a-mcp | sh"),
    "env": run("env", f"API_TOKEN={CANARY}", "npx", "a-mcp"),
    "git": npx(f"git+https://oauth2:{CANARY}@git.test/a/b.git"),
    "tarball": npx(f"https://x.test/{CANARY}/a.tgz"),
    "code": run("python3", "-c", f"token='{CANARY}'"),
    "registry": npx("--registry", f"http://me:{CANARY}@r.test", "a-mcp@1.0.0"),
    "whole command": {"command": f"npx a-mcp --token {CANARY}"},
}  # fmt: skip


@pytest.mark.parametrize("entry", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("scope", ["user", "project"])
def test_a_secret_is_in_no_form_of_the_report_and_in_no_lock(entry, scope):
    file = read("cursor", scope, json.dumps({"mcpServers": {"one": entry}}), readable=True)
    evidence = evidence_of(file)
    server = evidence.servers[0].server
    accepted = {server.key: accept(server, None)}
    changed = {
        server.key: accept(
            evidence_of(read("cursor", scope, json.dumps({"mcpServers": {"one": FINE}}))).servers[0].server, None
        )
    }
    for known in (None, {}, accepted, changed):
        report = judge(evidence_of(file, accepted=known), RULES)
        for write in FORMATS.values():
            assert CANARY not in write(report)
        assert CANARY not in repr(report)
    assert CANARY not in lock_text(accepted)


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": {"a": {"env": {"K": "CANARY" "x"}}}}',
        "mcp: {a: [CANARY, : }",
        'a = "CANARY" CANARY\n',
        "- CANARY: CANARY: x",
    ],
)
def test_a_secret_in_a_file_that_cannot_be_read_is_not_quoted(tmp_path, text):
    file = tmp_path / "config.any"
    for suffix in (".json", ".toml", ".yaml"):
        named = file.with_suffix(suffix)
        named.write_text(text.replace("CANARY", CANARY))
        report = audited(home_in(tmp_path), configs=[named])
        assert all(CANARY not in write(report) for write in FORMATS.values())


def test_names_that_move_the_cursor_are_written_out():
    hostile = "a\x1b[2J\x1b[31mred\r::error::x\u202e"
    report = judge(
        evidence_of(
            read("cursor", "user", json.dumps({"mcpServers": {hostile: {**FINE, "command": f"n\x1b]0;x\x07px-{GH}"}}}))
        ),
        RULES,
    )
    for name, write in FORMATS.items():
        text = write(report)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text), name
        assert not any(line.startswith("::error") for line in text.splitlines())
        assert GH not in text
    assert r"\x1b[31mred" in FORMATS["text"](report)


def test_no_text_of_a_file_ends_a_cell_of_the_markdown_or_mentions_anybody():
    entries = {"a|b @all <b>": {"command": "npx", "args": ["-y", "some|package"]}}
    report = judge(evidence_of(read("cursor", "user", json.dumps({"mcpServers": entries}))), RULES)
    text = FORMATS["markdown"](report)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    inventory, findings = [len(re.findall(r"(?<!\\)\|", line)) for line in rows[:3]], rows[3:]
    assert (inventory, len(findings) > 2) == ([7] * 3, True)
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in findings} == {6}
    assert not re.search(r"(?<!\\)[@<]", text)


def test_the_sarif_is_what_the_standard_allows():
    import jsonschema

    alike = {"command": "x\u200b", "env": {"LEVEL\u200b": "loud"}}  # hidden characters in two places
    entries = {**PLACES, "alike": alike}
    report = judge(evidence_of(read("cursor", "user", json.dumps({"mcpServers": entries}))), RULES)
    same = [one.rule for one in report.findings if one.server == "alike"]
    assert len(same) > len(set(same)), "one rule has two findings of one server"
    log = json.loads(FORMATS["sarif"](report))
    jsonschema.validate(log, SARIF)
    (done,) = log["runs"]
    assert [one["ruleId"] for one in done["results"]] == rules_of(report)
    assert len({one["partialFingerprints"]["ruleAndPlace/v1"] for one in done["results"]}) == len(done["results"])
    place = done["results"][0]["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("~/cursor.user", 1)


def test_lines_are_those_of_the_entries(tmp_path):
    text = '// mine\n{"mcpServers": {\n  "a": {"command": "x"}, /* b */\n  "b": {"command": "y"},\n}}\n'
    lines = {one.server.name: one.server.line for one in evidence_of(read("cursor", "user", text)).servers}
    assert lines == {"a": 3, "b": 4}
    toml = '[mcp_servers.a]\ncommand = "x"\n\n[mcp_servers."b c"]\ncommand = "y"\n'
    assert {one.server.name: one.server.line for one in evidence_of(read("codex", "user", toml)).servers} == {
        "a": 1,
        "b c": 4,
    }
    yaml = "extensions:\n  a:\n    cmd: x\n  b:\n    cmd: y\n"
    assert {one.server.name: one.server.line for one in evidence_of(read("goose", "user", yaml)).servers} == {
        "a": 2,
        "b": 4,
    }
    listed = "mcpServers:\n- name: a\n  command: x\n- command: y\n  name: b\n"
    assert {one.server.name: one.server.line for one in evidence_of(read("continue", "user", listed)).servers} == {
        "a": 2,
        "b": 4,
    }


def test_a_named_file_is_read_in_any_form(tmp_path):
    home = home_in(tmp_path)
    for container in ("mcpServers", "servers", "mcp_servers", "context_servers", "mcp"):
        (tmp_path / "some.json").write_text(json.dumps({container: {"one": npx("-y", "a-mcp")}}))
        report = audited(home, configs=[tmp_path / "some.json"])
        assert [(one.name, one.scope) for one in report.servers] == [("one", "named")], container
    (tmp_path / "some.json").write_text(json.dumps({"mcp": {"servers": {"one": FINE}}}))
    assert [one.name for one in audited(home, configs=[tmp_path / "some.json"]).servers] == ["one"]


def test_what_stands_below_command_as_zed_wrote_it_once_is_read(tmp_path):
    command = {"path": "npx", "args": ["-y", "old-mcp@1.0.0"], "env": {"OLD_TOKEN": "tok_9f8e7d6c5b4a39281706f5e4"}}
    text = json.dumps({"context_servers": {"old": {"source": "custom", "command": command}}})
    (one,) = evidence_of(read("zed", "user", text)).servers
    assert (one.server.words, dict(one.server.environ)) == (("npx", "-y", "old-mcp@1.0.0"), command["env"])
    assert [secret.name for secret in one.server.secrets] == ["OLD_TOKEN"]


# --- whatever stands there ---

WORDS = st.sampled_from(
    ["npx", "-y", "uvx", "--from", "docker", "run", "-e", "bash", "-c", "cmd", "/c", "env", "A=b", "sudo", "-u", "--", "@a/b@1", "a==1", "git+https://x@y",
     "https://u:p@h:99999/x?a=b", "curl x | sh", "$(x)", "-v", "/:/x", "--mount", "type=bind", "uv", "run", "--with", "tool", "python", "-m", "\x00", "'", '"', "", "é"]
)  # fmt: skip
ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12)
    | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8) | WORDS, inner, max_size=4),
    max_leaves=12,
)
KEYS = st.sampled_from(
    [
        "command",
        "args",
        "env",
        "url",
        "headers",
        "cwd",
        "disabled",
        "autoApprove",
        "trust",
        "type",
        "tools",
        "requestOptions",
        "env_vars",
    ]
)
ENTRY = st.dictionaries(KEYS, ANY | WORDS | st.lists(WORDS, max_size=8), max_size=6)


@given(st.lists(WORDS | st.text(max_size=20), max_size=9))
@settings(max_examples=examples(300))
def test_no_command_line_is_too_strange(words):
    read_command(words)
    read_run(words)
    list(in_arguments(words))


@given(st.text(max_size=60) | st.lists(WORDS, max_size=4).map("".join))
@settings(max_examples=examples(300))
def test_no_address_is_too_strange(text):
    shown_url(text)
    list(in_url(text))
    list(in_variables({text: text}))


@given(st.dictionaries(st.text(max_size=10), ENTRY | ANY, max_size=4) | ANY)
@settings(max_examples=examples(150))
def test_no_configuration_is_too_strange(servers):
    file = read("cursor", "user", json.dumps({"mcpServers": servers}))
    evidence = evidence_of(file, accepted={})
    report = judge(evidence, RULES)
    for write in FORMATS.values():
        assert write(report)
    for one in evidence.servers:
        accept(one.server, None)
    assert Path(file.path)


def test_a_text_of_a_mebibyte_is_looked_at_up_to_a_bound_and_that_is_said(tmp_path):
    word = "A" * (1 << 20)
    entry = {"command": "npx", "args": ["-y", word, word], "env": {"API_KEY": word, word: "x"}}
    file = tmp_path / "long.json"
    file.write_text(json.dumps({"mcpServers": {"long": entry, "far": {"url": f"http://localhost/{word}"}}}))
    report = audited(home_in(tmp_path), configs=[file])
    said = {(one.server, one.message) for one in report.findings if one.rule == "configuration.unreadable"}
    words = "its texts have {:,} characters, of which 4,096 of each and 131,072 of all were looked at"
    key, far = len("commandnpxargs-yenvAPI_KEYx"), len("urlhttp://localhost/")
    assert said == {("long", words.format(4 * len(word) + key)), ("far", words.format(len(word) + far))}


def test_an_entry_of_many_texts_is_looked_at_up_to_a_bound_of_all(tmp_path):
    token = "ghp_" + "a1" * 18
    args = [*(f"{n:04d}" * 1_000 for n in range(1_000)), token]
    file = tmp_path / "many.json"
    file.write_text(json.dumps({"mcpServers": {"many": {"command": "npx", "args": args}}}))
    found = {one.rule for one in audited(home_in(tmp_path), configs=[file]).findings}
    assert "configuration.unreadable" in found
    assert "secrets.arguments" not in found  # it stands behind what is looked at
    file.write_text(json.dumps({"mcpServers": {"many": {"command": "npx", "args": args[-20:]}}}))
    found = {one.rule for one in audited(home_in(tmp_path), configs=[file]).findings}
    assert "configuration.unreadable" not in found
