"""What waits for people is told where they are, each thing once: to real receivers on loopback. Hostile names stay text everywhere."""

from __future__ import annotations

import email
import email.policy
import json
import socketserver
import threading
from functools import partial
from html import unescape

import pytest

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.decisions import decision
from mcpfactory_pipeline.reporting import make_notifier
from mcpfactory_pipeline.views.inbox import read_inbox
from mcpfactory_pipeline.views.inbox_notifications import notify_inbox_items
from tests.pipeline.fake_stages import STAGES
from tests.pipeline.staged_workspace import configured
from tests.pipeline.test_notices import Receiver, run_with

HOSTILE = "<!channel> *bold* [x](http://evil.example) & </at> \r\nBcc: all@example.org\u202e\x00"
BOARD = "https://factory.example.org"


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.close()


class Post(socketserver.ThreadingTCPServer):
    """A mail server that keeps what it gets: `mails` are sender, receivers and text. `refuses` is answered to MAIL."""

    allow_reuse_address, daemon_threads = True, True

    def __init__(self) -> None:
        self.mails, self.logins, self.refuses = [], [], ""
        super().__init__(("127.0.0.1", 0), _Session)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def port(self) -> int:
        return self.server_address[1]


class _Session(socketserver.StreamRequestHandler):
    def say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())

    def handle(self) -> None:
        sender, to = "", []
        self.say("220 here")
        for raw in self.rfile:
            line = raw.decode().rstrip("\r\n")
            verb = line.split(" ")[0].upper()
            if verb == "EHLO":
                self.say("250-here\r\n250-8BITMIME\r\n250 AUTH PLAIN")
            elif verb == "AUTH":
                self.server.logins.append(line)
                self.say("235 come in")
            elif verb == "MAIL" and self.server.refuses:
                self.say(self.server.refuses)
            elif verb == "MAIL":
                sender = line
                self.say("250 ok")
            elif verb == "RCPT":
                to.append(line.partition(":")[2].strip("<>"))
                self.say("250 ok")
            elif verb == "DATA":
                self.say("354 go on")
                text = b""
                while (part := self.rfile.readline()) != b".\r\n":
                    text += part
                self.server.mails.append((sender, to, text))
                self.say("250 kept")
            elif verb == "QUIT":
                self.say("221 bye")
                return
            else:
                self.say("250 ok")


@pytest.fixture
def post():
    post = Post()
    yield post
    post.shutdown()
    post.server_close()


@pytest.fixture
def asking(workspace):
    """A workspace with these settings of its events, in which a candidate waits for an approval."""
    return partial(run_with, workspace)


def tell(space):
    return notify_inbox_items(space, stages=STAGES)


def mail(post: Post, more: str = "") -> str:
    return f'[pipeline.events.mail]\nto = ["ada@example.org", "grace@example.org"]\nfrom = "factory@example.org"\nsmtp = "127.0.0.1:{post.port}"\ntls = "none"\n{more}'


def parsed(post: Post, number: int = 0):
    return email.message_from_bytes(post.mails[number][2], policy=email.policy.default)


def test_slack_is_told_what_waits_once_and_nothing_that_nobody_has_to_do(asking, receiver):
    space = asking(f'webhook = "{receiver.url}"\nformat = "slack"\ndashboard = "{BOARD}/"')
    assert receiver.events == [], "a run that passes asks nothing of anybody"
    assert [item.kind for item in tell(space)] == [item.kind for item in read_inbox(space, stages=STAGES)]
    told = [event for event in receiver.events if "/decide/production/" in event["text"]]
    (approval,) = told
    assert set(approval) == {"text", "mrkdwn", "unfurl_links", "unfurl_media"}
    assert approval["mrkdwn"] is False
    assert approval["text"].splitlines()[0].startswith("books: approval: ")
    assert f"{BOARD}/servers/books/decide/production/" in approval["text"].splitlines()
    assert "mcpfactory pipeline approve books --channel production" in approval["text"]
    before = len(receiver.got)
    assert tell(space) == []
    assert len(receiver.got) == before
    decision.approve(space, "books", "production", stages=STAGES)
    assert [item.kind for item in tell(space)] == ["ready"], "somebody may promote it now"


