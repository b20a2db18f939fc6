"""Ranges of revisions, to parametrize tests."""

from __future__ import annotations

import pytest

from mcpfactory_runtime.revisions import LEGACY, REVISIONS, Revision

HANDSHAKES = pytest.mark.parametrize("revision", LEGACY.values(), ids=str)


def since(first: Revision) -> pytest.MarkDecorator:
    """Parametrize with the revisions from `first` on."""
    names = list(REVISIONS)
    return pytest.mark.parametrize("revision", list(REVISIONS.values())[names.index(first.name) :], ids=str)


def before(last: Revision) -> pytest.MarkDecorator:
    """Parametrize with the revisions before `last`."""
    names = list(REVISIONS)
    return pytest.mark.parametrize("revision", list(REVISIONS.values())[: names.index(last.name)], ids=str)
