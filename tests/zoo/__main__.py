"""`python -m tests.zoo NAME HANDSHAKES MODERNS` is one animal on stdio; revisions are separated by commas."""

from __future__ import annotations

import sys

from tests.zoo.animals import animals

name, handshakes, moderns = sys.argv[1:4]
animals()[name](handshakes.split(","), moderns.split(",")).run()
