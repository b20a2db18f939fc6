"""OCI images: a layout in a folder, and pull and push by the distribution specification 1.1.

A layout is a folder of blobs named after their hash, and an index that says which of them is the image. Media types and
fields are those of the OCI image specification 1.1: image-layout.md, manifest.md, config.md.

A push sends blobs first, then the manifest. What is there already is not sent again, so a push that broke off is continued
by pushing again. What comes back is held against its hash.
"""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urljoin, urlsplit

from mcpfactory_pipeline.base.errors import ConfigError, JsonRecord, PublishError, StateError, TargetError
from mcpfactory_pipeline.base.files import replace_file
from mcpfactory_pipeline.base.hashing import hash_bytes, hash_file
from mcpfactory_pipeline.delivery.publish.http import (
    HttpClient,
    HttpResponse,
    is_loopback,
    read_json,
    require_url,
    summary,
)

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
            raise StateError(
                f"{digest!r} is not a valid sha256 digest", hint="name the image by sha256:<64 hexadecimal digits>"
            )
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
                f"{blob.digest[:19]}…: the content does not match its hash",
                hint="try again; if it fails again, check the registry and any proxy",
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
            raise StateError(
                f"{self.folder} is not an OCI layout with one image", hint="build the image again"
            ) from error

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


_DOCKER_MANIFEST: Final = "application/vnd.docker.distribution.manifest.v2+json"
_DOCKER_INDEX: Final = "application/vnd.docker.distribution.manifest.list.v2+json"
_KINDS: Final = (MANIFEST, INDEX, _DOCKER_MANIFEST, _DOCKER_INDEX)
_ACCEPTED: Final = ", ".join(_KINDS)
_DOCKER_LAYER: Final = "application/vnd.docker.image.rootfs.diff.tar.gzip"
_REFERENCE: Final = re.compile(
    r"(?:(?P<host>localhost(?::\d+)?|[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::\d+)?|[a-z0-9-]+:\d+|\[[0-9a-f:]+\](?::\d+)?)/)?"
    r"(?P<name>[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class ImageReference:
    """An image reference: `host/name:tag@digest`; tag and digest can be ""."""

    host: str
    name: str
    tag: str = ""
    digest: str = ""

    def __str__(self) -> str:
        tag, digest = self.tag and f":{self.tag}", self.digest and f"@{self.digest}"
        return f"{self.host}/{self.name}{tag}{digest}"

    @property
    def selector(self) -> str:
        """Return the reference part that requests a manifest: the digest if present, else the tag."""
        return self.digest or self.tag or "latest"

    @property
    def url(self) -> str:
        """The repository's URL: https, and http only to this machine."""
        plain = is_loopback(urlsplit(f"//{self.host}").hostname or "")
        host = "registry-1.docker.io" if self.host == "docker.io" else self.host
        return require_url(f"{'http' if plain else 'https'}://{host}/v2/{self.name}", "the image")


def parse_reference(text: str) -> ImageReference:
    """Return the parts of a reference; like docker, it uses docker.io if the host is missing.

    Raises:
        ConfigError: the text is not a reference.
    """
    found = _REFERENCE.fullmatch(text)
    if found is None:
        raise ConfigError(
            f"{text!r} is not a valid image reference",
            hint="use a reference such as ghcr.io/acme/notes:1.0.0 or …@sha256:<64 hexadecimal digits>",
        )
    host, name = found["host"] or "docker.io", found["name"]
    if host == "docker.io" and "/" not in name:
        name = f"library/{name}"
    return ImageReference(host, name, found["tag"] or "", found["digest"] or "")


class ImageRegistry:
    """One repository of a registry. `login` is user and password, or None; it goes to the registry and its token service only."""

    def __init__(self, wire: HttpClient, reference: ImageReference, login: tuple[str, str] | None = None) -> None:
        self._wire, self._reference, self._login = wire, reference, login
        self._url = reference.url
        self._headers: dict[str, str] = {}
        self._basic = False

    def find(self, wanted: str) -> str | None:
        """Return the digest of the manifest with a tag (or digest); None if not found."""
        answer = self._request("HEAD", f"/manifests/{wanted}", headers={"accept": _ACCEPTED})
        if answer.status_code == 404:
            return None
        self._expect(answer, 200, f"{wanted} cannot be looked up")
        digest = answer.headers.get("docker-content-digest", "")
        return digest or hash_bytes(self._manifest(wanted, "")[1])

    def missing_blobs(self, image: OciImage) -> tuple[Descriptor, ...]:
        """Return the blobs of an image that are not there yet."""
        return tuple(blob for blob in image.blobs if not self._has(blob))

    def push(self, layout: Layout, image: OciImage, tag: str) -> tuple[Descriptor, ...]:
        """Upload an image under a tag; return the blobs that were missing. The tag is written last: it never names half an image.

        Raises:
            TargetError: the registry fails.
            PublishError: it refuses.
        """
        sent = self.missing_blobs(image)
        for blob in dict.fromkeys(sent):
            self._send(blob, layout.read(blob.digest))
        body = layout.read(image.descriptor.digest)
        answer = self._request(
            "PUT", f"/manifests/{tag}", headers={"content-type": image.descriptor.mediaType}, content=body
        )
        self._expect(answer, 201, f"the manifest of {tag} was not taken")
        if (kept := self.find(tag)) != image.descriptor.digest:
            raise TargetError(
                f"{self._reference} stored {tag} as {kept} instead of {image.descriptor.digest}",
                hint="check whether it is a mirror that rewrites images",
            )
        return sent

    def pull(self, layout: Layout, platform: Mapping[str, str]) -> OciImage:
        """Download an image into a layout and check the hash of every blob; `platform` selects one of several.

        Raises:
            TargetError: the registry fails, or sends an invalid image.
            PublishError: the image does not exist.
        """
        try:
            image = self._pulled(layout, platform)
            declared, found_layers = len(image.config["rootfs"]["diff_ids"]), len(image.layers)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise TargetError(
                f"{self._reference} is not a valid image: {error!r}", hint="check the reference"
            ) from error
        if declared != found_layers:
            raise TargetError(
                f"{self._reference} has {found_layers} layers, but its configuration declares {declared}",
                hint="name another",
            )
        return image

    def _pulled(self, layout: Layout, platform: Mapping[str, str]) -> OciImage:
        kind, body = self._manifest(self._reference.selector, self._reference.digest)
        if kind in {INDEX, _DOCKER_INDEX}:
            rows = json.loads(body)["manifests"]
            fitting = [row for row in rows if platform.items() <= dict(row.get("platform", {})).items()]
            if not fitting:
                raise PublishError(
                    f"{self._reference} has no image for {'/'.join(platform.values())}", hint="name another image"
                )
            kind, body = self._manifest(fitting[0]["digest"], fitting[0]["digest"])
        manifest = json.loads(body)
        for row in (manifest["config"], *manifest["layers"]):
            blob = Descriptor.from_json(row)
            if not layout.has(blob):
                layout.write(blob, self._blob(blob))
        if kind == MANIFEST:
            return layout.image(layout.add(body, kind))
        # What Docker's tools made is the same image with other names of its types.
        return layout.assemble(
            [
                Descriptor(LAYER if row["mediaType"] == _DOCKER_LAYER else row["mediaType"], row["digest"], row["size"])
                for row in manifest["layers"]
            ],
            json.loads(layout.read(manifest["config"]["digest"])),
        )

    # --- steps ---

    def _has(self, blob: Descriptor) -> bool:
        answer = self._request("HEAD", f"/blobs/{blob.digest}")
        if answer.status_code not in {200, 307, 404}:
            raise _registry_error(answer, f"{blob.digest[:19]}… cannot be looked up")
        return answer.status_code != 404

    def _send(self, blob: Descriptor, data: bytes) -> None:
        answer = self._request("POST", "/blobs/uploads/")
        self._expect(answer, 202, "no upload was opened")
        place = _resolve_url(f"{self._url}/blobs/uploads/", answer.headers.get("location", ""))
        place += ("&" if urlsplit(place).query else "?") + urlencode({"digest": blob.digest})
        answer = self._request("PUT", place, headers={"content-type": "application/octet-stream"}, content=data)
        self._expect(answer, 201, f"{blob.digest[:19]}… was not taken")

    def _manifest(self, wanted: str, digest: str) -> tuple[str, bytes]:
        answer = self._request("GET", f"/manifests/{wanted}", headers={"accept": _ACCEPTED})
        self._expect(answer, 200, f"{self._reference} is not there")
        if digest and hash_bytes(answer.content) != digest:
            raise TargetError(
                f"{self._reference}: the content does not match its hash",
                hint="check the registry and any proxy: the content was damaged or replaced",
            )
        kind = answer.headers.get("content-type", "").partition(";")[0]
        return kind if kind in _KINDS else json.loads(answer.content).get("mediaType", MANIFEST), answer.content

    def _blob(self, blob: Descriptor) -> bytes:
        answer = self._request("GET", f"/blobs/{blob.digest}")
        if answer.is_redirect:  # to where the registry stores its blobs: without our credentials
            place = _resolve_url(self._url, answer.headers.get("location", ""))
            answer = self._wire.request("GET", _safe_url(place))
        self._expect(answer, 200, f"{blob.digest[:19]}… did not come")
        return answer.content

    def _request(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> HttpResponse:
        """Return a request to a path of the repository, or to a URL that the registry named; with credentials where it asks for them."""
        url = f"{self._url}{path}" if path.startswith("/") else _safe_url(path)
        ours = urlsplit(url)[:2] == urlsplit(self._url)[:2]

        def once() -> HttpResponse:
            mine = self._headers if ours else {}
            auth = self._login if ours and self._basic else None
            return self._wire.request(method, url, headers={**mine, **(headers or {})}, content=content, auth=auth)

        answer = once()
        if answer.status_code == 401 and ours and self._authorize(answer.headers.get("www-authenticate", "")):
            answer = once()
        return answer

    def _authorize(self, challenge: str) -> bool:
        """Get what a challenge asks for (RFC 7235; the token service is that of the distribution specification)."""
        scheme, _, rest = challenge.partition(" ")
        if scheme.lower() == "basic":
            again, self._basic = self._basic, self._login is not None
            return self._basic and not again
        if scheme.lower() != "bearer":
            return False
        parameters = dict(re.findall(r'(\w+)="([^"]*)"', rest))
        query = urlencode({key: parameters[key] for key in ("service", "scope") if key in parameters})
        answer = self._wire.request("GET", f"{_safe_url(parameters.get('realm', ''))}?{query}", auth=self._login)
        self._expect(answer, 200, "the registry's token service gave no token")
        found = read_json(answer)
        token = (found.get("token") or found.get("access_token")) if isinstance(found, dict) else None
        before, self._headers = self._headers, {"authorization": f"Bearer {token}"} if token else {}
        return bool(token) and self._headers != before

    def _expect(self, answer: HttpResponse, status: int, what: str) -> None:
        if answer.status_code == status:
            return
        if answer.status_code in {401, 403}:
            raise PublishError(
                f"{self._reference.host}: {what}: {summary(answer)}",
                hint="name the variables with user and password, or ask for permission to write there",
            )
        if answer.status_code == 404:
            raise PublishError(f"{self._reference.host}: {what}: {summary(answer)}", hint="check the reference")
        raise _registry_error(answer, what)


def _registry_error(answer: HttpResponse, what: str) -> TargetError:
    return TargetError(
        f"the registry failed: {what}: {summary(answer)}", hint="publish again to continue where it stopped"
    )


def _resolve_url(url: str, place: str) -> str:
    try:
        return urljoin(url, place)
    except ValueError as error:  # as for `https://[::1`
        raise TargetError(
            f"the registry points to {place!r}, which is not a valid URL", hint="check that it is a registry"
        ) from error


def _safe_url(url: str) -> str:
    """Return a URL that an answer named: neither in the clear beyond this machine, nor with credentials in it."""
    require_url(url, "what the registry points to")
    return url
