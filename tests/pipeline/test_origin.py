"""Where the factory is taken from: what is written down, what follows from it, and whether another machine can get it."""

from __future__ import annotations

import subprocess
import tomllib

import pytest

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.build.factory_distributions import DISTRIBUTIONS
from mcpfactory_pipeline.delivery.ci.factory_origin import (
    SUBFOLDERS,
    VENDORED,
    choose_origin,
    factory_install_command,
    parse_origin,
    with_origin,
    with_uv_tables,
)
from tests.subtest_table import parametrize_subtests

PLACES = (
    "index",
    "tools/",
    "a/b-c/",
    "git+https://host.example/a.git@v1.0",
    "git+ssh://git@host.example/a@main",
    "git+file:///a@0f",
)


@parametrize_subtests("text", PLACES)
def test_what_is_written_down_is_read_as_it_was_meant(text):
    assert str(parse_origin(text)) == text


@parametrize_subtests("text", [
        "", "tools", "/tools/", "../x/", "a/../b/", "a b/", "$(x)/", "-r/", "git+https://host.example/a", "git+https://host.example/a@",
        "git+https://host.example/$(x)@1", "git+https://host.example/a@1;x", 'git+https://host.example/a"@1', "git+ftp://host.example/a@1",
    ])  # fmt: skip
def test_nothing_that_a_shell_or_a_url_reads_otherwise_is_written_into_a_script(text):
    with pytest.raises(ConfigError) as caught:
        parse_origin(text)
    assert caught.value.hint


@parametrize_subtests("text", PLACES)
def test_the_line_that_installs_is_words_of_a_shell_and_names_each_part(text):
    line = factory_install_command(parse_origin(text))
    done = subprocess.run(["bash", "-c", f"printf '%s\\n' {line}"], capture_output=True, text=True, check=True)
    words = done.stdout.splitlines()
    assert words[:4] == ["python", "-m", "pip", "install"]
    if text.startswith("git+"):
        assert words[4:] == [f"{name} @ {text}#subdirectory={SUBFOLDERS[name]}" for name in DISTRIBUTIONS]


def test_an_origin_is_written_into_a_configuration_and_nothing_else_is_changed():
    text = '# ours\n[workspace] # the root\nname = "a" # x\n\n[pipeline]\nfactory = 3\n'
    made = with_origin(text, parse_origin("index"))
    assert made == text.replace("# x\n", '# x\nfactory = "index"\n')
    assert with_origin(made, VENDORED) == made.replace('"index"', '"tools/mcpfactory/"')


def test_tables_for_uv_come_change_and_go_and_leave_the_rest_as_it_was():
    text = '[tool.uv.workspace]\nmembers = ["servers/*"]\n'
    made = with_uv_tables(text, VENDORED)
    assert tomllib.loads(made)["tool"]["uv"]["sources"]["mcpfactory-runtime"]["path"].startswith("tools/mcpfactory/")
    assert with_uv_tables(made, VENDORED) == made
    other = with_uv_tables(made + "\n[tool.ruff]\n", parse_origin("git+https://host.example/a@v1"))
    assert tomllib.loads(other)["tool"]["uv"]["sources"]["mcpfactory-runtime"]["rev"] == "v1"
    assert other.endswith("\n[tool.ruff]\n")
    assert with_uv_tables(other, parse_origin("index")) == text + "\n[tool.ruff]\n"


def test_a_factory_that_is_used_from_its_sources_is_taken_as_wheels():
    assert choose_origin("") == choose_origin("vendored") == VENDORED
    with pytest.raises(ConfigError, match="not installed from a repository"):
        choose_origin("git")
