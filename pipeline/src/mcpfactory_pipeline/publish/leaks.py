"""Secrets in what a target is sent, looked for in the very bytes: a bundle, an image, a folder with a Dockerfile."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from mcpfactory_pipeline.build.leaks import find_leaks_among
from mcpfactory_pipeline.publish.program import LIBRARY, wheels
from mcpfactory_pipeline.publish.release import CandidateRelease

__all__ = ["find_published_leaks"]

_INSTALLED: Final = (f"server/{LIBRARY}/", f"app/{LIBRARY}/")  # of a bundle, of an image


def find_published_leaks(release: CandidateRelease, files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield what stands in files for a target and must not leave the machine: file and kind, never the secret.

    What others wrote is left out: it is at an index already. These are the lower layers of an image, and in a bundle the
    installed files that no wheel of the release has.
    """
    own = {member for name, wheel in wheels(release).items() for member, _ in _members(name, wheel, ())}
    found = [(name, *member) for name, content in files.items() for member in _members(name, content, own)]
    yield from find_leaks_among(found)


def _members(name: str, content: bytes, own: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the files in a file, down to those of wheels; what is no archive is its own only one."""
    if name.endswith((".mcpb", ".whl")) and zipfile.is_zipfile(io.BytesIO(content)):
        for member, data in _zip_members(content):
            below = next((member.removeprefix(place) for place in _INSTALLED if member.startswith(place)), "")
            if not below or below in own:
                yield from _members(member, data, own)
    elif name.endswith(".oci.tar"):
        yield from _image_members(content)
    else:
        yield name, content


def _zip_members(content: bytes) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for info in archive.infolist():
            yield info.filename, archive.read(info)


def _image_members(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the files of an image's highest layer, which is the server, and its description with variables and labels."""
    with tarfile.open(fileobj=io.BytesIO(content)) as image:

        def blob(digest: str) -> bytes:
            stream = image.extractfile(f"blobs/{digest.replace(':', '/')}")
            return stream.read() if stream else b""

        index = image.extractfile("index.json")
        (row,) = json.loads(index.read() if index else b"{}")["manifests"]
        manifest = json.loads(blob(row["digest"]))
        yield "config.json", blob(manifest["config"]["digest"])
        with tarfile.open(fileobj=io.BytesIO(blob(manifest["layers"][-1]["digest"]))) as layer:
            for member in layer:
                if member.isfile() and (stream := layer.extractfile(member)) is not None:
                    yield member.name, stream.read()
