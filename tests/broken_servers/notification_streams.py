"""Servers with faulty notification streams, which the per-request lifecycle has."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from typing import Any

from tests.broken_servers.healthy import Json, SampleServer
from tests.broken_servers.protocol import HealthyYoungster


class Abrupt(SampleServer):
    """Opens a stream without an acknowledgement."""

    rule = "modern.listen"

    def acknowledge(self, about: Any, honoured: Json) -> None:
        for uri in honoured.get("resourceSubscriptions", []):
            self.on_stream(about, "notifications/resources/updated", uri=uri)
        super().acknowledge(about, honoured)


class Unsteady(SampleServer):
    """Opens its second stream without an acknowledgement."""

    rule = "modern.listen"
    opened = 0

    def acknowledge(self, about: Any, honoured: Json) -> None:
        self.opened += 1
        if self.opened == 2:
            self.on_stream(about, "notifications/prompts/list_changed")
        super().acknowledge(about, honoured)


class Confiding(SampleServer):
    """Sends log messages on a stream of notifications."""

    rule = "modern.listen-filtered"

    def acknowledge(self, about: Any, honoured: Json) -> None:
        super().acknowledge(about, honoured)
        self.on_stream(about, "notifications/message", level="info", data="fed")


class Vague(SampleServer):
    """Does not report the accepted part of a filter."""

    rule = "modern.listen"

    def acknowledge(self, about: Any, honoured: Json) -> None:
        self.on_stream(about, "notifications/subscriptions/acknowledged")


class Tagless(SampleServer):
    """Does not say to which stream a notification belongs."""

    rule = "modern.listen-request-id"

    def on_stream(self, about: Any, method: str, **params: Any) -> None:
        self.tell(method, **params)


class Overeager(SampleServer):
    """Accepts more than the client requested."""

    rule = "modern.listen-filtered"

    def acknowledge(self, about: Any, honoured: Json) -> None:
        super().acknowledge(about, {"toolsListChanged": True, "promptsListChanged": True})


class Favoring(SampleServer):
    """Reports a change only on the newest of the streams that requested it."""

    rule = "modern.listen-delivered"

    def listen(self, about: Any, wanted: Any) -> Json | None:
        if not isinstance(wanted, dict):
            return super().listen(about, wanted)
        kinds = ("resourceSubscriptions", "resourcesListChanged")
        self.acknowledge(about, {key: wanted[key] for key in kinds if key in wanted})
        if list(wanted) == ["resourcesListChanged"]:
            self.on_stream(about, "notifications/resources/list_changed")
        return None


class Monogamist(SampleServer):
    """Acknowledges one stream only."""

    rule = "modern.listen-concurrent"
    opened = 0

    def acknowledge(self, about: Any, honoured: Json) -> None:
        self.opened += 1
        if self.opened != 2:
            super().acknowledge(about, honoured)


class Replacing(SampleServer):
    """Ends a stream when another one is opened."""

    rule = "modern.listen-concurrent"
    before: Any = None

    def acknowledge(self, about: Any, honoured: Json) -> None:
        super().acknowledge(about, honoured)
        if self.before is not None:
            self.write({"jsonrpc": "2.0", "id": self.before, "result": self.envelope("subscriptions/listen", {})})
        self.before = about


class Waiting(SampleServer):
    """Reads no more requests after a stream was closed."""

    rule = "modern.after-listen"
    companions = frozenset({"modern.listen-invalid-filter"})
    streams, closed = False, False

    def acknowledge(self, about: Any, honoured: Json) -> None:
        super().acknowledge(about, honoured)
        self.streams = True

    def respond(self, message: Json) -> Json | None:
        self.closed |= self.streams and message.get("method") == "notifications/cancelled"
        return None if self.closed else super().respond(message)


class Indiscriminate(SampleServer):
    """Takes any filter."""

    rule = "modern.listen-invalid-filter"

    def listen(self, about: Any, wanted: Any) -> Json | None:
        if isinstance(wanted, dict):
            return super().listen(about, wanted)
        return {"jsonrpc": "2.0", "id": about, "result": self.envelope("subscriptions/listen", {})}


class Metronome(HealthyYoungster):
    """Pings the client at intervals, also of the lifecycle in which the server sends no requests."""

    rule = "server-messages.modern-requests"
    own_process = True

    def begin(self) -> None:
        threading.Thread(target=self.beat, daemon=True).start()

    def beat(self) -> None:
        for number in itertools.count():
            time.sleep(0.2)
            os.write(1, b'{"jsonrpc": "2.0", "id": "beat-%d", "method": "ping"}\n' % number)


class HealthyDeaf(SampleServer):
    """Has no notification streams, like servers with constant lists."""

    def listen(self, about: Any, wanted: Any) -> Json | None:
        raise self.unknown_method()


class HealthyConcluder(SampleServer):
    """Responds to the request of a canceled stream, like servers on the Go SDK."""

    own_process = True
    open: frozenset[Any] = frozenset()

    def respond(self, message: Json) -> Json | None:
        about = message["params"].get("requestId") if message.get("method") == "notifications/cancelled" else None
        if about in self.open:
            self.write({"jsonrpc": "2.0", "id": about, "result": self.envelope("subscriptions/listen", {})})
        return super().respond(message)

    def acknowledge(self, about: Any, honoured: Json) -> None:
        self.open |= {about}
        super().acknowledge(about, honoured)


class HealthyLeaver(SampleServer):
    """Writes to stdout when it is told to end, after the client stopped reading."""

    own_process = True

    def begin(self) -> None:
        signal.signal(signal.SIGTERM, self.leave)

    def leave(self, *_: object) -> None:
        os.write(1, b"The zoo closes.\n")  # bypasses a write that the handler interrupted
        os._exit(0)
