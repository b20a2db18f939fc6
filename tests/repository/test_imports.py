"""Who may import what, and what a started program has loaded (loaded modules are exact; milliseconds are not)."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache

from benchmarks.codebase.figures import figures
from benchmarks.codebase.modules import parse

# One heavy library, one place that imports it.
HOMES = {
    "copier": ("factory/codegen/src/mcpfactory_codegen/servers/scaffold.py",),
    "openapi_pydantic": ("factory/codegen/src/mcpfactory_codegen/openapi/",),
    "httpx": (
        "factory/runtime/src/mcpfactory_runtime/auth/providers.py",
        "factory/runtime/src/mcpfactory_runtime/upstream/client.py",
        "factory/runtime/src/mcpfactory_runtime/client/http.py",
        "factory/runtime/src/mcpfactory_runtime/protocol/decoding.py",  # its error for a body that cannot be read
        "factory/codegen/src/mcpfactory_codegen/read/document.py",
        "pipeline/src/mcpfactory_pipeline/reporting/receivers.py",
        "pipeline/src/mcpfactory_pipeline/delivery/publish/http.py",
    ),
    "graphql": ("factory/codegen/src/mcpfactory_codegen/sources/graphql/",),
    "starlette": (
        "factory/cli/src/mcpfactory/commands/demo_api.py",
        "factory/runtime/src/mcpfactory_runtime/transports/http/routes.py",
        "pipeline/src/mcpfactory_pipeline/dashboard/",
    ),
    "jinja2": ("pipeline/src/mcpfactory_pipeline/dashboard/",),
    "jwt": (
        "factory/runtime/src/mcpfactory_runtime/auth/jose.py",
        "factory/runtime/src/mcpfactory_runtime/oauth/grants.py",
        "factory/runtime/src/mcpfactory_runtime/oauth_proxy/grants.py",
        "factory/runtime/src/mcpfactory_runtime/upstream/auth.py",
    ),
    "opentelemetry": (
        "factory/runtime/src/mcpfactory_runtime/client/http_messages.py",  # where the program has loaded it
        "factory/runtime/src/mcpfactory_runtime/server/observability/",
        "factory/runtime/src/mcpfactory_runtime/server/observability_mixin.py",  # for types
    ),
    "prometheus_client": (
        "factory/runtime/src/mcpfactory_runtime/server/observability/metrics.py",
        "factory/runtime/src/mcpfactory_runtime/server/observability_mixin.py",  # for types
    ),
    "sqlite3": ("factory/runtime/src/mcpfactory_runtime/storage/sqlite.py",),
    "redis": ("factory/runtime/src/mcpfactory_runtime/storage/redis.py",),
    "botocore": ("factory/runtime/src/mcpfactory_runtime/upstream/auth.py",),
    "jmespath": ("factory/runtime/src/mcpfactory_runtime/upstream/truncate.py",),
    "distributed": ("pipeline/src/mcpfactory_pipeline/run/dask.py",),
    "dask": ("pipeline/src/mcpfactory_pipeline/run/dask.py",),
    "typer": ("factory/cli/",),
    "openai": ("pipeline/src/mcpfactory_pipeline/checks/evaluation/openai_model.py",),
    "anthropic": ("pipeline/src/mcpfactory_pipeline/checks/evaluation/anthropic_model.py",),
    "jsonpath": ("factory/codegen/src/mcpfactory_codegen/read/overlay.py",),
    "rich": ("pipeline/src/mcpfactory_pipeline/reporting/",),
}


def test_a_heavy_library_is_imported_in_its_home_only(modules):
    strangers = [
        f"{module.path} imports {library}"
        for module in modules
        for library in module.libraries & HOMES.keys()
        if not module.path.startswith(HOMES[library])
    ]
    assert strangers == []


def test_each_home_exists(root):
    assert [home for homes in HOMES.values() for home in homes if not (root / home).exists()] == []


def test_no_modules_import_each_other_in_a_circle(modules):
    """Imports for types count, too; lazy ones as well."""
    circles = figures(parse(modules)).circles
    assert not circles, f"move what both need below both: {circles}"


RUN_BY_PATH = (
    "build/pep517_backend.py",
    "isolation/landlock.py",
    "isolation/container_client.py",
    "launch/diagnosis.py",
    "launch/start.py",
    "stages/pytest_plugin/mcpfactory_evidence.py",
)


def test_a_file_that_another_environment_runs_imports_the_standard_library_only(root):
    """The environment of a server, of a build or of a container has none of the factory's packages."""
    imported = set()
    for file in RUN_BY_PATH:
        for node in ast.walk(ast.parse((root / "pipeline/src/mcpfactory_pipeline" / file).read_text("utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add((node.module or "").split(".")[0])
    assert imported - sys.stdlib_module_names == {"pytest"}, "pytest itself loads the plugin"


def loaded(code: str) -> set[str]:
    """The top-level packages that a fresh interpreter has loaded after running the code."""
    return {name.split(".")[0] for name in every_module(code)}


@cache
def every_module(code: str) -> set[str]:
    """All modules that a fresh interpreter has loaded after running the code."""
    tail = "\nimport sys; print('\\nLOADED', *sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code + tail], capture_output=True, text=True, check=True)
    return set(done.stdout.split("LOADED", 1)[1].split())


HELP = """
import sys
from mcpfactory.main import app
sys.argv = ["mcpfactory", "--help"]
try: app()
except SystemExit: pass
"""


def test_help_loads_no_heavy_library():
    names = loaded(HELP)
    assert "typer" in names
    assert (
        names
        & {
            "copier",
            "starlette",
            "uvicorn",
            "httpx",
            "httpx2",
            "jinja2",
            "pydantic",
            "rich",
            "yaml",
            "openapi_pydantic",
        }
        == set()
    )


def test_a_run_loads_the_http_client_only_for_a_webhook():
    names = loaded("import mcpfactory_pipeline.run.run, mcpfactory_pipeline.decisions.promote")
    assert "filelock" in names
    assert names & {"httpx", "distributed", "dask", "starlette", "jinja2"} == set()


def test_help_loads_none_of_our_other_parts_but_the_root_of_errors():
    assert loaded(HELP) & {"mcpfactory_pipeline", "mcpfactory_codegen"} == set()
    runtime = {name for name in every_module(HELP) if name.startswith("mcpfactory_runtime")}
    assert runtime == {"mcpfactory_runtime", "mcpfactory_runtime.errors"}


SERVED = "from mcpfactory_pipeline.serve import factory_server, gateway"


def test_what_mcpfactory_serves_on_stdio_loads_no_web_server_http_client_template_or_rule():
    names = loaded(f"{SERVED}; import pathlib; factory_server.make_factory_server(pathlib.Path('.'))")
    assert "pydantic" in names
    heavy = {
        "httpx",
        "starlette",
        "uvicorn",
        "jinja2",
        "copier",
        "rich",
        "yaml",
        "jsonschema",
        "openapi_pydantic",
        "jwt",
    }
    assert names & heavy == set()
