"""The bill of one of our wheels: what it needs, in the lock's versions and with its hashes, and what is ours from beside it."""

from __future__ import annotations

import json

from benchmarks.sbom import bill
from tests.publish.promoted_workspace import packages

DIGEST = "ab" * 32
LOCK = f"pydantic==2.0 \\\n    --hash=sha256:{DIGEST}\npytest==8.0 \\\n    --hash=sha256:{DIGEST}\n"


def test_a_bill_has_what_is_needed_and_nothing_of_the_development(tmp_path):
    needs = ("pydantic>=2", "tea-mcp==1.0.0", "coffee; extra == 'bar'", "milk; sys_platform == 'none'")
    for files in (packages(requires=needs, sdist=False), packages(name="tea-mcp", package="tea", sdist=False)):
        for name, data in files.items():
            (tmp_path / name).write_bytes(data)
    (wheel,) = tmp_path.glob("books*.whl")
    found = json.loads(bill(wheel, LOCK))
    assert bill(wheel, LOCK) == bill(wheel, LOCK)
    assert [(one["name"], one["version"]) for one in found["components"]] == [("pydantic", "2.0"), ("tea-mcp", "1.0.0")]
    assert found["components"][0]["externalReferences"][0]["hashes"] == [{"alg": "SHA-256", "content": DIGEST}]
    assert found["metadata"]["component"]["name"] == "books-mcp"
    assert "properties" not in found["metadata"]["component"]
