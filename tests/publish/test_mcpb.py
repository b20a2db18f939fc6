"""A bundle for desktop clients: a zip with a manifest, the same bytes each time, of the candidate's own bytes."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tomllib
import zipfile

import pytest

from mcpfactory_pipeline.base.hashing import hash_file
from mcpfactory_pipeline.channels import contract
from mcpfactory_pipeline.channels.channel import copy_files_into_channel as promote
from mcpfactory_pipeline.delivery.publish.publish import publish
from tests.publish.promoted_workspace import TOOLS, packages


@pytest.fixture
def bundle(promoted):
    """Publishes to a bundle, and gives the outcome and the opened zip."""

    def call(**options: str):
        (outcome,) = publish(promoted.workspace, "books", ["mcpb"], given={"mcpb": options})
        if outcome.outcome != "made":
            return outcome, None
        (name,) = outcome.files
        return outcome, zipfile.ZipFile(f"{outcome.folder}/{name}")

    return call


def manifest_of(archive: zipfile.ZipFile) -> dict:
    return json.loads(archive.read("manifest.json"))


def test_a_bundle_holds_the_wheel_that_was_checked_byte_for_byte(promoted, bundle):
    promoted.put()
    outcome, archive = bundle()
    wheel = "books_mcp-1.0.0-py3-none-any.whl"
    assert list(outcome.files) == ["books-mcp-1.0.0.mcpb"]
    assert archive.read(f"wheels/{wheel}") == packages()[wheel]
    project = tomllib.loads(archive.read("pyproject.toml").decode())
    assert project["tool"]["uv"]["sources"]["books-mcp"] == {"path": f"wheels/{wheel}"}
    assert "books-mcp==1.0.0" in project["project"]["dependencies"]


def test_its_manifest_says_what_the_candidate_says(promoted, bundle):
    promoted.put()
    manifest = manifest_of(bundle()[1])
    assert manifest["manifest_version"] == "0.4"
    assert manifest["server"]["type"] == "uv"
    assert [tool["name"] for tool in manifest["tools"]] == ["list_books", "get_book"]
    assert manifest["server"]["mcp_config"]["env"]["BOOKS_API_KEY"] == "${user_config.books_api_key}"
    assert manifest["compatibility"]["runtimes"] == {"python": ">=3.11"}


def test_secrets_are_marked_and_the_id_of_an_oauth_client_is_none(promoted, bundle):
    promoted.put()
    settings = manifest_of(bundle()[1])["user_config"]
    assert {name for name, row in settings.items() if row.get("sensitive")} == {
        "books_api_key",
        "books_token",
        "books_client_secret",
    }


def test_variables_that_the_server_reads_and_addresses_of_several_documents_are_settings(promoted, bundle):
    servers = 'ServerAddress("shelves", "https://shelves.example.com"), ServerAddress("loans", "")'
    api = f"BASE_URL = ''\nSERVERS = ({servers})\n"
    api += 'def upstream():\n    return Upstream(BASE_URL, (), servers=SERVERS, prefix="BOOKS")\n'
    config = '[server]\nenvironment = ["BOOKS_BRANCH", "BOOKS_LANGUAGE"]\n[[api]]\nlabel = "shelves"\ndocument = "a"\n[[api]]\nlabel = "loans"\ndocument = "b"\n'
    config += '[publish.environment.BOOKS_LANGUAGE]\ndescription = "Of titles"\n'
    promoted.put(api=api, config=config)
    settings = manifest_of(bundle()[1])["user_config"]
    assert {name: (row["required"], row["description"]) for name, row in settings.items()} == {
        "books_shelves_base_url": (False, "Address of the API, https://shelves.example.com when unset"),
        "books_loans_base_url": (True, "Address of the API, such as https://api.example.com/v1"),
        "books_branch": (False, "BOOKS_BRANCH"),
        "books_language": (False, "Of titles"),
    }


def test_the_servers_own_tools_are_listed_where_validate_saw_them(promoted, bundle):
    candidate = promoted.put()
    kept = promoted.workspace.artifacts / "books" / candidate / "validate"
    kept.mkdir()
    own = {"name": "lend_book", "description": "Lend a book.", "inputSchema": {"type": "object"}}
    (kept / contract.FILE).write_text(contract.contract_to_text([own, *TOOLS], "1.0.0"))
    tools = manifest_of(bundle()[1])["tools"]
    assert [tool["name"] for tool in tools] == ["list_books", "get_book", "lend_book"]


def test_every_placeholder_has_a_setting_and_every_setting_that_is_not_required_a_default(promoted, bundle):
    promoted.put()
    manifest = manifest_of(bundle()[1])
    used = {
        text.removeprefix("${user_config.").rstrip("}") for text in manifest["server"]["mcp_config"]["env"].values()
    }
    assert used == set(manifest["user_config"])
    assert all("default" in row or row["required"] for row in manifest["user_config"].values())


def test_its_program_starts_the_server_and_forgets_settings_that_nobody_filled_in(promoted, bundle, tmp_path):
    promoted.put()
    _, archive = bundle()
    archive.extractall(tmp_path / "bundle")
    wheel = zipfile.ZipFile(io.BytesIO(packages()["books_mcp-1.0.0-py3-none-any.whl"]))
    wheel.extractall(tmp_path / "bundle/server/lib")
    program = tmp_path / "bundle/server/lib/books_mcp/__init__.py"
    program.write_text("import os\ndef main(): print(sorted(n for n in os.environ if n.startswith('BOOKS_')))\n")
    env = {**os.environ, "BOOKS_API_KEY": "${user_config.books_api_key}", "BOOKS_TOKEN": "", "BOOKS_CLIENT_ID": "me"}
    done = subprocess.run(
        [sys.executable, str(tmp_path / "bundle/server/main.py")], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['BOOKS_CLIENT_ID']"


def test_the_runtime_that_the_channel_offers_goes_with_it_and_without_one_nothing_is_made(promoted, bundle):
    promoted.put(requires=("mcpfactory-runtime>=0.1,<0.2",))
    outcome, _ = bundle()
    assert [problem["rule"] for problem in outcome.problems] == ["mcpb/runtime"]
    runtime = promoted.workspace.root / "mcpfactory_runtime-0.1.0-py3-none-any.whl"
    runtime.write_bytes(b"the runtime that was promoted")
    promote(promoted.workspace.pipeline / "channels", "production", runtime, hash_file(runtime))
    outcome, archive = bundle()
    assert archive.read(f"wheels/{runtime.name}") == b"the runtime that was promoted"


@pytest.mark.parametrize(
    ("parts", "rule"),
    [
        ({"summary": ""}, "mcpb/description"),
        ({"program": "books_mcp"}, "mcpb/program"),
        ({"version": "1.0rc1"}, "mcpb/version"),
    ],
)
def test_what_clients_would_refuse_is_refused_with_its_rule(promoted, bundle, parts, rule):
    promoted.put(**parts)
    outcome, _ = bundle()
    assert outcome.outcome == "refused"
    assert [problem["rule"] for problem in outcome.problems] == [rule]
