"""Rules of `mcpfactory validate` that close a gate for a violation of a MUST requirement, or why no rule does.

`GATES` names the rules that close a gate for a violation of a row; milder forms of a violation may only cost points.
`NO_GATE` has the reason for each other MUST row. `test_table` compares both with the rows and the rules.
"""

from __future__ import annotations

from typing import Final

# Rules → rows.
_GATES: Final = {
    "legacy.ids": "message.id-types",
    "legacy.ids http.request-ids tool-calls.overlapping": "message.response-id",
    "legacy.response-shape": "message.result-xor-error message.error-shape",
    "legacy.ids http.modern-error-id": "message.error-id",
    "legacy.notifications legacy.late-cancellation modern.notifications": "message.notification-silence",
    "server-messages.json-rpc": "message.notification-no-id",
    "legacy.responses": "message.response-silence",
    "legacy.batch": "batch.one-answer batch.partial",
    "process.stdout legacy.unescaped-text modern.unescaped-text content.encoding": "message.utf-8",
    "legacy.unknown-method modern.unknown-method": "message.unknown-method",
    "modern.error-codes": "message.reserved-codes message.retired-codes",
    "content.schema server-messages.schema": "message.schema sampling.ask elicitation.form elicitation.flat elicitation.url",
    "legacy.unknown-members": "message.unknown-members meta.unknown-keys",
    "modern.metadata": "meta.required-keys",
    "http.modern-status": "meta.required-keys-status meta.undeclared-capability-status version.unsupported-status",
    "modern.missing-capability modern.error-data": "meta.undeclared-capability",
    "modern.stateless modern.metadata": "meta.no-memory",
    "modern.listen-request-id": "meta.subscription-id listen.tagged",
    "modern.result-type": "result-type.every",
    "modern.result-type-values": "result-type.values version.extensions-off task.declared",
    "process.initializes legacy.server-info": "initialize.answer",
    "legacy.version-negotiation": "initialize.same-version",
    "legacy.version-negotiation legacy.unknown-version": "initialize.other-version",
    "lists.declared lists.tools lists.resources lists.prompts features.subscribe": "initialize.offer",
    "server-messages.undeclared-requests": "initialize.respect-capabilities sampling.no-tools-before",
    "process.initializes modern.discover": "version.discover",
    "modern.discover": "version.discover-all",
    "modern.unknown-version modern.error-data": "version.unsupported",
    "modern.unknown-version modern.removed-methods": "version.per-request",
    "legacy.version-negotiation legacy.ping": "version.handshake-beside",
    "modern.removed-methods http.modern-session server-messages.modern-requests": "version.no-cross-talk",
    "modern.removed-methods": "version.retired-methods",
    "modern.list-after-calls": "version.lists-alike",
    "process.stdout": "stdio.one-line stdio.only-messages",
    "server-messages.modern-requests": "stdio.no-requests http-modern.no-requests input-required.instead",
    "http.origin": "origin.validated",
    "http.get": "http.one-endpoint http-get.stream",
    "http.notification-status": "http.accepted",
    "http.content-type": "http.request",
    "http.answer-beside-stream": "http-get.no-responses",
    "http.one-stream": "http-get.one-stream",
    "http.event-ids": "resume.ids",
    "http.replayed-messages": "resume.own-stream",
    "tool-calls.answered": "polling.early-end",
    "http.session-id": "session.ascii",
    "http.unknown-session http.deleted-session": "session.ended",
    "http.version-header http.modern-status": "version-header.unsupported",
    "http.modern-notification-status": "http-modern.notification",
    "server-messages.modern-changes server-messages.progress-token": "http-modern.related",
    "http.modern-no-event-ids": "http-modern.no-resume",
    "http.modern-session": "http-modern.no-sessions",
    "http.modern-version": "http-modern.version-missing http-modern.version-mismatch",
    "modern.unknown-version http.modern-status": "http-modern.version-unsupported",
    "modern.unknown-method http.modern-status": "http-modern.unknown-method",
    "http.modern-error-id": "http-modern.error-id",
    "http.modern-method": "http-modern.mcp-method",
    "http.modern-name": "http-modern.mcp-name",
    "http.modern-header-base64": "http-modern.encoded-name http-modern.markers",
    "http.modern-header-names http.modern-header-values": "http-modern.header-case",
    "http.modern-arguments": (
        "param-header.missing param-header.mismatch param-header.invalid param-header.absent param-header.status "
        "param-header.decoded"
    ),
    "schemas.header-arguments": "param-header.reachable param-header.types param-header.names param-header.definition",
    "lists.declared": "tools.capability resources.capability prompts.capability",
    "lists.tools schemas.tool-shape": "tools.list",
    "tool-calls.answered tool-calls.some-succeed tool-calls.cases content.schema": "tools.call",
    "schemas.input-valid schemas.input-object": "tools.input-schema",
    "api-failures.is-error": "tools.tool-failure",
    (
        "tool-calls.argument-validation security.path-traversal security.command-injection "
        "security.template-injection security.option-injection security.sql-injection"
    ): "tools.validate",
    "security.secret-exposure security.credentials-in-texts": "tools.sanitize logging.no-secrets",
    "content.base64 content.mime-syntax content.schema": "tools.image tools.audio prompts.content",
    "content.schema content.base64": "tools.embedded",
    "content.schema": "tools.link input-required.request-kinds",
    "tool-calls.output-schema": "tools.structured tools.structured-any tools.output-schema",
    "content.structured-object": "tools.structured-object",
    "schemas.output-object": "tools.output-schema-object",
    "lists.resources content.schema": "resources.list",
    "lists.uris": "resources.templates resources.scheme",
    "content.schema content.lone-surrogates": "resources.read-text",
    "content.base64": "resources.read-blob",
    "features.subscribe": "resources.subscribe",
    "features.unsubscribe server-messages.resource-updates": "resources.unsubscribe",
    "server-messages.resource-updates": "resources.not-subscribed",
    "features.unknown-resource modern.error-codes": "resources.not-found",
    "features.unknown-resource": "resources.no-empty-contents",
    "features.resource-uri": "resources.validate-uri",
    "security.path-traversal": "resources.traversal",
    "lists.prompts content.schema": "prompts.list",
    "features.prompt content.schema": "prompts.get",
    "features.completion": "completion.complete completion.at-most-100",
    "server-messages.log-level": "logging.level",
    "features.log-level server-messages.schema": "logging.levels",
    "server-messages.modern-logs": "logging.silent logging.own-stream",
    "legacy.ping": "ping.answer",
    "legacy.late-cancellation modern.notifications": "cancel.late",
    "server-messages.cancelled modern.listen-filtered": "cancel.only-listen",
    "server-messages.progress-token": "progress.asked-for progress.token-types progress.stops",
    "server-messages.progress-increases": "progress.increases",
    "lists.tools lists.resources lists.prompts schemas.names-unique": "pages.complete",
    "lists.tools lists.resources lists.prompts content.schema": "pages.end",
    "modern.cacheable": "caching.hints caching.ttl caching.scope",
    "modern.cache-pages": "caching.pages",
    "schemas.input-valid schemas.output-valid": "json-schema.default-dialect",
    "schemas.refs-local": "json-schema.no-fetch",
    "server-messages.undeclared-requests modern.input-required": "sampling.declared sampling.tools-declared elicitation.declared elicitation.mode-declared",
    "tool-calls.consent": "elicitation.actions",
    "modern.input-required": "input-required.methods input-required.shape input-required.declared",
    "modern.request-state": "input-required.integrity",
    "modern.listen": "listen.acknowledged",
    "modern.listen-filtered": "listen.only-wanted",
    "modern.listen-concurrent": "listen.several",
    "server-messages.modern-changes": "listen.no-listen-no-news",
    "authorization.token": "auth.invalid-token auth.signature auth.both-lifecycles",
    "authorization.metadata": "auth.metadata auth.metadata-issuers",
    "authorization.challenge authorization.metadata": "auth.challenge",
    "tasks.undeclared": "task-core.capability task-core.undeclared",
    "tasks.creation": "task-core.created",
    "tasks.creation tasks.guessable-ids": "task-core.id",
    "tasks.final-status": "task-core.transitions task-core.cancelled-stays",
    "tasks.fields": "task-core.timestamps task-core.ttl task-core.get",
    "tasks.result": "task-core.result task-core.failed",
    "tasks.result-waits": "task-core.result-waits",
    "tasks.related-task": "task-core.related",
    "tasks.list": "task-core.list",
    "tasks.cancellation": "task-core.cancel",
    "tasks.late-cancellation": "task-core.cancel-ended",
    "tasks.unknown-task": "task-core.unknown",
    "tasks.required": "task-core.required",
}
# Reason → rows.
_REASONS: Final = {
    (
        "only a finding (`legacy.invalid-json`, `legacy.not-json-rpc`, `legacy.params`, `legacy.keeps-running`): correct "
        "clients send no such message"
    ): "message.error-without-id message.not-json message.not-json-rpc message.params-object stdio.wrong-line",
    "only a finding (`content.meta-keys`): no client reads keys that it does not know": "meta.key-grammar",
    "only a finding (`legacy.early-ping`): clients hardly send a ping before initialize": "initialize.ping-before",
    "only a finding (`content.revision`): the oldest revisions say SHOULD": "initialize.respect-version fallback.no-link",
    (
        "only a finding (`legacy.batch`, `legacy.batch-without-requests`, `legacy.batch-empty`, "
        "`legacy.batch-initialize`): clients hardly send batches, and the next revision dropped them"
    ): "initialize.not-in-batch batch.accept batch.no-answer batch.http-202 batch.responses batch.empty",
    "only a finding (`http.no-batches`, `http.modern-no-batches`): it is mainly a requirement for clients": "batch.refused http.single http-modern.single",
    "only a finding (`tool-calls.ping`): a server may run one call at a time": "stdio.interleave",
    "only a finding (`http.origin`): another status from 400 to 499 also refuses the request": "origin.status",
    "only a finding (`http.modern-get`): clients of this revision send neither method": "http-modern.get-delete",
    "only a finding (`http.modern-header-whitespace`): some HTTP libraries keep the blanks": "http-modern.header-space",
    "only a finding (`legacy.unknown-tool`): widely used SDKs answer with `isError`": "tools.unknown-tool",
    (
        "only a finding (`features.completion-argument`, `features.unknown-completion`): the specification says SHOULD "
        "for these errors"
    ): "completion.validate",
    "only a finding (`server-messages.log-declared`): clients ignore messages that they do not expect": "logging.capability",
    "only a finding (`modern.input-ends`): a tool may need more answers than `validate` gives": "input-required.repeat",
    "only a finding (`authorization.metadata`): the URL may be in WWW-Authenticate instead": "auth.well-known",
    "only a finding (`tasks.first-status`): a task may have ended before the answer": "task-core.begins-working",
    "only a finding (`tasks.forbidden`): the specification says SHOULD for the error": "task-core.forbidden",
    "race: an answer and the cancellation can cross; on stdio, `server-messages.after-cancellation` is a finding": "stdio.cancelled-silence cancel.not-initialize",
    "not observable: it concerns what the server does inside, or what a handler receives": (
        "message.internal-error meta.trace-context completion.context json-schema.other-dialect sampling.refused "
        "roots.list input-required.any-process input-required.no-retry auth.no-passthrough"
    ),
    "not observable: the client cannot know what the author declared; `content.schema` checks only the form": (
        "tools.annotations tools.title tools.icons resources.mime-type resources.metadata resources.title "
        "resources.icons prompts.title prompts.icons json-schema.unchanged elicitation.default elicitation.titled-enum"
    ),
    "not observable: it is the choice of the server or the author": "resume.replay pages.four-lists elicitation.no-secrets input-required.several task-core.progress",
    "not observable: `validate` cannot make a resource change": "listen.resources",
    "not observable: nobody reads a stream that the client closed": "http-modern.disconnect",
    "not observable: a server with a second endpoint is two servers for `validate`": "version.same-endpoint",
    "not observable: only a flood of calls could show the limit": "tools.rate-limit completion.rate-limit",
    "not observable: a server that answers without credentials may be public": "auth.missing-token",
    "not observable: it takes two users, or other valid tokens, and `validate` has one token": (
        "session.foreign tools.access-control elicitation.identity auth.insufficient-scope auth.expiry auth.audience "
        "auth.issuer auth.hierarchies task-core.owner"
    ),
    "no rule yet: `validate` does not use the HTTP+SSE transport": "http-sse.endpoints http-sse.endpoint-event http-sse.messages http-sse.origin",
    "no rule yet: `validate` does not declare the extension or capability": (
        "sampling.tool-results elicitation.empty-is-form task.advertised task.result-type task.durable task.get "
        "task.complete task.all-questions task.keys task.update task.cancel task.unknown-get task.failed task.tool-error "
        "task.status-listen task.no-progress task.header task.unguessable task.owner skill.advertised skill.list "
        "skill.get skill.digest skill.read skill.unknown skill.limits"
    ),
    "no rule yet: no rule looks for members that the revision of the session lacks": (
        "result-type.absent-before fallback.fields fallback.no-structured completion.no-capability caching.absent-before "
        "elicitation.no-default elicitation.enum elicitation.no-multi elicitation.url-absent"
    ),
    "no rule yet: `validate` does not send such messages": (
        "message.id-null message.id-other message.id-in-flight initialize.first version.modern-after-handshake "
        "version.handshake-after-probe origin.first http.not-accepted session.begun param-header.unknown "
        "tools.malformed-call sampling.malformed roots.changed auth.malformed-token auth.every-request auth.query "
        "auth.before-anything auth.session-owner task.undeclared-methods task.retired task.ignores-old "
        "task.status-undeclared"
    ),
    "no rule yet: nothing checks this in the answers": (
        "resources.template-read completion.capability caching.not-input-required elicitation.url-id "
        "elicitation.url-no-id elicitation.url-valid auth.https task.required"
    ),
}

GATES: Final = {row: tuple(rules.split()) for rules, rows in _GATES.items() for row in rows.split()}
"""Row → rules."""
NO_GATE: Final = {row: reason for reason, rows in _REASONS.items() for row in rows.split()}
"""Row → reason."""
