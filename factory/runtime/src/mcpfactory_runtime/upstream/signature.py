"""AWS Signature Version 4: the keys, and the headers that sign one request as it is sent.

botocore signs (the extra `aws`): it is what AWS itself uses, and the smaller libraries encode paths with an ARN in them
wrongly. It is loaded at the first signed request.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from mcpfactory_runtime.server.errors import ToolError

__all__ = ["AwsKeys", "sign"]

Headers = tuple[tuple[str, str], ...]

_REGION: Final = re.compile(r"[.-]((?:af|ap|ca|cn|eu|il|me|mx|sa|us)(?:-[a-z]+)+-\d)\.")
_USUAL: Final = "us-east-1"
_AWS: Final = ".amazonaws.com"


@dataclass(frozen=True, slots=True, repr=False)
class AwsKeys:
    """What a signature is made with. `region` and `service` may be "": the address names them."""

    key_id: str
    secret: str
    session_token: str = ""
    region: str = ""
    service: str = ""


def sign(keys: AwsKeys, method: str, url: str, headers: Headers, content: bytes | None) -> Headers:
    """Return the headers of a request with its signature, which holds for minutes: each attempt has its own.

    Raises:
        ToolError: botocore is not installed.
    """
    try:
        from botocore import auth, awsrequest, credentials  # type: ignore[import-untyped]  # noqa: PLC0415 - a large library, optional, without types
    except ImportError:
        raise ToolError(
            "Requests to this API are signed (AWS Signature Version 4), and the library for it is not installed.\n"
            "hint: the person who runs this server installs mcpfactory-runtime[aws]."
        ) from None
    host = urlsplit(url).hostname or ""
    service = keys.service or service_of(host)
    signer = auth.S3SigV4Auth if service == "s3" else auth.SigV4Auth
    signed = awsrequest.AWSRequest(method, url, dict(headers), content)
    given = credentials.Credentials(keys.key_id, keys.secret, keys.session_token or None)
    signer(given, service, keys.region or region_of(host)).add_auth(signed)
    return tuple((str(name), str(value)) for name, value in signed.headers.items())


def region_of(host: str) -> str:
    """Return the region that a host of AWS names; the usual one when it names none."""
    found = _REGION.search(f".{host}")
    return found[1] if found else _USUAL


def service_of(host: str) -> str:
    """Return what stands before the region in a host of AWS: `execute-api` of `abc.execute-api.eu-west-1.amazonaws.com`."""
    if found := _REGION.search(f".{host}"):
        before = f".{host}"[: found.start()].removesuffix(".dualstack")
    else:
        before = host.removesuffix(_AWS) if host.endswith(_AWS) else host.partition(".")[0]
    return before.rpartition(".")[2]
