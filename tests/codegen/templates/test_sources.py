"""Templates of git and of packages: fetched as plain files, kept by their source, and nothing of them run on the way."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpfactory_codegen.servers import scaffold, templates
from mcpfactory_codegen.servers.create import create_server
from mcpfactory_codegen.servers.generation import CreateError
from mcpfactory_codegen.servers.scaffold import find_template, render
from mcpfactory_codegen.servers.templates import TemplateSourceError, parse_source
from mcpfactory_codegen.servers.update import update_server
from tests.adoption.registries import Registry, serving
from tests.subtest_table import parametrize_subtests
from tests.system import git
from tests.written_packages import tarball, wheel

SETTINGS = """# Servers that greet.
_subdirectory: template
name:
  type: str
greeting:
  type: str
  choices: [Hello, Welcome]
  default: Hello
times:
  type: int
  default: 1
"""


@pytest.fixture(autouse=True)
def _fetched_anew() -> Iterator[None]:
    scaffold._fetched.cache_clear()
    yield
    scaffold._fetched.cache_clear()


def write(folder: Path, words: str = "{{ greeting }} {{ name }}, {{ times + 1 }}") -> Path:
    (folder / "template").mkdir(parents=True, exist_ok=True)
    (folder / "copier.yml").write_text(SETTINGS)
    (folder / "template" / "hello.txt.jinja").write_text(words)
    return folder


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    write(folder / "web" / "greeter")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    git(folder, "tag", "v1")
    return folder


def commit(folder: Path) -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "more")
    return git(folder, "rev-parse", "HEAD")


def source_of(folder: Path, ref: str = "", sub: str = "web/greeter") -> str:
    return f"git+file://{folder}{f'@{ref}' if ref else ''}{f'#subdirectory={sub}' if sub else ''}"


@parametrize_subtests(
    "text, parts",
    [
        ("minimal", ("name", "minimal", "", "")),
        ("./templates/ours", ("name", "./templates/ours", "", "")),
        ("git+https://example.com/a/b.git", ("git", "https://example.com/a/b.git", "", "")),
        ("git+https://example.com/a/b@v1.2", ("git", "https://example.com/a/b", "v1.2", "")),
        ("git+ssh://git@example.com/a/b@x/y#subdirectory=c/d", ("git", "ssh://git@example.com/a/b", "x/y", "c/d")),
        ("git+file:///a/b#subdirectory=c", ("git", "file:///a/b", "", "c")),
        ("package:our-templates", ("package", "our-templates", "", "")),
        ("package:our.templates==1.2rc1#subdirectory=web", ("package", "our.templates==1.2rc1", "", "web")),
    ],
)
def test_sources_in_their_parts(text: str, parts: tuple[str, ...]) -> None:
    found = parse_source(text)
    assert (found.kind, found.place, found.ref, found.subfolder) == parts
    assert found.is_remote is (parts[0] != "name")


@pytest.mark.parametrize(
    "text",
    [
        "git+ext::sh -c touch% marker",
        "git+http://example.com/a",
        "git+https://example.com",
        "git+https://me:secret@example.com/a",
        "git+https://token@example.com/a",
        "git+ssh://me:secret@example.com/a",
        "git+ssh://-oProxyCommand=touch/a",
        "git+file:///a@--upload-pack=touch",
        "git+file:///a@-x",
        "git+file:///a@v1..v2",
        "git+file:///a#subdirectory=../b",
        "git+file:///a#subdirectory=-x",
        "package:",
        "package:--index-url=x",
        "package:a>=1",
        "package:a @ file:///x",
        "package:a==1#subdirectory=../../x",
    ],
)
def test_what_is_no_source_is_refused_before_anything_runs(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "subprocess", None)
    with pytest.raises(TemplateSourceError) as raised:
        find_template(text)
    assert raised.value.hint
    assert "secret@" not in str(raised.value)


def test_a_template_of_git_is_used_and_its_source_kept(repository: Path, tmp_path: Path) -> None:
    source = source_of(repository, "v1")
    found = find_template(source)
    assert (found.name, found.about) == ("greeter", "Servers that greet.")
    assert found.origin == f"commit {git(repository, 'rev-parse', 'HEAD')}"
    made = create_server(tmp_path / "servers", name="mine", template=source, answers={"greeting": "Welcome"})
    assert (made.path / "hello.txt").read_text() == "Welcome mine, 2"
    config = (made.path / "mcpfactory.toml").read_text()
    assert f'template = "{source}"' in config
    assert '[answers]\ngreeting = "Welcome"\n' in config


def test_a_commit_a_branch_and_the_newest_can_be_named(repository: Path) -> None:
    first = git(repository, "rev-parse", "HEAD")
    git(repository, "switch", "-qc", "feature/x")
    write(repository / "web" / "greeter", "other {{ name }}")
    commit(repository)
    git(repository, "switch", "-q", "main")
    for ref, words in ((first, "Hello a, 2"), (first[:10], "Hello a, 2"), ("feature/x", "other a"), ("", "Hello a, 2")):
        assert render(source_of(repository, ref), {"name": "a"})["hello.txt"] == words, ref


def test_a_server_moves_to_another_version_of_its_template(repository: Path, tmp_path: Path) -> None:
    made = create_server(tmp_path / "servers", name="mine", template=source_of(repository, "v1"))
    write(repository / "web" / "greeter", "Good day, {{ name }}, {{ greeting }}")
    commit(repository)
    git(repository, "tag", "v2")
    assert update_server(made.path).conflicts == ()
    assert (made.path / "hello.txt").read_text() == "Hello mine, 2"
    later = source_of(repository, "v2")
    update_server(made.path, template=later, answers={"greeting": "Welcome"})
    assert (made.path / "hello.txt").read_text() == "Good day, mine, Welcome"
    scaffold._fetched.cache_clear()
    assert not [file for file in update_server(made.path).files if file.action not in {"same", "keep"}]
    assert f'template = "{later}"' in (made.path / "mcpfactory.toml").read_text()


@pytest.mark.parametrize(
    ("ref", "sub", "said"),
    [
        ("nothing", "web/greeter", "git cannot read"),
        ("v1", "web", "there is no copier.yml in web"),
        ("v1", "", "there is no"),
    ],
)
def test_what_git_does_not_have_is_told(repository: Path, ref: str, sub: str, said: str) -> None:
    with pytest.raises(TemplateSourceError, match=said) as raised:
        find_template(source_of(repository, ref, sub))
    assert raised.value.hint


def test_a_link_and_a_repository_inside_are_refused(repository: Path) -> None:
    (repository / "web" / "greeter" / "template" / "key").symlink_to("/etc/passwd")
    commit(repository)
    with pytest.raises(TemplateSourceError, match="is a link or a repository"):
        find_template(source_of(repository))
    (repository / "web" / "greeter" / "template" / "key").unlink()
    first = git(repository, "rev-parse", "HEAD")
    git(repository, "add", "-A")
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{first},web/greeter/template/inner")
    git(repository, "commit", "-qm", "a submodule")
    with pytest.raises(TemplateSourceError, match="is a link or a repository"):
        find_template(source_of(repository))


def test_a_path_that_leads_out_of_the_tree_is_refused(repository: Path, tmp_path: Path) -> None:
    blob = git(repository, "hash-object", "-w", "--stdin", text="x")
    entry = b"100644 ..\\escaped\0" + bytes.fromhex(blob)
    tree = subprocess.run(
        ["git", "hash-object", "-t", "tree", "-w", "--stdin", "--literally"],
        cwd=repository, input=entry, capture_output=True, check=True,
    ).stdout.decode().strip()  # fmt: skip
    made = git(repository, "commit-tree", tree, "-m", "hostile")
    git(repository, "update-ref", "refs/heads/main", made)
    with pytest.raises(TemplateSourceError, match="not a valid path inside the template"):
        find_template(source_of(repository, sub=""))
    assert not list(tmp_path.rglob("*escaped*"))


def test_filters_and_hooks_are_not_run(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marker, settings = tmp_path / "ran", tmp_path / "gitconfig"
    settings.write_text(
        f'[filter "evil"]\n  smudge = touch {marker}\n  required = true\n[core]\n  hooksPath = {tmp_path}\n'
    )
    for hook in ("post-checkout", "reference-transaction"):
        (tmp_path / hook).write_text(f"#!/bin/sh\ntouch {marker}\n")
        (tmp_path / hook).chmod(0o755)
    (repository / ".gitattributes").write_text("* filter=evil\n")
    git(repository, "add", ".gitattributes")
    git(repository, "commit", "-qm", "attributes", "--no-verify")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text(settings.read_text())
    assert render(source_of(repository), {"name": "a"})["hello.txt"] == "Hello a, 2"
    assert not marker.exists()


@pytest.mark.parametrize("setting", ["_tasks:\n  - touch {marker}\n", "_jinja_extensions:\n  - os.path\n"])
def test_a_fetched_template_that_wants_to_run_something_is_refused(
    repository: Path, tmp_path: Path, setting: str
) -> None:
    marker = tmp_path / "ran"
    settings = repository / "web" / "greeter" / "copier.yml"
    settings.write_text(SETTINGS + setting.replace("{marker}", str(marker)))
    commit(repository)
    with pytest.raises(CreateError):
        create_server(tmp_path / "servers", name="mine", template=source_of(repository))
    assert not marker.exists()
    assert not (tmp_path / "servers").exists()


def test_the_size_of_a_template_is_bounded(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "MAX_BYTES", 100)
    with pytest.raises(TemplateSourceError, match="more than"):
        find_template(source_of(repository))
    monkeypatch.setattr(templates, "MAX_BYTES", 1 << 20)
    monkeypatch.setattr(templates, "_MOST_FILES", 1)
    with pytest.raises(TemplateSourceError, match="more than"):
        find_template(source_of(repository))


# --- packages ---


def offer(index: Registry, files: dict[str, str], version: str = "1.0", *needs: str) -> None:
    """Put a version of our-templates into the index."""
    index.add_wheel("our-templates", version, wheel("our-templates", version, files, needs=needs))


GREETER = {"our_templates/greeter/copier.yml": SETTINGS, "our_templates/greeter/template/hello.txt.jinja": "{{ name }}"}


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """A package index on loopback."""
    for name in ("UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_INDEX", "PIP_INDEX_URL", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    registry = Registry()
    with serving(registry) as environ:
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        yield registry


def test_a_template_of_a_package_is_used_and_its_source_kept(index: Registry, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    evil = f"open({str(marker)!r}, 'w')\n"
    offer(index, {**GREETER, "our_templates/__init__.py": evil, "evil.pth": f"import builtins; {evil}"})
    offer(index, {**GREETER, "our_templates/greeter/template/hello.txt.jinja": "two"}, "2.0")
    found = find_template("package:our-templates==1.0")
    assert (found.name, found.origin) == ("our-templates", "our-templates 1.0")
    made = create_server(tmp_path / "servers", name="mine", template="package:our-templates==1.0")
    assert (made.path / "hello.txt").read_text() == "mine"
    assert 'template = "package:our-templates==1.0"' in (made.path / "mcpfactory.toml").read_text()
    update_server(made.path, template="package:our-templates==2.0")
    assert (made.path / "hello.txt").read_text() == "two"
    assert not marker.exists()


def test_a_package_that_cannot_be_had_is_told(index: Registry) -> None:
    offer(index, {"our_templates/__init__.py": ""})
    with pytest.raises(TemplateSourceError, match=r"it has no copier\.yml"):
        find_template("package:our-templates")
    with pytest.raises(TemplateSourceError, match="cannot be downloaded"):
        find_template("package:our-templates==9")
    with pytest.raises(TemplateSourceError, match="cannot be downloaded"):
        find_template("package:nothing-of-that-name")


def test_a_package_is_neither_built_nor_are_others_fetched_for_it(index: Registry, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    files = {"setup.py": f"open({str(marker)!r}, 'w')\n", "PKG-INFO": "Name: our-templates\nVersion: 3.0\n"}
    index.wheels["our-templates"] = {"our_templates-3.0.tar.gz": tarball(files, "our_templates-3.0")}
    with pytest.raises(TemplateSourceError, match="cannot be downloaded"):
        find_template("package:our-templates==3.0")
    assert not marker.exists()
    offer(index, GREETER, "1.0", "not-there-at-all")
    assert find_template("package:our-templates==1.0").origin == "our-templates 1.0"


# --- folders ---


def test_a_folder_of_the_workspace_is_kept_by_its_way_from_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = write(tmp_path / "templates" / "greeter")
    monkeypatch.chdir(tmp_path)
    made = create_server(tmp_path / "servers", name="mine", template="templates/greeter")
    assert 'template = "../../templates/greeter"' in (made.path / "mcpfactory.toml").read_text()
    (own / "template" / "hello.txt.jinja").write_text("new {{ name }}")
    monkeypatch.chdir("/")
    update_server(made.path)
    assert (made.path / "hello.txt").read_text() == "new mine"
