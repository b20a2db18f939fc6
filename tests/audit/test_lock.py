"""What a lock of an audit holds: what names something, and digests, and no value that somebody may have to keep to themselves."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from mcpfactory_pipeline.audit.accepted import accept, lock_key, lock_text
from mcpfactory_pipeline.audit.formats import FORMATS
from mcpfactory_pipeline.audit.inventory import sections
from mcpfactory_pipeline.clients import jsonc
from tests.audit.says import evidence_of, read, report_of, said
from tests.machine import needs
from tests.patience import PATIENCE

VALUE = "q7Zx81kLmN0pRtUvWxYz2Bc4De6Fg8Hj"
GH = "ghp_" + "9Qm2Zx7LkP4vT8sWnB3cR6yHdJ5fG1aUeK0o"

# An entry, and the rule that names what is in it.
ENTRIES = {
    "json": ({"command": "npx", "args": ["-y", "a-mcp@1.0.0", "/etc/hostname", "--config", json.dumps({"apiKey": VALUE})]}, "secrets.arguments"),
    "short option": ({"command": "./serve", "args": ["-p", VALUE]}, "secrets.arguments"),
    "container": ({"command": "docker", "args": ["run", "-e", f"PW={VALUE}", "acme/a:1.0"]}, "secrets.environment"),
    "short variable": ({"command": "./serve", "args": ["--config", json.dumps({"apiKey": VALUE})], "env": {"PASSWORD": "1"}}, "secrets.arguments"),
    "json in a variable": ({"command": "./serve", "env": {"HEADERS": json.dumps({"Authorization": f"Bearer {VALUE}"})}}, "secrets.environment"),
    "behind the hash": ({"url": f"https://x.test/mcp#token={GH}"}, "secrets.url"),
    "query": ({"url": f"https://x.test/mcp?api_key={VALUE}"}, "secrets.url"),
    "name of a variable": ({"command": "./serve", "env": {GH: "on"}}, "secrets.settings"),
    "positional": ({"command": "./serve", "args": ["hunter22", VALUE]}, ""),
    "begins like the package": ({"command": "npx", "args": ["-y", "acme", f"acme-{VALUE}"]}, ""),
    "shell": ({"command": "bash", "args": ["-c", f"exec ./serve {VALUE}"]}, ""),
}  # fmt: skip


def entries(entry: dict, name: str = "one") -> str:
    return json.dumps({"mcpServers": {name: entry}})


def locked(text: str) -> str:
    evidence = evidence_of(read("cursor", "user", text))
    return lock_text({lock_key(one.server): accept(one.server, None) for one in evidence.servers})


@pytest.mark.parametrize("what", ENTRIES)
def test_no_value_is_in_a_lock_and_each_secret_is_a_finding(what):
    entry, rule = ENTRIES[what]
    text = entries(entry)
    for value in (VALUE, GH, "hunter22", "1kLmN0"):
        assert value not in locked(text)
    report = report_of(read("cursor", "user", text))
    found = {one.rule for one in report.findings}
    assert not rule or rule in found, found
    assert VALUE not in json.dumps(report.to_json())
    assert GH not in json.dumps(report.to_json())


# A word in which a value is glued to its option, and how a lock has it: `#` stands for the digest.
GLUED = {
    "-pTr0ub4dor3xQ9kLz7": "-p#", "-kTr1ub4dor3xQ9kLz7": "-k#", "/pTr0ub4dor3xQ9kLz7": "#", "-DPASSWORD=Tr0ub4dor3xQ9kLz7": "-D#",
    "-pTr0ub4dor3xQ9==": "-p#", "Tr0ub4dor3xQ9kLz7==": "#", "TR0UB4DOR3XQ9KLZ7=": "#", "Tr0ub=x": "#", "--token=Tr0ub4dor3xQ9kLz7": "--token=…", "--mode=Tr0ub": "--mode=#",
    "-I/opt/Tr0ub": "-I#", "-pTr0ub\nx": "-p#", "-p1": "-p#", "-rf": "-rf", "-y": "-y", "-e=Tr0ub": "-e=#", "PW=Tr0ub": "PW=…", "pw=Tr0ub": "pw=…", "a=Tr0ub": "a=#",
}  # fmt: skip


@pytest.mark.parametrize("word", GLUED)
def test_what_is_glued_to_an_option_is_a_digest_and_another_one_is_noticed(word):
    def command(word: str) -> str:
        text = locked(entries({"command": "./serve", "args": [word, "-u", "root"]}))
        return json.loads(text)["servers"]["cursor/user/one"]["command"]

    shown = command(word).removeprefix("./serve ").partition(" -u ")[0]
    assert re.sub(r"#[0-9a-f]{16}", "#", shown) == GLUED[word]
    known = bool(report_of(read("cursor", "user", entries({"command": "./serve", "args": [word]}))).servers[0].secrets)
    assert (command(word) == command(f"{word[:-1]}0")) == known  # of what is known as a secret there is no digest


@pytest.mark.parametrize("word", [f"-p{VALUE}", f"/p{VALUE}"])
def test_a_token_glued_to_an_option_is_a_finding_and_in_no_report(word):
    report = report_of(read("cursor", "user", entries({"command": "./serve", "args": [word]})))
    assert "secrets.arguments" in {one.rule for one in report.findings}
    for form, write in FORMATS.items():
        assert VALUE not in write(report), form
    assert "…" not in locked(entries({"command": "./serve", "args": ["-Xmx2048m", "-DskipTests=true", "/opt/data"]}))


def test_what_looks_like_a_folder_and_is_an_option_with_its_value_is_not_shown():
    args = ["/pTr0ub4dor3xQ9", "--at=/pTr0ub4dor3xQ9", "/data2024", "/Users/me/A1b2c3d4", "/srv/pTr0ub4dor3xQ9", "/opt"]
    report = report_of(read("cursor", "user", entries({"command": "./serve", "args": args})))
    assert report.servers[0].folders == ("/p…", "/p…", *args[2:])


def test_a_token_in_the_name_of_a_server_is_a_finding_and_a_digest_in_the_lock():
    text = entries({"command": "./serve"}, GH)
    assert GH not in locked(text)
    assert "secrets.settings" in {one.rule for one in report_of(read("cursor", "user", text)).findings}
    known = {
        lock_key(one.server): accept(one.server, None) for one in evidence_of(read("cursor", "user", text)).servers
    }
    assert not said(report_of(read("cursor", "user", text), accepted=known)).get("…", set()) & {"accepted.new"}


@pytest.mark.parametrize("behind", ["", "-x", "_x", "/y"])
@pytest.mark.parametrize("before", ["", "c-", "a_b-", "_", "x.", "/", "a/b:", "srv ", "srv", "9", "é"])
def test_a_token_in_a_name_is_in_no_report_whatever_stands_around_it(before, behind):
    report = report_of(read("cursor", "user", entries({"command": "./serve"}, f"{before}{GH}{behind}")))
    for form, write in FORMATS.items():
        assert GH not in write(report), form
    assert "secrets.settings" in {one.rule for one in report.findings}


@pytest.mark.parametrize("before", ["", "c-", "_", "x.", "a/b:", "srv", "9", "é", "eyJ-", "Bearer "])
def test_a_json_web_token_is_in_no_report_whatever_stands_before_it(before):
    token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVPmB92K27uhbUJU1p1r"
    as_argument = entries({"command": "./serve", "args": [f"{before}{token}"]})
    as_name = entries({"command": "./serve"}, f"{before}{token}/y")
    for text, rule in ((as_argument, "secrets.arguments"), (as_name, "secrets.settings")):
        report = report_of(read("cursor", "user", text))
        for form, write in FORMATS.items():
            assert not [part for part in token.split(".") if part in write(report)], (rule, form)
        assert rule in {one.rule for one in report.findings}


READ = """
import json, resource, sys
from tests.audit.test_lock import entries, read, report_of
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
names = [unit * 60_000 + end for unit in json.loads(sys.argv[1]) for end in ("", ".x", ".aaaaaaaa.")]
for name in names:
    assert len(report_of(read("cursor", "user", entries({"command": "./serve"}, name))).servers) == 1
