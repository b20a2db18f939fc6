"""AWS Signature Version 4: what a request carries over a real socket is checked by the rules of the specification, written here a second time.

The rules are checked by the example that AWS publishes (IAM ListUsers, 2015-08-30), so that not two of our own say yes to each other.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import Any
from urllib.parse import parse_qsl, quote

import pytest

from mcpfactory_runtime.upstream import Body, Field, Operation, Parameter, SecurityScheme, Upstream
from mcpfactory_runtime.upstream.auth import aws_region, aws_service
from tests.loopback_server import LoopbackHandler, serving
from tests.subtest_table import parametrize_subtests

pytestmark = pytest.mark.anyio

SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
NAMES = ("S_KEY_ID", "S_SECRET", "S_SESSION", "S_REGION")
KEYS = {"S_KEY_ID": "AKIDEXAMPLE", "S_SECRET": SECRET}


def canonical(method: str, target: str, headers: dict[str, str], signed: str, body_hash: str, *, twice: bool) -> str:
    """The canonical request (`Create a canonical request` of the AWS documentation). `twice`: all services but S3 encode the path again."""
    path, _, query = target.partition("?")
    pairs = sorted((quote(a, safe="-_.~"), quote(b, safe="-_.~")) for a, b in parse_qsl(query, keep_blank_values=True))
    lines = [f"{name}:{' '.join(headers[name].split())}\n" for name in signed.split(";")]
    uri = quote(path, safe="/-_.~") if twice else path
    return "\n".join([method, uri, "&".join(f"{a}={b}" for a, b in pairs), "".join(lines), signed, body_hash])


def signature(secret: str, date: str, scope: str, request: str) -> str:
    text = "\n".join(["AWS4-HMAC-SHA256", date, scope, hashlib.sha256(request.encode()).hexdigest()])
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def test_the_rules_below_give_the_signature_that_aws_publishes() -> None:
    headers = {
        "content-type": "application/x-www-form-urlencoded; charset=utf-8",
        "host": "iam.amazonaws.com",
        "x-amz-date": "20150830T123600Z",
    }
    empty = hashlib.sha256(b"").hexdigest()
    target = "/?Action=ListUsers&Version=2010-05-08"
    request = canonical("GET", target, headers, "content-type;host;x-amz-date", empty, twice=True)
    assert hashlib.sha256(request.encode()).hexdigest() == (
        "f536975d06c0309214f805bb90ccff089219ecd68b2577efef23edd43b7e1a59"
    )
    scope = "20150830/us-east-1/iam/aws4_request"
    assert signature(SECRET, "20150830T123600Z", scope, request) == (
        "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
    )


class Service(LoopbackHandler):
    """The service: it keeps what it was sent, and says the signature and the secret again."""

    seen: list[tuple[str, str, dict[str, str], bytes]]

    def get(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.seen.append((self.command, self.path, headers, self.body()))
        self.answer(200, {"echo": headers.get("authorization", ""), "secret": SECRET})

    put = get


def checked(seen: tuple[str, str, dict[str, str], bytes], *, service: str, region: str = "us-east-1") -> str:
    """Check a request as the service would; the headers that are signed."""
    method, target, headers, body = seen
    found = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/([\w/-]+), SignedHeaders=([\w;-]+), Signature=([0-9a-f]{64})",
        headers["authorization"],
    )
    assert found
    scope, signed, given = found.groups()
    assert scope == f"{headers['x-amz-date'][:8]}/{region}/{service}/aws4_request"
    digest = hashlib.sha256(body).hexdigest()
    request = canonical(method, target, headers, signed, digest, twice=service != "s3")
    assert given == signature(SECRET, headers["x-amz-date"], scope, request)
    return signed


def of(service: str) -> list[SecurityScheme]:
    return [SecurityScheme("hmac", "awsSigV4", NAMES, service=service)]


TEXT = (
    Parameter("name", "path", "name"),
    Parameter("query", "query", "q"),
    Parameter("tags", "query", "tag", explode=True),
    Parameter("target", "header", "X-Amz-Target"),
)
READ = Operation("GET", "/items/{name}", TEXT, security=(("hmac",),))
WRITE = Operation(
    "PUT", "/items/{name}", TEXT, Body("application/json", (Field("text", ("text",)),)), security=(("hmac",),)
)
ARGUMENTS: dict[str, Any] = {"name": "arn:aws:x/a b:ü*", "query": "a b&c=ü+~", "tags": ["b", "a", ""]}


@pytest.mark.parametrize("service", ["lambda", "s3", "execute-api"])
async def test_a_request_is_signed_as_it_is_sent(service: str) -> None:
    seen: list[Any] = []
    with serving(Service, seen=seen) as url:
        environ = {**KEYS, "MCPFACTORY_BASE_URL": f"{url}/stage"}
        async with Upstream("https://aws.invalid", of(service), environ=environ) as upstream:
            for operation, arguments in [
                (READ, {"name": "plain"}),
                (READ, ARGUMENTS),
                (WRITE, {**ARGUMENTS, "text": "ü", "target": "Things.Put"}),
            ]:
                result = await upstream.send(operation, arguments)
                assert SECRET not in str(result.structured)
    signed = [checked(one, service=service) for one in seen]
    assert "content-type" in signed[2]
    assert "x-amz-target" in signed[2]
    assert len(seen) == 3


@parametrize_subtests(
    "host, service, region",
    [
        ("s3.amazonaws.com", "s3", "us-east-1"),
        ("s3-eu-west-1.amazonaws.com", "s3", "eu-west-1"),
        ("lambda.ap-southeast-2.amazonaws.com", "lambda", "ap-southeast-2"),
        ("abc.execute-api.us-gov-west-1.amazonaws.com", "execute-api", "us-gov-west-1"),
        ("sts.cn-north-1.amazonaws.com.cn", "sts", "cn-north-1"),
        ("iam.amazonaws.com", "iam", "us-east-1"),
        ("my-bucket.s3.amazonaws.com", "s3", "us-east-1"),
        ("my-bucket.s3.dualstack.eu-west-1.amazonaws.com", "s3", "eu-west-1"),
        ("api.shop.example", "api", "us-east-1"),
        ("us-east-2.console.example", "", "us-east-2"),
        ("", "", "us-east-1"),
    ],
)
def test_the_address_names_service_and_region(host: str, service: str, region: str) -> None:
    assert (aws_service(host), aws_region(host)) == (service, region)
