"""Servers with faulty resource templates and prompts."""

from __future__ import annotations

from typing import ClassVar

from tests.broken_servers.healthy import Json, SampleServer
from tests.broken_servers.protocol import HealthyYoungster


class Templated(HealthyYoungster):
    """Lists a resource template."""

    template: ClassVar[Json] = {"uriTemplate": "zoo://cage/{animal}", "name": "cage"}

    def method(self, method: str, params: Json) -> Json:
        if method == "resources/templates/list":
            return {"resourceTemplates": [self.template]}
        return super().method(method, params)


class Outdated(Templated):
    """Omits ttlMs for the resource of its template, whose argument has completions."""

    rule = "modern.cacheable"

    def complete(self, ref: Json) -> Json:
        named = {"completion": {"values": ["lion"]}}
        return named if ref.get("uri") == "zoo://cage/{animal}" else super().complete(ref)

    def read_resource(self, uri: object, *, modern: bool) -> Json:
        return self.read(uri) if uri == "zoo://cage/lion" else super().read_resource(uri, modern=modern)

    def per_request(self, method: str, params: Json) -> Json:
        result = super().per_request(method, params)
        if params.get("uri") == "zoo://cage/lion":
            del result["ttlMs"]
        return result


class NamelessTemplate(Templated):
    """A resource template without a name."""

    rule = "content.schema"
    template: ClassVar[Json] = {"uriTemplate": "zoo://{cage}"}


class Vacant(Templated):
    """Answers any unknown resource of its template with empty contents."""

    rule = "features.unknown-resource"

    def read_resource(self, uri: object, *, modern: bool) -> Json:
        return {"contents": []} if str(uri).startswith("zoo://cage/") else super().read_resource(uri, modern=modern)


class DemandingPrompt(SampleServer):
    """Fails without an argument of its prompt that is not marked as required."""

    rule = "features.optional-arguments"

    def prompts(self) -> list[Json]:
        return [{"name": "tour", "description": "Plan a walk through the zoo.", "arguments": [{"name": "who"}]}]
