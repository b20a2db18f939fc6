"""A bill of materials says what a release is and what it is installed with, in the same bytes each time."""

from __future__ import annotations

import json
from pathlib import Path

from mcpfactory_pipeline.delivery.publish.publish import find_release, publish
from mcpfactory_pipeline.delivery.publish.sbom import LockedPackage, parse_locked_requirements, sbom_document

LOCKED = """\
# for sha256:0
books-mcp==1.0.0 \\
    --hash=sha256:{}
httpx[http2]==0.28.1 ; python_version >= "3.11" \\
    --hash=sha256:{} \\
    --hash=sha256:{}
Typing_Extensions==4.15.0 \\
    --hash=sha256:{}
""".format(*(digit * 64 for digit in "0123"))


def made(promoted, **given):
    (outcome,) = publish(promoted.workspace, "books", ["sbom"], given={"sbom": {"resolve": "declared", **given}})
    (name,) = outcome.files
    return outcome, json.loads((Path(outcome.folder) / name).read_bytes())


def test_it_says_what_the_release_is_and_asks_for(promoted):
    candidate = promoted.put(requires=("httpx>=0.28,<1", "pytest; extra == 'test'"), licence="Apache-2.0")
    outcome, document = made(promoted)
    root = document["metadata"]["component"]
    assert (root["name"], root["version"], root["purl"]) == ("books-mcp", "1.0.0", "pkg:pypi/books-mcp@1.0.0")
    assert root["licenses"] == [{"expression": "Apache-2.0"}]
    assert {"name": "mcpfactory:candidate", "value": candidate} in root["properties"]
    files = promoted.state.candidates[candidate].files
    assert {one["url"]: f"sha256:{one['hashes'][0]['content']}" for one in root["externalReferences"]} == files
    (component,) = document["components"]
    assert component["properties"] == [{"name": "mcpfactory:requirement", "value": "httpx>=0.28,<1"}]
    assert document["dependencies"][0] == {"ref": root["purl"], "dependsOn": ["pkg:pypi/httpx"]}
    assert outcome.outcome == "made"
    assert promoted.state.published == {}


def test_the_same_release_gives_the_same_bytes_and_another_one_others(promoted):
    promoted.put()
    first, one = made(promoted)
    assert made(promoted)[0].files == first.files
    promoted.put("1.0.1")
    assert made(promoted)[1]["serialNumber"] != one["serialNumber"]


def test_packages_that_were_resolved_stand_in_it_with_their_hashes(promoted):
    promoted.put(requires=("httpx>=0.28,<1",))
    release = find_release(promoted.workspace, "books", "production")
    packages = parse_locked_requirements(LOCKED, release)
    assert packages == [
        LockedPackage("httpx", "0.28.1", hashes=("1" * 64, "2" * 64)),
        LockedPackage("typing-extensions", "4.15.0", hashes=("3" * 64,)),
    ]
    document = sbom_document(release, packages)
    assert [one["purl"] for one in document["components"]] == [
        "pkg:pypi/httpx@0.28.1",
        "pkg:pypi/typing-extensions@4.15.0",
    ]
    assert document["dependencies"][0]["dependsOn"] == ["pkg:pypi/httpx@0.28.1"]
    references = {entry["ref"] for entry in document["dependencies"]}
    assert references == {
        document["metadata"]["component"]["bom-ref"],
        *(one["bom-ref"] for one in document["components"]),
    }
