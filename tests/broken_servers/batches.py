"""Servers that handle batches of messages incorrectly, which one revision has."""

from __future__ import annotations

from tests.broken_servers.healthy import Json, SampleServer


class Serialiser(SampleServer):
    """Responds to the members of a batch separately."""

    rule = "legacy.batch"
    tolerated = True

    def batch(self, messages: list[Json]) -> list[Json] | Json | None:
        answers = super().batch(messages)
        if isinstance(answers, list):
            for answer in answers:
                self.write(answer)
            return None
        return answers


class Receipting(SampleServer):
    """Responds to a batch of notifications."""

    rule = "legacy.batch-without-requests"

    def batch(self, messages: list[Json]) -> list[Json] | Json | None:
        if messages and all("id" not in message for message in messages):
            return [{"jsonrpc": "2.0", "id": None, "result": {}}]
        return super().batch(messages)


class Hollow(SampleServer):
    """Does not respond to an empty batch."""

    rule = "legacy.batch-empty"

    def batch(self, messages: list[Json]) -> list[Json] | Json | None:
        return super().batch(messages) if messages else None


class Joiner(SampleServer):
    """Accepts initialize in a batch."""

    rule = "legacy.batch-initialize"

    def batch(self, messages: list[Json]) -> list[Json] | Json | None:
        if any(message.get("method") == "initialize" for message in messages):
            return [answer for message in messages if (answer := self.respond(message)) is not None]
        return super().batch(messages)


class Selective(SampleServer):
    """Sends only the results in a batch, and no errors."""

    rule = "legacy.batch"

    def batch(self, messages: list[Json]) -> list[Json] | Json | None:
        answers = super().batch(messages)
        return [one for one in answers if "error" not in one] if isinstance(answers, list) else answers
