"""An OCI image layout: a folder of blobs named after their hash, and an index that says which of them is the image.

Media types and fields are those of the OCI image specification 1.1: image-layout.md, manifest.md, config.md.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.errors import JsonRecord, StateError
from mcpfactory_pipeline.base.files import replace_file
from mcpfactory_pipeline.base.hashing import hash_bytes, hash_file

INDEX: Final = "application/vnd.oci.image.index.v1+json"
MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
CONFIG: Final = "application/vnd.oci.image.config.v1+json"
LAYER: Final = "application/vnd.oci.image.layer.v1.tar+gzip"
_REF: Final = "org.opencontainers.image.ref.name"


def canonical_json(data: Any) -> bytes:
    """JSON whose bytes follow from its content."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


@dataclass(frozen=True, slots=True)
class Descriptor(JsonRecord):
    """A reference to a blob: its type, hash (`sha256:…`) and size in bytes."""

    mediaType: str  # noqa: N815 - the fields are those of the specification
    digest: str
    size: int

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Descriptor:
        """Return the descriptor from its JSON, ignoring other fields."""
        return cls(str(data["mediaType"]), str(data["digest"]), int(data["size"]))


@dataclass(frozen=True, slots=True)
class OciImage:
    """An image in a layout: the descriptor of its manifest, and what manifest and configuration say."""

    descriptor: Descriptor
    manifest: Mapping[str, Any]
    config: Mapping[str, Any]

    @property
    def layers(self) -> tuple[Descriptor, ...]:
        """The layers, lowest first."""
        return tuple(Descriptor.from_json(row) for row in self.manifest["layers"])

    @property
    def blobs(self) -> tuple[Descriptor, ...]:
        """All that the manifest points to: the configuration, then the layers."""
        return (Descriptor.from_json(self.manifest["config"]), *self.layers)

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the configuration."""
        return dict(self.config.get("config", {}).get("Labels") or {})

    @property
    def size(self) -> int:
        """The bytes of all blobs, as they travel."""
        return self.descriptor.size + sum(blob.size for blob in self.blobs)


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout in a folder. Blobs are written whole or not at all; one that is there is not written again."""

    folder: Path
    _seen: set[str] = field(default_factory=set, repr=False, compare=False)

    def path(self, digest: str) -> Path:
        """Return the path of an existing or future blob.

        Raises:
            StateError: the digest is not a sha256 digest.
        """
        algorithm, _, name = digest.partition(":")
        if algorithm != "sha256" or len(name) != 64 or not set(name) <= set("0123456789abcdef"):
            raise StateError(f"{digest!r} is no sha256 digest", hint="name the image by sha256:<64 hexadecimal digits>")
        return self.folder / "blobs" / "sha256" / name

    def has(self, blob: Descriptor) -> bool:
        """Return True if a blob exists with the right bytes (hashed once for each layout)."""
        path = self.path(blob.digest)
        if blob.digest not in self._seen and hash_file(path) == blob.digest and path.stat().st_size == blob.size:
            self._seen.add(blob.digest)
        return blob.digest in self._seen

    def add(self, data: bytes, kind: str) -> Descriptor:
        """Write a blob; return what points to it."""
        blob = Descriptor(kind, hash_bytes(data), len(data))
        self.write(blob, data)
        return blob

    def write(self, blob: Descriptor, data: bytes) -> None:
        """Write a blob, whole or not at all.

        Raises:
            StateError: its bytes are not what the descriptor says; then nothing is written.
        """
        if self.has(blob):
            return
        if (len(data), hash_bytes(data)) != (blob.size, blob.digest):
            raise StateError(
                f"{blob.digest[:19]}… came with other bytes than its hash says",
                hint="ask again; if it stays so, what sent it is broken or lies",
            )
        file = self.path(blob.digest)
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, data, mode=0o644)
        self._seen.add(blob.digest)

    def read(self, digest: str) -> bytes:
        """Return a blob's bytes.

        Raises:
            StateError: it is not there.
        """
        try:
            return self.path(digest).read_bytes()
        except OSError as error:
            raise StateError(f"{digest[:19]}… is not in {self.folder}", hint="build or pull the image again") from error

    def image(self, descriptor: Descriptor) -> OciImage:
        """Return the image that a manifest in this layout describes."""
        manifest = json.loads(self.read(descriptor.digest))
        return OciImage(descriptor, manifest, json.loads(self.read(manifest["config"]["digest"])))

    def assemble(self, layers: Iterable[Descriptor], config: Mapping[str, Any]) -> OciImage:
        """Write configuration and manifest of an image of these layers. Its annotations are the configuration's labels."""
        labels = config.get("config", {}).get("Labels") or {}
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": self.add(canonical_json(config), CONFIG).to_json(),
            "layers": [layer.to_json() for layer in layers],
            "annotations": dict(labels),
        }
        return OciImage(self.add(canonical_json(manifest), MANIFEST), manifest, config)

    def set_image(self, image: OciImage, reference: str) -> None:
        """Make an image the one of this layout, under a reference such as `1.2.0`; remove blobs of others."""
        row = {**image.descriptor.to_json(), "platform": _platform(image.config), "annotations": {_REF: reference}}
        keep = {image.descriptor.digest, *(blob.digest for blob in image.blobs)}
        (self.folder / "oci-layout").write_bytes(canonical_json({"imageLayoutVersion": "1.0.0"}))
        (self.folder / "index.json").write_bytes(
            canonical_json({"schemaVersion": 2, "mediaType": INDEX, "manifests": [row]})
        )
        for file in (self.folder / "blobs" / "sha256").iterdir():
            if f"sha256:{file.name}" not in keep:
                file.unlink()

    def read_image(self) -> OciImage:
        """Return the image of this layout.

        Raises:
            StateError: the layout has no image, or more than one.
        """
        try:
            rows = json.loads((self.folder / "index.json").read_bytes())["manifests"]
            (row,) = rows
            return self.image(Descriptor.from_json(row))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StateError(f"{self.folder} is no OCI layout with one image", hint="build the image again") from error

    def to_tar(self) -> bytes:
        """Return the layout as one file, as `skopeo copy oci-archive:…`, `podman load` and `docker load` take it."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for file in sorted(path for path in self.folder.rglob("*") if path.is_file()):
                info = tarfile.TarInfo(file.relative_to(self.folder).as_posix())
                info.size, info.mode = file.stat().st_size, 0o644
                with file.open("rb") as stream:
                    archive.addfile(info, stream)
        return buffer.getvalue()


def _platform(config: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(config[key]) for key in ("architecture", "os", "variant") if config.get(key)}
