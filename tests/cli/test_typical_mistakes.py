"""What people get wrong, a row for each mistake: the exit code, and the words that say what is wrong and what to do.

No mistake of a person ends as a mistake of mcpfactory (exit 70), and none shows a traceback.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.conftest import BOOKSHOP, InProcessCli
from tests.cli.recorded_workspaces import contents, finish, make, stage
from tests.subtest_table import parametrize_subtests

DOCUMENT = str(BOOKSHOP / "openapi.yaml")
NEW = f"new --from-openapi {DOCUMENT}"
CONFIG, SHOP = "mcpfactory.toml", "servers/shop/mcpfactory.toml"
Change = Callable[[Path], None]


def written(path: str, text: str | bytes) -> Change:
    """A file with that content, in place of what was there."""

    def change(root: Path) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text if isinstance(text, bytes) else text.encode())

    return change


def added(path: str, text: str) -> Change:
    """Text at the end of a file."""

    def change(root: Path) -> None:
        (root / path).write_text((root / path).read_text() + text)

    return change


def moved(old: str, new: str) -> Change:
    """A folder that somebody renamed."""
    return lambda root: (root / old).rename(root / new) and None


@dataclass(frozen=True)
class Mistake:
    """What is typed, after a change to the workspace; how it ends, and what is said."""

    typed: str
    code: int
    said: tuple[str, ...]
    change: Change | None = None
    place: str = ""

    @property
    def id(self) -> str:
        return self.typed.replace(DOCUMENT, "DOC")


def _(typed: str, code: int, *said: str, change: Change | None = None, place: str = "") -> Mistake:
    return Mistake(typed, code, said, change, place)


MISTAKES = (
    # the command line
    _("pipline status", 2, "No such command 'pipline'", "'pipeline'"),
    _("release", 2, "Missing command", "mcpfactory release plan|apply|"),
    _("release shop", 2, "No such command 'shop'", "mcpfactory release plan|apply|"),
    _("pipeline inbox", 2, "No such command 'inbox'", "mcpfactory inbox"),
    _("promote shop", 2, "No such command 'promote'", "mcpfactory pipeline promote"),
    _("pipeline stauts", 2, "No such command 'stauts'", "'status'"),
    _("inbox --jsn", 2, "--jsn", "--json"),
    _("call", 2, "Missing argument 'NAME'", "mcpfactory call --help"),
    _("inspect", 3, "is not in a workspace", "mcpfactory init", place=".."),
    _("pipeline run shop --jobs -2", 2, "jobs must be at least 0"),
    _("pipeline promote books --candidate=", 2, "candidate is empty", "leave out candidate"),
    _("pipeline hold books -m ' '", 2, "reason is empty"),
    _("pipeline promote books --channel a --channel b", 2, "--channel was given 2 times"),
    _("pipeline history books --show 1 --show 2", 2, "--show was given 2 times"),
    _("ci --check --provider github --provider gitlab", 2, "--provider was given 2 times"),
    _("run shop --http --port 99999", 2, "--port", "65535"),
    # names
    _("inspect shpo", 3, "no server 'shpo'", "did you mean 'shop'?"),
    _("run ../shop", 3, "no server '../shop'"),
    _("doctor shpo", 3, "did you mean 'shop'?"),
    _("call shop list_bok", 3, "shop has no tool 'list_bok'", "did you mean 'list_books'?"),
    _("pipeline run --until tset", 3, "unknown stage 'tset'", "did you mean 'test'?"),
    _("pipeline history shop tset", 3, "unknown stage 'tset'", "did you mean 'test'?"),
    _("pipeline promote books --channel prodution", 3, "unknown channel 'prodution'", "did you mean 'production'?"),
    _("install shop --client curser", 3, "unknown client 'curser'", "did you mean 'cursor'?"),
    _("publish books --target pipy", 3, "unknown target 'pipy'", "did you mean 'pypi'?"),
    _("new x --template minmal", 3, "unknown template 'minmal'", "did you mean 'minimal'?"),
    _("ci --provider gitlub", 2, "unknown provider 'gitlub'", "providers: github, gitlab"),
    _("validate shop --format pdff", 2, "unknown format 'pdff'", "sarif"),
    # making servers
    _("ci --factory somewhere", 3, "'somewhere' is not a valid source of mcpfactory", "vendored"),
    _("new", 2, "an API document or a template"),
    _(f"{NEW} --template minimal", 2, "give either an API document or a template"),
    _("new a --name b --template minimal", 2, "name was given twice", "a and b"),
    _("new --from-openapi nope.yaml", 4, "nope.yaml does not exist", "check the path"),
    _("new --from-openapi servers", 4, "is a folder", "path of the document in it"),
    _("new --from-openapi e.json", 4, "the file is empty", change=written("e.json", "")),
    _("new --from-openapi e.json", 4, "the file is not text", "UTF-8", change=written("e.json", b"\x89PNG\r\n\x1a\n\0\0")),
    _("new --from-openapi e.yaml", 4, "the text is not YAML", "line 2", change=written("e.yaml", "openapi: b\n  c: [\n")),
    _("new --from-openapi app.py", 4, "the .py file has neither `openapi` nor `swagger`", "supported formats", change=written("app.py", "app = {}\nprint(f'{app}: {1}')\n")),
    _("new --from-openapi e.json", 4, "neither `openapi` nor `swagger`", change=written("e.json", '{"info": 1}')),
    _("new --from-openapi e.json", 4, "it is an AsyncAPI document", "--template minimal", change=written("e.json", '{"info":{},"asyncapi":"3.0.0"}')),
    _("new --from-openapi e", 4, "it is an HTML page", "OpenAPI document", change=written("e", "<!DOCTYPE html>\n<html>a: b: c</html>")),
    _("new --from-openapi e.yaml", 4, "it is an AsyncAPI document", change=written("e.yaml", "id: x\nasyncapi: 2.6.0\nchannels: {}\n")),
    _(
        "new --from-openapi e.wsdl", 4, "it is a WSDL document", "give an OpenAPI document",
        change=written("e.wsdl", '<w:definitions xmlns:w="http://schemas.xmlsoap.org/wsdl/">\n <w:types/>\n</w:definitions>'),
    ),
    _("new --from-openapi ftp://x.example/a.json", 4, "neither http nor https"),
    _("new --from-openapi http://[", 4, "the host or the port is invalid", "such as https://"),
    _("new --from-openapi http://127.0.0.1:99999/a.json", 4, "the host or the port is invalid"),
    _("new --from-openapi http://127.0.0.1:1/a.json", 4, "cannot be read", "check the address"),
    _("new --from-openapi localhost:8000/openapi.json", 4, "http://localhost:8000/openapi.json"),
    _(f"new My_Server --from-openapi {DOCUMENT}", 4, "'My_Server' is not a valid server name", "[a-z][a-z0-9-]*"),
    _(f"new shop --from-openapi {DOCUMENT}", 4, "already exists", "choose another name"),
    _(f"{NEW} --name x --include-tag ordrs", 4, "no operation matches the tag 'ordrs'", "did you mean 'orders'?"),
    _("new x --template openapi", 4, "generated from an API document", "--from-openapi FILE"),
    _(f"{NEW} --name x --mode serach", 2, "unknown mode 'serach'", "search"),
    _(f"{NEW} --name x --overlay no.yaml", 4, "overlay no.yaml cannot be read"),
    _("update shop --from-openapi nope.yaml", 4, "nope.yaml does not exist"),
    _("update notes --from-openapi nope.yaml", 4, "notes is not generated from an API document"),
    # calling
    _("call shop list_books --arg q", 2, "--arg 'q' has no value", "NAME=VALUE"),
    _("call shop list_books --args {", 4, "--args is not JSON"),
    _("call shop list_books --args @nope.json", 4, "nope.json cannot be read", "check the path"),
    _("call shop list_books --arg q=@nope.txt", 4, "nope.txt cannot be read", "write '@@nope.txt'"),
    _("call shop list_books --arg q=@q", 4, "q is not UTF-8 text", "text file", change=written("q", b"\xff")),
    _("call shop list_books --arg qq=1", 1, "qq is not a known argument; did you mean q?", "list_books takes q"),
    _("call shop get_book", 1, "isbn is required", "get_book takes isbn (required)"),
    _("call shop list_books --mode ful", 2, "unknown mode 'ful'"),
    # files of the workspace
    _("inspect", 4, "mcpfactory.toml is not TOML", "line 1", change=written(CONFIG, "[workspace\n")),
    _("inspect", 4, "unknown field 'pipelin'", "did you mean 'pipeline'?", change=added(CONFIG, "\n[pipelin]\n")),
    _("inspect", 3, "mean [workspace] by [worksapce]?", change=written(CONFIG, '[worksapce]\nname = "w"\n')),
    _(
        "pipeline status", 4, "soak: '3 days' is not a valid duration", 'soak = "24h"',
        change=added(CONFIG, '\n[[pipeline.channels]]\nname="a"\n[[pipeline.channels]]\nname="b"\nfrom="a"\nsoak="3 days"\n'),
    ),
    _(
        "pipeline plan", 4, "unknown field 'comand'", "did you mean 'command'?",
        change=added(CONFIG, '\n[[pipeline.stages]]\nname="l"\ncomand=["x"]\n'),
    ),
    _("ci", 4, "ci.jobs: 0 is not valid", "a number from 1 to 256", change=added(CONFIG, "\n[ci]\njobs = 0\n")),
    _("publish books --target pypi", 4, "publish: unknown field 'pipy'", change=added(CONFIG, "\n[publish.pipy]\n")),
    _("inspect shop", 4, "unknown field 'includ_tags'", "did you mean 'include_tags'?",
      change=written(SHOP, '[server]\nname="shop"\npackage="shop_mcp"\n[api]\ninclud_tags=[]\n')),
    _("update shop", 4, "tools.get_book: unknown field 'renam'", "did you mean 'rename'?", change=added(SHOP, '\n[tools.get_book]\nrenam = "x"\n')),
    _("update shop", 4, "responses: unknown field 'selct'", "did you mean 'select'?", change=added(SHOP, "\n[responses]\nselct = true\n")),
    _("update shop", 4, "profiles.small: unknown field 'tags'", change=added(SHOP, '\n[profiles.small]\ntags = ["x"]\n')),
    _("run store", 4, "folder is 'store'", "mcpfactory rename shop store", change=moved("servers/shop", "servers/store")),
    _("update shop", 4, "lock version 9", "update mcpfactory", change=written("servers/shop/.mcpfactory/lock.json", '{"lock": 9}')),
    _("inspect shop", 5, "report.json cannot be read", "delete the file", change=written("servers/shop/.mcpfactory/report.json", "{")),
    _("test shop", 4, "the text is not YAML", change=written("servers/shop/tests/own.yaml", "tests: [")),
    _("validate shop", 4, "unknown field 'waiver'", "did you mean 'waivers'?", change=written("servers/shop/waivers.toml", "[[waiver]]\n")),
    # state
    _("pipeline hold books -m x", 5, "books.json", "verify --repair books", change=written("pipeline/state/books.json", "[]")),
    _("pipeline hold books -m x", 5, "state schema 99", "update mcpfactory",
      change=written("pipeline/state/books.json", '{"state": 99}')),
    _("pipeline history books", 5, "merge conflict marker", change=written("pipeline/history/books.jsonl", "<<<<<<< HEAD\n")),
    # the pipeline and people's decisions
    _("pipeline run shop --executor kubernetes", 4, "'kubernetes'", "local, dask"),
    _("pipeline promote", 2, "either a server or 'due'"),
    _("pipeline promote shop --channel staging", 1, "shop has no candidate yet", "mcpfactory pipeline run shop"),
    _("pipeline promote books --channel production", 1, "approval missing", "mcpfactory pipeline approve books"),
    _("pipeline promote books --channel production --candidate zz", 3, "'zz'", "candidates:"),
    _("pipeline approve books --channel staging", 1, "requires no approval"),
    _("pipeline reject books", 2, "--reason"),
    _("pipeline rollback books --reason x", 1, "books has no release in production"),
    _(f"pipeline hold books --reason {'x' * 100_000}", 2, "has 100,000 characters, but must have at most 500", "shorten the text"),
    _("pipeline unhold books -m x", 1, "production of books is not held"),
    _("pipeline revive books", 1, "books is not retired"),
    _("pipeline history shop test", 3, "the log of test of shop is not", "mcpfactory pipeline run shop"),
    _("waive no.rule --server shop --reason x --expires 2031-01-01", 3, "unknown rule 'no.rule'"),
    _("waive descriptions.arguments --server shop --tool get_bok --reason x --expires 2031-01-01", 3, "no tool 'get_bok'", "did you mean 'get_book'?"),
    _("waive descriptions.arguments --server shop --reason x --expires 2031-01-01", 4, "unknown field 'limt'", change=added(CONFIG, "\n[waivers]\nlimt = 3\n")),
    _(f"waive descriptions.arguments --server shop --reason {'x' * 501} --expires 2031-01-01", 2, "has 501 characters, but must have at most 500", "shorten the text"),
    _("waive descriptions.arguments --server shop --reason x --expires soon", 2, "expires: 'soon' is not a valid date", "YYYY-MM-DD"),
    _("diff shop", 3, "shop has no contract yet"),
    # examining
    _("validate", 2, "exactly one of NAME, --command and --url"),
    _("validate mcpfactory.toml", 2, "is a file"),
    _("validate --url notaurl", 4, "'notaurl' is not an http or https URL"),
    _("""validate --command '"open'""", 2, "no closing quotation", "close every quote"),
    _("validate --command x --header A=b", 2, "--header needs --url"),
    _("validate --url http://127.0.0.1:9 --header A", 2, "takes NAME=VALUE, not 'A'", "Authorization=Bearer"),
    _("validate --url http://127.0.0.1:9 --header A:=b", 4, "'A:' cannot be sent", "invalid characters"),
    _("validate shop --limit max=1", 2, "--limit max=1"),
    _("validate shop --timeout -1", 2, "--timeout"),
    # clients
    _("install shop", 2, "--client"),
    _("install ftp://x --client cursor", 4, "not a valid http or https URL"),
    _("install http://[ --client cursor", 4, "not a valid http or https URL"),
    _("dashboard --allow-actions --public-url http://h:99999/", 4, "not a valid URL of a dashboard"),
    _("install shop --client cursor --env 1X=2", 4, "'1X' is not a valid variable name"),
    _("install shop --client cursor --from stagin", 3, "did you mean 'staging'?"),
    _("uninstall shop --client cursor", 3, "absent", "mcpfactory install --all"),
    # publishing and releasing
    _("publish shop --target pypi", 1, "production has no release of shop"),
    _("publish books --target pypi --set x", 2, "--set 'x' is not a valid option"),
    _("release plan", 1, "not in a git repository", "git init"),
    # serving
    _("serve --server shpo", 3, "did you mean 'shop'?"),
    _("serve --server ,", 2, "--server is empty"),
    _("serve --token env:X", 2, "require --http"),
    _("serve --http --token env:NO_SUCH_VARIABLE", 4, "NO_SUCH_VARIABLE", "secrets.token_urlsafe"),
    _("serve --workspace /nowhere", 3, "/nowhere is not a folder"),
    _("dashboard --port 70000", 2, "65535"),
    _("dashboard --host no.such.host.invalid", 4, "cannot listen on no.such.host.invalid", "127.0.0.1"),
    _("dashboard --export mcpfactory.toml", 1, "mcpfactory.toml is a file", "choose a new folder"),
    # servers come and go
    _("remove shop", 1, "git could not restore", "--force"),
    _("remove notes --force", 2, "confirmation is required", "--yes"),
    _("rename shop Shop", 4, "'Shop' is not a valid server name"),
    _("rename shop notes", 1, "servers/notes already exists"),
)  # fmt: skip


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """`shop` from a document, `notes` from a template, `books` in staging, `fresh` with a failed stage.

    A refused command changes nothing, so that all rows without a change of their own share the workspace.
    """
    root = tmp_path_factory.mktemp("mistakes") / "ws"
    space = make(root, "books", "fresh")
    stage(space, "books", "one")
    finish(space, "fresh", "generate", "failed")
    cli = InProcessCli(root)
    assert cli("new", "--from-openapi", DOCUMENT, "--name", "shop").code == 0
    assert cli("new", "notes", "--template", "minimal").code == 0
    before = contents(root)
    yield root
    assert {path: data for path, data in contents(root).items() if "__pycache__" not in path.parts} == before


def test_there_are_more_than_forty() -> None:
    assert len({(one.typed, one.said) for one in MISTAKES}) == len(MISTAKES) > 100


@parametrize_subtests("mistake", MISTAKES, name=lambda one: one.id)
def test_a_mistake_is_told_with_what_to_do(mistake: Mistake, template: Path, tmp_path: Path) -> None:
    root = template
    if mistake.change is not None:
        root = tmp_path / "ws"
        shutil.copytree(template, root)
        mistake.change(root)
    words = shlex.split(mistake.typed)
    done = InProcessCli(root / mistake.place, {"HOME": str(tmp_path), "PYTHONPATH": ""})(*words)
    told = done.out + done.err
    assert done.code == mistake.code, told
    assert [words for words in (*mistake.said, "hint:") if words not in told] == [], told
