from __future__ import annotations

from pathlib import Path

import pytest

from mcpfactory_codegen.servers.config import ApiConfig, ServerConfig, ServerTable, read_config, render_config
from mcpfactory_codegen.settings import CONFIG, SettingsError
from tests.subtest_table import parametrize_subtests


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    config = ServerConfig(
        server=ServerTable(name="bookshop", package="bookshop_mcp", template="openapi"),
        apis=(
            ApiConfig(
                document="api/openapi.yaml",
                source="https://example.com/a.yaml",
                allow_private=("127.0.0.1:8000", "[::1]:8000", "intranet"),
                include_tags=('quote " and \\ backslash', "größe 🐶"),
                include_paths=("/books/**",),
            ),
        ),
        names={"GET /books/{id}": "read_book"},
    )
    (tmp_path / CONFIG).write_text(render_config(config), "utf-8")
    assert read_config(tmp_path) == config


@parametrize_subtests(
    "text",
    [
        "[server",
        '[server]\nname = "a"\npackage = "a"\n[api]\nallow_private = true\n',
        '[server]\nname = "a"\npackage = "a"\n[api]\nallow_private = ["http://127.0.0.1:8000"]\n',
        "server = 1",
        '[server]\nname = "No Good"\npackage = "a"',
        '[server]\nname = "a"\npackage = "../a"',
        '[server]\nname = "a"\npackage = "a"\n[api]\ninclude_tags = "books"',
        '[server]\nname = 3\npackage = "a"',
    ],
)
def test_a_configuration_that_cannot_be_used_says_what_to_change(tmp_path: Path, text: str) -> None:
    (tmp_path / CONFIG).write_text(text)
    with pytest.raises(SettingsError) as raised:
        read_config(tmp_path)
    assert str(tmp_path / CONFIG) in str(raised.value)
    assert raised.value.hint


def test_a_folder_without_configuration_is_no_server(tmp_path: Path) -> None:
    with pytest.raises(SettingsError):
        read_config(tmp_path)
