from __future__ import annotations

import pytest

from mcpfactory_runtime.revisions import REVISIONS, Revision


@pytest.fixture(params=REVISIONS.values(), ids=str)
def revision(request: pytest.FixtureRequest) -> Revision:
    found: Revision = request.param
    return found