"""


@needs("linux")
@pytest.mark.parametrize("unit", ["eyJ", "eyJ-", "eyJaaaaaaaa.", "ghp_", "sk-"])
def test_a_name_of_many_beginnings_of_tokens_is_read_once(unit):
    """It takes a second or two; what is read to its end from each of them meets the limit of the processor's time, which ends it."""
    subprocess.run([sys.executable, "-c", READ, json.dumps([unit])], check=True, timeout=PATIENCE)


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ([f"--token\n{VALUE}", "next word"], "token"),
        ([f"--token {VALUE}"], "token"),
        ([f"--token\u2028{VALUE}", "next"], "token"),
        ([f"--token\n{VALUE}=Zx9Kq2Lm8p"], "token"),
        ([f"-ptoken{VALUE}", "Zx9Kq2Lm8p"], "p"),
        ([f"-ptoken{VALUE}=Zx9Kq2Lm8p"], "p"),
        (["--config", json.dumps({f"token\n{VALUE}": "Zx9Kq2Lm8p"})], "token"),
        ([f"https://x.test/?token%0A{VALUE}=Zx9Kq2Lm8p"], "argument 2: parameter token"),
        (["--api-key", VALUE], "api-key"),
        (["-apiKey", VALUE], "apiKey"),
        ([f"API_KEY={VALUE}"], "API_KEY"),
    ],
)
def test_what_is_called_the_name_of_an_option_is_a_name(args, named):
    text = entries({"command": "./serve", "args": args})
    report = report_of(read("cursor", "user", text))
    assert [one["name"] for one in report.servers[0].secrets] == [named]
    for form, write in FORMATS.items():
        assert VALUE not in write(report), form
    assert VALUE not in locked(text)