def test_what_could_not_be_delivered_is_told_the_next_time(asking, receiver, capsys):
    space = asking(f'webhook = "{receiver.url}"\nformat = "slack"\nattempts = 1')
    receiver.answers = [500] * 20
    assert tell(space) == []
    assert "not delivered to the webhook: it answered 500" in capsys.readouterr().err
    receiver.answers = []
    assert tell(space)


def test_one_thing_that_a_receiver_refuses_is_told_again_and_no_other(asking, receiver):
    space = asking(f'webhook = "{receiver.url}"\nformat = "slack"\nattempts = 1')
    decision.hold(space, "books", "staging", reason="not now", stages=STAGES)
    decision.hold(space, "books", "production", reason="not now", stages=STAGES)
    receiver.answers = [400]
    first = len(tell(space))
    assert len(receiver.got) == first + 1 > 1
    receiver.answers = [400]
    assert tell(space) == []
    assert len(receiver.got) == first + 2
    assert len(tell(space)) == 1
    assert tell(space) == []
    assert len(receiver.got) == first + 3


def test_teams_gets_a_card_whose_words_are_text_and_whose_button_leads_to_the_decision(asking, receiver):
    space = asking(f'webhook = "{receiver.url}"\nformat = "teams"\ndashboard = "{BOARD}"')
    tell(space)
    cards = [event["attachments"][0]["content"] for event in receiver.events]
    (card,) = [card for card in cards if card["actions"][0]["url"].endswith("/servers/books/decide/production/")]
    assert receiver.events[0]["type"] == "message"
    assert receiver.events[0]["attachments"][0]["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert {block["type"] for block in card["body"]} == {"RichTextBlock"}
    assert {run["type"] for block in card["body"] for run in block["inlines"]} == {"TextRun"}
    assert card["actions"][0] == {
        "type": "Action.OpenUrl",
        "title": "Open in the dashboard",
        "url": f"{BOARD}/servers/books/decide/production/",
    }


def test_mail_tells_all_of_a_command_at_once_to_everybody(asking, post):
    space = asking(f'dashboard = "{BOARD}"\n{mail(post)}')
    assert post.mails == []
    told = tell(space)
    ((sender, to, _),) = post.mails
    assert (sender.split()[1], to) == ("FROM:<factory@example.org>", ["ada@example.org", "grace@example.org"])
    got = parsed(post)
    assert (got["From"], got["To"]) == ("factory@example.org", "ada@example.org, grace@example.org")
    assert got["Subject"].startswith("[space] ")
    assert got["Auto-Submitted"] == "auto-generated"
    assert got["Message-ID"].endswith("@example.org>")
    text = got.get_content()
    assert all(item.command in text for item in told)
    assert f"{BOARD}/servers/books/decide/production/" in text
    assert tell(space) == []
    assert len(post.mails) == 1


def test_the_password_of_the_mail_comes_from_the_environment_and_without_it_nothing_is_sent(
    asking, post, monkeypatch, capsys
):
    settings = mail(post, 'user = "factory"\npassword_variable = "MAIL_PASSWORD"\n')
    monkeypatch.setenv("MAIL_PASSWORD", "hunter2hunter2")
    space = asking(settings)
    assert tell(space)
    assert len(post.logins) == len(post.mails) == 1
    assert b"hunter2" not in post.mails[0][2]
    monkeypatch.delenv("MAIL_PASSWORD")
    decision.hold(space, "books", "production", reason="audit", stages=STAGES)
    assert tell(space) == []
    assert len(post.mails) == 1
    assert "mail is off, because MAIL_PASSWORD is not set" in capsys.readouterr().err


def test_a_mail_server_that_cannot_encrypt_gets_nothing_where_it_has_to(asking, post, monkeypatch, capsys):
    monkeypatch.setenv("MAIL_PASSWORD", "hunter2hunter2")
    more = 'user = "factory"\npassword_variable = "MAIL_PASSWORD"\n'
    space = asking(mail(post, more).replace('tls = "none"\n', ""))
    assert tell(space) == []
    assert (post.mails, post.logins) == ([], [])
    assert (
        "not mailed by 127.0.0.1: it does not offer what `tls` or `user` of [pipeline.events.mail] ask for"
        in capsys.readouterr().err
    )


def test_a_mail_server_that_refuses_or_is_gone_fails_nothing_and_its_words_are_not_shown(asking, post, capsys):
    space = asking(mail(post))
    post.refuses = "550 secret-of-the-server"
    assert tell(space) == []
    post.shutdown()
    post.server_close()
    assert tell(space) == []
    err = capsys.readouterr().err
    assert "not mailed by 127.0.0.1: it refuses `from`" in err
    assert "not mailed by 127.0.0.1: connection refused" in err
    assert "secret-of-the-server" not in err


def notify(space, **facts) -> None:
    notifier = make_notifier(space)
    about = {"event": "waits", "server": "books", "kind": "failed", "message": HOSTILE, "command": HOSTILE}
    notifier.notify({**about, **facts})
    notifier.close()


@pytest.mark.parametrize("form", ["slack", "teams", "mail"])
def test_hostile_names_stay_text_in_every_form(workspace, receiver, post, form):
    settings = mail(post) if form == "mail" else f'webhook = "{receiver.url}"\nformat = "{form}"'
    notify(configured(workspace, f"[pipeline.events]\n{settings}\n"), server=HOSTILE)
    if form == "slack":
        (event,) = receiver.events
        assert not set("<>") & set(event["text"])
        assert "<!channel>" in unescape(event["text"])
        assert event["text"].count("\n") <= HOSTILE.count("\n") + 1
    elif form == "teams":
        (event,) = receiver.events
        runs = [run for block in event["attachments"][0]["content"]["body"] for run in block["inlines"]]
        assert {run["type"] for run in runs} == {"TextRun"}
        assert "[x](http://evil.example)" in runs[0]["text"]
    else:
        got = parsed(post)
        assert got["Bcc"] is None
        assert set(got.keys()) == {
            "Subject",
            "From",
            "To",
            "Date",
            "Message-ID",
            "Auto-Submitted",
            "Content-Type",
            "Content-Transfer-Encoding",
            "MIME-Version",
        }
        assert "<!channel>" in got["Subject"]
        assert not set("\r\n\x00\u202e") & set(got["Subject"])
        assert post.mails[0][1] == ["ada@example.org", "grace@example.org"]
    body = json.dumps(receiver.events) + "".join(str(text) for *_, text in post.mails)
    assert "\\u202e" not in body.replace("\\\\u202e", "")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('format = "discord"', 'format: "discord" is not valid'),
        ('dashboard = "factory.example.org"', "dashboard: .* is not a valid URL"),
        ("mail = 3", "mail: must be a table"),
        ('[pipeline.events.mail]\ncolour = "red"', "unknown field 'colour'"),
        ('[pipeline.events.mail]\nto = []\nfrom = "a@b.example"', r"mail.to(\[1\])?: .* is not valid"),
        ('[pipeline.events.mail]\nto = ["a@b.example\\nBcc: c@d.example"]\nfrom = "a@b.example"', r"mail.to(\[1\])?: .* is not valid"),
        ('[pipeline.events.mail]\nto = ["a@b.example"]\nfrom = "nobody"', 'mail.from: "nobody" is not valid'),
        ('[pipeline.events.mail]\nto = ["a@b.example"]\nfrom = "a@b.example"', "smtp is missing"),
        ('[pipeline.events.mail]\nto = ["a@b.example"]\nfrom = "a@b.example"\nsmtp = "x:y"', "mail.smtp: .* is not valid"),
        ('[pipeline.events.mail]\nto = ["a@b.example"]\nfrom = "a@b.example"\nsmtp = "x"\ntls = "ssl"', 'mail.tls: "ssl" is not valid'),
        ('[pipeline.events.mail]\nto = ["a@b.example"]\nfrom = "a@b.example"\nsmtp = "x"\nuser = "u"', "password_variable"),
        ('[pipeline.events.mail]\nto = ["a@b.example"]\nfrom = "a@b.example"\nsmtp = "x"\ntls = "none"\nuser = "u"\npassword_variable = "P"', "password unencrypted"),
    ],
)  # fmt: skip
def test_settings_that_cannot_be_used_are_refused(workspace, settings, message):
    with pytest.raises(ConfigError, match=message) as caught:
        configured(workspace, f"[pipeline.events]\n{settings}\n")
    assert caught.value.hint
