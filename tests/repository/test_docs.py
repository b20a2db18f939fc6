"""What people meet is documented: exit codes, stages, templates, pages of the dashboard, variables, the server API."""

from __future__ import annotations

import re
from pathlib import Path

from mcpfactory_codegen.curation import Selection
from mcpfactory_runtime.errors import Exit


def test_every_exit_code_is_documented(root):
    page = (root / "docs/reference/exit-codes.md").read_text(encoding="utf-8")
    assert [code.name for code in Exit if f"| {int(code)} | {code.name} |" not in page] == []


def test_completion_knows_every_target():
    from mcpfactory.completion import targets
    from mcpfactory_pipeline.delivery.publish.publish import TARGETS

    assert targets("") == list(TARGETS), "write the names into targets of factory/cli/src/mcpfactory/completion.py"


def test_every_stage_is_documented(root):
    from mcpfactory_pipeline.stages import STAGES

    page = (root / "docs/reference/pipeline.md").read_text(encoding="utf-8")
    names = [stage.name for stage in STAGES]
    assert len(names) >= 5
    lost = [name for name in names if f"\n| `{name}` |" not in page]
    assert lost == [], "write a row for each into the table of stages in docs/reference/pipeline.md"


def test_every_key_that_selects_operations_is_documented(root):
    page = "docs/reference/generated-server.md"
    text = (root / page).read_text("utf-8")
    assert [key for key in Selection.model_fields if f"\n{key} = " not in text] == [], f"{page} lists the keys of [api]"


def test_every_template_is_documented(root):
    page = (root / "docs/reference/templates.md").read_text(encoding="utf-8")
    names = [path.parent.name for path in (root / "templates").glob("*/copier.yml")]
    assert len(names) >= 2
    lost = [name for name in names if f"`{name}`" not in page]
    assert lost == [], "write a row for each into docs/reference/templates.md"
    readme = (root / "README.md").read_text(encoding="utf-8")
    listed = readme.partition("[Templates](docs/reference/templates.md):")[2].partition("\n\n")[0]
    assert re.findall(r"`([a-z-]+)`", listed) == sorted(names), "name each in README.md, in order"


def test_every_page_of_the_dashboard_has_its_template_and_is_documented(root):
    from mcpfactory_pipeline import dashboard
    from mcpfactory_pipeline.dashboard.pages import PAGES

    page = (root / "docs/reference/dashboard.md").read_text(encoding="utf-8")
    lost = [one.title for one in PAGES if f"| `{one.path.replace('{', '<').replace('}', '>')}` |" not in page]
    assert lost == [], "write a row for each into the table of pages in docs/reference/dashboard.md"
    templates = Path(dashboard.__file__).parent / "templates"
    blank = [
        f"pipeline/src/mcpfactory_pipeline/dashboard/templates/{one.template}"
        for one in PAGES
        if not (templates / one.template).is_file()
    ]
    assert blank == [], "write each of these files"


def test_every_environment_variable_is_documented(modules, pages):
    docs = "\n".join(page.text for page in pages if page.name.startswith("docs/"))
    names = {name for module in modules for name in re.findall(r"MCPFACTORY_[A-Z_]+\b", module.text)}
    assert "MCPFACTORY_BASE_URL" in names
    assert {name for name in names if name not in docs} == set()


def test_every_keyword_and_method_of_a_server_and_its_context_is_documented(root):
    from inspect import signature

    from mcpfactory_runtime import Context, Server

    page = (root / "docs/reference/server-api.md").read_text(encoding="utf-8")
    between_parts = {  # of transports, the dispatcher and the sessions, not of whoever writes a server
        *(
            "capabilities",
            "fast_path_runner",
            "forward",
            "handle",
            "rates",
            "refuse_unknown_offer",
            "running",
            "sealer",
        ),
        *("end", "input_required"),
    }
    names = [*signature(Server).parameters, *vars(Server), *vars(Context)]
    public = {name for name in names if not name.startswith("_")} - between_parts
    assert len(public) > 40
    assert {name for name in public if not re.search(rf"`[^`]*\b{name}\b", page)} == set()


def test_every_module_of_commands_is_reached_from_the_command_line(root):
    folder = root / "factory/cli/src/mcpfactory"
    files = [folder / "main.py", *sorted((folder / "commands").glob("*.py"))]
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    forgotten = [
        file.name
        for file in files[1:]
        if file.stem != "__init__"
        and not any(re.search(rf"\b{file.stem}[.:]\w", text) for other, text in texts.items() if other != file)
    ]
    assert forgotten == [], "add each to COMMANDS in factory/cli/src/mcpfactory/main.py"