def test_names_that_only_look_like_tokens_are_shown():
    names = ["task-management-server-2024", "disk-usage-of-all-machines-1", "risk-assessment-of-portfolios-2", "ghp_", "c-ghp_xxxxxxxxxxxxxxxxxxxx1", "my-server-2024-11-28-for-tests"]  # fmt: skip
    report = report_of(
        read("cursor", "user", json.dumps({"mcpServers": {name: {"command": "./serve"} for name in names}}))
    )
    assert [row.name for row in report.servers] == names


def test_what_names_something_stays_in_clear():
    entry = {
        "command": "npx",
        "args": ["-y", "@acme/a-mcp@1.0.0", "--root", "/home/me", "--mode=fast", "https://x.test/mcp"],
    }
    command = json.loads(locked(entries(entry)))["servers"]["cursor/user/one"]["command"].split()
    assert command[:4] == ["npx", "-y", "@acme/a-mcp@…", "--root"]
    assert command[4].startswith("#")
    assert command[5].startswith("--mode=#")
    assert command[6] == "https://x.test/mcp"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"command": "./serve", "args": ["--root", "/a"]}, {"command": "./serve", "args": ["--root", "/b"]}),
        ({"command": "./serve", "args": ["--mode=a"]}, {"command": "./serve", "args": ["--mode=b"]}),
        ({"command": "bash", "args": ["-c", "./serve"]}, {"command": "bash", "args": ["-c", "./serve; ./more"]}),
        ({"url": "https://x.test/mcp?page=a"}, {"url": "https://x.test/mcp?page=b"}),
        ({"url": "https://x.test/mcp#a"}, {"url": "https://x.test/mcp#b"}),
        ({"command": "./serve"}, {"command": "./server"}),
    ],
)  # fmt: skip
def test_another_value_is_noticed_by_its_digest(before, after):
    known = {
        lock_key(one.server): accept(one.server, None)
        for one in evidence_of(read("cursor", "user", entries(before))).servers
    }
    for entry, rules in ((before, set()), (after, {"accepted.command"})):
        found = said(report_of(read("cursor", "user", entries(entry)), accepted=known)).get("one", set())
        assert {one for one in found if one.startswith("accepted.")} == rules


