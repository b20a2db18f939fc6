"""Every folder of `templates/` makes a server that works at once; a new one is tested as soon as it is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpfactory_codegen.servers.create import create_server
from mcpfactory_codegen.servers.scaffold import templates
from tests.codegen.execution.documents import written
from tests.codegen.server_checks import assert_passes
from tests.skip_conditions import NEEDS

ELSEWHERE = "openapi"  # in tests/codegen/execution/test_generated.py
FOLDERS = sorted(
    path.name
    for path in (Path(__file__).parents[3] / "templates").iterdir()
    if not path.name.startswith((".", "__")) and path.name != ELSEWHERE
)


NEEDED = {
    "browser": "chromium",
    "postgres": "postgres",
}  # what the tests of a template need of the machine, by its name in tests/skip_conditions.py; else they skip some


@pytest.mark.parametrize("name", FOLDERS)
def test_a_server_of_the_template_passes_its_tests_type_checker_and_linter(name: str, tmp_path: Path) -> None:
    known = {template.name: template for template in templates()}
    assert name in known, f"templates/{name} is no template; add templates/{name}/copier.yml"
    template = known[name]
    assert template.about.endswith("."), f"templates/{name}/copier.yml begins with a comment: one sentence about it"
    source = written(tmp_path) if template.requires_api_document else None
    created = create_server(tmp_path, name="plain-words", source=source, template=name)
    assert "src/plain_words_mcp/server.py" in created.files
    said = assert_passes(created.path)
    if name in NEEDED and NEEDS[NEEDED[name]].here():
        assert "skipped" not in said