def test_a_value_of_one_letter_takes_nothing_out_of_other_texts():
    text = entries({"command": "npx", "args": ["-y", "a-mcp@1.0.1", "--v1"], "env": {"PASSWORD": "1"}})
    row = report_of(read("cursor", "user", text)).servers[0]
    assert (row.target, row.version) == ("a-mcp", "1.0.1")
    kept = json.loads(locked(text))["servers"]["cursor/user/one"]
    assert (kept["command"], kept["version"]) == ("npx -y a-mcp@… --v1", "1.0.1")


def test_an_argument_that_is_no_text_is_no_package():
    report = report_of(read("cursor", "user", entries({"command": "npx", "args": ["-y", ["x"], {"a": 1}, None]})))
    assert not [one.message for one in report.findings if "['x']" in one.message or "None" in one.message]


LARGE = {
    "secrets": lambda at: {"command": "npx", "args": ["-y", "a-mcp@1.0.0"], "env": {"API_KEY": f"{VALUE}{at:05}"}},
    "names": lambda at: {"command": "npx", "args": ["-y", f"@a{at:05}/b-mcp@1.0.0"]},
    "no servers": lambda _at: {"args": []},
    "long texts": lambda _at: {"command": "x", "args": ["y" * 5_000]},
}


def one_after_the_other(count: int, shape: str) -> str:
    pairs = [f'"s{at}": {json.dumps(LARGE[shape](at))}' for at in range(count)]
    return '{"mcpServers": {\n' + ",\n".join(pairs) + "\n}}"


@pytest.mark.parametrize("shape", LARGE)
def test_twice_as_many_servers_are_twice_the_work(shape):
    def work(count: int) -> int:
        file = read("cursor", "user", one_after_the_other(count, shape))
        calls = 0

        def count_call(_frame: object, event: str, _arg: object) -> None:
            nonlocal calls
            calls += event in {"call", "c_call"}

        sys.setprofile(count_call)
        try:
            report_of(file)
        finally:
            sys.setprofile(None)
        return calls

    work(10)
    once, more = work(150), work(300)
    assert more - 2 * once < 10 * 300, (once, more)  # what each server costs more because there are others


class Counted(str):
    """A text that knows how many of its characters were looked at to count line ends."""

    looked = 0

    def count(self, what: str, start: int = 0, end: int = sys.maxsize) -> int:
        self.looked += min(end, len(self)) - start
        return super().count(what, start, end)


def test_each_line_of_a_file_is_counted_once():
    text = Counted(one_after_the_other(300, "no servers"))
    assert jsonc.lines(text, ["mcpServers"])[-1] == ("s299", 301)
    assert 0 < text.looked <= len(text)
    text = Counted("".join(f'[mcp_servers.s{at}]\ncommand = "x"\n' for at in range(300)))
    (section,) = sections(replace(read("codex", "user", text), text=text))
    assert section.line("s299") == 599
    assert 0 < text.looked <= len(text)


def test_a_name_that_stands_there_a_thousand_times_is_told_in_one_line():
    pairs = ",\n".join('"s": {"command": "x"}' for _ in range(1_000))
    report = report_of(read("cursor", "user", '{"mcpServers": {\n' + pairs + "}}"))
    (found,) = (one for one in report.findings if one.rule == "configuration.repeated-name")
    assert found.line == 1_001
    assert found.message.startswith("'s' is there 1000 times, in lines 2, 3, ")
    assert found.message.endswith(", 21 and 980 more: the last one counts")
