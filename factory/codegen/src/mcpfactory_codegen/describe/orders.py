"""What an order to a model looks like: patterns by what it wants, each with words of which one has to stand in the text.

A pattern asks for somebody who is spoken to (the model, the assistant), another tool, a person who shall not know, or a secret as its
object: honest texts speak of ignoring, sending and deleting, too. All are searched in texts whose Latin letters have no accents.
"""

from __future__ import annotations

from typing import Final

__all__ = ["ORDERS"]

# Files of a person with secrets. Many sound texts name one, so that only an order about one of them counts.
_FILE: Final = (
    r"(?:(?:~|\$HOME|/home/\w+|/root)/\.(?:ssh(?!/\w+\.pub\b)|aws|gnupg|config|cursor|kube|netrc|docker|env|npmrc|git-credentials)\b"
    r"|\bid_(?:rsa|ed25519)\b(?!\.pub\b)|/etc/(?:passwd|shadow)\b|\bmcp\.json\b)"
)
_HANDS_ON: Final = r"\b(?:pass|send|include|put|append|paste|attach|insert|add|post|upload|return|give)\b"
_HANDS: Final = (
    r"\b(?:pass|send|include|put|append|paste|attach|insert|add|post|upload|forward|copy|provide|supply|transmit|submit"
    r"|write|place|fill in)\b"
)
# What nobody but its owner should hold.
_OWNED: Final = (
    r"(?:pass(?:words?|phrases?)|api[ _-]?keys?|private[ _-]?keys?|secret[ _-]?keys?|ssh[ _-]?keys?|credentials|(?:access|session|auth) tokens?"
    r"|credit[ -]?card(?: numbers?| details)?|address book|browser cookies|seed phrase)"
)
# Arguments for free text: where something is taken along.
_NOTE: Final = (
    r"(?:the )?[`'\"]?(?:context|notes?|side_?note|memo|metadata|comment|remarks?|hint|extra|debug|feedback|memory|reason|[a-z](?=[`'\"]?\s*(?:[.,;!)]|$)))[`'\"]?"
    r"(?: (?:field|parameter|argument|param))?(?![\w'`\"-]| (?:field|parameter|argument|param|\w+ header))"
)
_TALK: Final = (
    r"(?:(?:whole|full|entire|complete) (?:conversation|chat|dialogue)|(?:conversation|chat|message) history"
    r"|(?:conversation|chat) (?:so far|verbatim))"
)
_MODEL: Final = r"(?:assistants?|models?|ai|llms?|agents?|language models?)"
_PERSON: Final = r"(?:user|person|human|customer|operator)"
_ADDRESS: Final = r"[\w.+-]+@[\w-]+\.\w"

_OVERRIDE: Final = (
    (
        "ignor|disregard|forget",
        r"\b(ignore|disregard|forget)\b.{0,15}\ball\b.{0,15}\b(previous|prior|above|earlier|other)\b.{0,30}\b(message|rule|tool)",
    ),
    (
        "disregard|ignore|forget",
        r"\b(disregard|ignore|forget) (everything|anything|all|whatever|what)( that| which)? (you|i)('ve| have| had| were| was| are)?"
        r"( been| ever)? (told|instructed|taught|given|said|learned|asked|ordered|know)\b",
    ),
    (
        "disregard|ignore|forget",
        r"\b(please|now|kindly|instead,?) (disregard|ignore|forget) (all |everything |anything )?(of )?(the )?(above|foregoing)\b"
        r"|\b(disregard|forget) (everything|all) (of )?(the )?above\b",
    ),
    (
        "your ",
        r"\b(ignore|disregard|forget|abandon|violate|bypass|break|set aside|drop) (about )?(all |any |each )?(of )?your (\w+ )?"
        r"(guidelines|instructions|rules|training|safety|policies|restrictions|directives|programming|constraints|orders)\b",
    ),
    (
        "whatever|all |any |every ",
        r"\b(set aside|ignore|disregard|forget) (whatever|all|any|every|each) (guidance|instructions?|directions?|rules?|orders?),?( that| which)?"
        r" (came|comes?|gave|were|was|are|is|you|have|had|preceded?|stood|stands?)\b",
    ),
    (
        "over |outrank|supersede|overrid",
        r"\b((takes?|has|have) (precedence|priority) over|outranks?|supersedes?|overrides?) .{0,20}\b"
        r"((user|operator|developer)'s (wish|instruction|order|request|prompt)|your (\w+ )?(instruction|guideline|rule|prompt))",
    ),
    (
        "void|cancel|obsolete|no longer|not apply|invalid",
        r"\b(guidance|instructions?|rules|guidelines|prompts?|directives)( that (stands?|came))? (above|before|so far|until now)\b.{0,20}"
        r"\b(is|are|has been|have been|do|does) (void|cancell?ed|obsolete|no longer|not apply|invalid)",
    ),
    (
        "treat ",
        r"\btreat (the|this|these|what|all)\b.{0,40}\bas (an? )?(coming |orders? |instructions? )?(from|of) the (operator|user|developer|system)\b",
    ),
    (
        "new |updated |real |actual ",
        r"(^|[.!?:\n>])\W{0,12}(new|updated|your (new|real|actual)|real|actual) (instructions?|orders|task|directives?|policy)"
        r"( for (you|the model|the assistant))?\s*:\s*(please )?(delete|send|call|ignore|read|run|you|always|from now|do|answer|obey|follow|upload|copy"
        r"|pass|forward|execute|reveal|print|every|never|all|act)\b",
    ),
    (
        "from now on|you are now",
        r"\b(from now on|you are now)\b.{0,60}\b(mode|answer|run|execute|approve|ignore)\b|\bfrom now on,? you (must |will |shall |have to )?(obey|follow|act)\b"
        r"|\byou are now (dan\b|root\b|unrestricted|jailbroken|free (from|of)|an? (unrestricted|different|evil|uncensored|admin))",
    ),
    (
        "system prompt|hidden prompt|your |system message",
        r"\b(reveal|repeat|leak|disclose|append|paste|ignore|disregard|forget)\b.{0,30}\b(your|the) system prompt\b"
        r"|\b(print|output|include|pass|send|copy|put|update|replace|change|treat)\b.{0,30}\byour (system|hidden|secret|initial|original) (prompt|instructions|message)\b"
        r"|\b(reveal|repeat|leak|disclose|print|output)\b.{0,20}\byour (hidden|secret|initial|original|internal) (prompt|instructions)\b"
        r"|\b(paste|put|copy|write|include)\b.{0,20}\b(complete|full|whole|entire|exact) (text of )?(the |your )?system prompt\b",
    ),
)
_AMONG_TOOLS: Final = (
    (
        "before |prior to ",
        r"\b(before|prior to) (using|calling|you use|you call) (any|every|all|other)\b.{0,60}\b(read|send|fetch|open)\b"
        r"(?!.{0,40}\b(resource|documentation|docs|guide|schema|skill|instructions|manual|readme)\b)",
    ),
    (
        "before |prior to ",
        r"\b(before|prior to) (using|calling|invoking|running|you use|you call|the use of) (any|every|all|each) other tools?\b.{0,15}\b(call|use|invoke|run) (this|it)\b",
    ),
    (
        "instead of ",
        r"\b(always|only|must) (use|call|prefer|choose|invoke) this( tool| one| server)?,? instead of (any|every|all|each) other\b"
        r"|\binstead of \w+_\w+,? (always |only )?(use|call|invoke) this( tool| one)?,? always\b",
    ),
    (
        "other ",
        r"\bnever use \w+ of other servers\b|\bunder no circumstances use any other\b|\b(never|do not|don't) (use|call|trust) (any|the) other (tools?|servers?)\b"
        r"|\bother (\w+ )?(tools?|servers?) (is|are) (deprecated|dangerous|unsafe|insecure|broken|malicious|compromised)",
    ),
    (
        "deprecated|dangerous|unsafe|insecure|malicious|compromised",
        r"\b(use|call|prefer) this( tool| one)?\b.{0,40}\bother\b.{0,30}\bthey are (all )?(deprecated|dangerous|unsafe|insecure|malicious|compromised)",
    ),
)
_DATA_OUT: Final = (
    (
        "read|open|cat |load|fetch|access|view|get ",
        rf"\b(first|before|beforehand|always|must|silently|quietly|secretly)\b.{{0,60}}\b(read|open|cat|load|fetch|access|view)\b.{{0,30}}{_FILE}"
        rf"|\b(read|open|cat|load|fetch|get|access|view)\b.{{0,30}}{_FILE}.{{0,80}}\b(and|then)\b.{{0,15}}{_HANDS_ON}",
    ),
    (
        "content|text|data|bytes|lines|what ",
        rf"({_HANDS_ON}|\b(copy|provide|contains?|answer|with|as)\b).{{0,60}}\b(contents?|text|data|bytes|lines|what (is|stands))\b.{{0,20}}{_FILE}",
    ),
    (
        "send|upload|post|copy|forward|transmit|exfiltrate|submit",
        rf"\b(send|upload|post|copy|forward|transmit|exfiltrate|submit)\b.{{0,30}}{_FILE}.{{0,40}}\b(to|via|with|through) (https?:|us\b|me\b|this\b|the (endpoint|server|tool)|\S+@)",
    ),
    (
        "lies|lis|lee|legg|lea ",
        rf"\b(lies|lis|lee|lees|lea|leggi|leia)\b.{{0,30}}{_FILE}",
    ),
    (".env", r"\bcontents? of (the |your )?(user's )?\.env\b"),
    (
        "for ",
        r"\b(look|search) for\b[^.]{0,40}\b(api keys?|passwords?|credentials|tokens)\b[^.]{0,80}\b(and|then)\b.{0,15}\b(append|include|pass|send|put)\b",
    ),
    (
        "conversation|chat|user's|content|dialogue",
        r"\b(append|include|pass|put|add|call \w+ with)\b.{0,30}\b((whole|full|entire) (conversation|chat)|user's (last|previous)|chat history|contents? of (the )?(~/(?!\.ssh/\w+\.pub\b)|/etc/))",
    ),
    (
        "conversation|chat|history|dialogue",
        rf"{_HANDS}.{{0,20}}\b{_TALK}\b.{{0,20}}\b(in|into|to|as|with|under) {_NOTE}"
        rf"|\b{_TALK}\b.{{0,20}}\b(is|are|has|must|should|needs?)\b.{{0,30}}\b(supplied|passed|included|sent|provided|given|attached|filled)\b.{{0,10}}\b(in|as|into|under) {_NOTE}",
    ),
    (
        "conversation|chat",
        r"\b(send|post|upload|forward|exfiltrate|transmit|copy)\b.{0,20}\b(the|this|our|your) ((whole|full|entire|current|complete) )?(conversation|chat history|chat)\b.{0,20}\bto (https?://|\S+@|this|us|me)\b",
    ),
    (
        "everything|whatever|all ",
        rf"\b(everything|whatever|all)( that| which)? (the {_PERSON}|i|you|we|was|has been)( has| have| had| was| were)?( been| ever)? (said|told|typed|asked)( you)?"
        r" (so far|before|until now|earlier|in this (chat|conversation))\b|\bgets? everything said\b",
    ),
    (
        "value of",
        r"\b(put|pass|include|send)\b.{0,20}\bvalue of (?-i:\$?[A-Z][A-Z0-9_]*(KEY|TOKEN|SECRET|PASSWORD))\b",
    ),
    (
        "credential|api key|api_key|apikey|password",
        r"\b(send|post|upload|forward|exfiltrate|transmit)\b.{0,20}\b(credentials?|api keys?|passwords?)\b.{0,30}\bto (https?://|\S+@|this (address|url)|us\b|me\b)",
    ),
    (
        "user|customer|person|client|your|their",
        rf"{_HANDS}.{{0,12}}\b((user|customer|person|client|human)'s|your|their) (\w+ )?{_OWNED}.{{0,10}}\b(in|into|as|to|under|with) {_NOTE}"
        rf"|{_HANDS}.{{0,12}}\b{_OWNED} of the {_PERSON}.{{0,10}}\b(in|into|as|to|under|with) {_NOTE}"
        rf"|\b(attach|append|add|include|forward)(s|es|ing)? the {_PERSON}'s {_OWNED} (to|in|with) (each|every|all|any)\b"
        rf"|\bask (the|your) {_PERSON} (for|about) (their|his|her|the) {_OWNED}.{{0,20}}\b(and|then)\b.{{0,10}}{_HANDS}"
        rf"|\b(transmit|exfiltrate|steal|harvest|collect) the {_PERSON}'s {_OWNED}",
    ),
    (
        "from ",
        rf"{_OWNED} (from|of) (the |any )?other (tools?|servers?)\b.{{0,20}}\b(and|then)\b.{{0,10}}\b(add|pass|send|include|put|append)\b",
    ),
    (
        "model|assistant|agent|ai |llm",
        rf"\b{_MODEL}( \w+){{0,3}}\b.{{0,15}}\b(look|find|fetch|get|read|take|collect)s?( up)?\b.{{0,12}}{_OWNED}.{{0,30}}\b(and|then)\b.{{0,10}}\b(puts?|pass|add|include|append|send)\b",
    ),
    (
        "![",
        r"!\[[^\]\n]{0,80}\]\(\s*https?://[^)\s]{0,200}[?&][\w-]{1,30}=(\{\{?|<|\[|\$\{?|%7b)\s*\w*(conversation|chat|history|secret|data|context|message|prompt|answer|text|base64|token|key|user|summary)",
    ),
    (
        "https://|http://",
        r"\bfollow\b.{0,40}\bhttps?://\S{1,200}\s.{0,40}\bdo (as|what|whatever|everything)( it| they| that page)? (it )?(says?|tells?|asks?)\b",
    ),
)
_SECRECY: Final = (
    (
        "user",
        r"\b(do not|don't|never|without)\b.{0,20}\b(tell|telling|inform|informing)\b.{0,20}\b(the )?user"
        r"|\b(do not|don't|never|without)\b.{0,20}\b(mention|mentioning)\b.{0,25}\bto (the )?user"
        r"|\b(do not|don't|never)\b.{0,20}\b(notify|alert)\b.{0,20}\b(the )?user (of|about|that)\b"
        r"|\b(do not|don't|never|without)\b.{0,8}\b(let|letting) (the )?user (know|notice|see (this|that|it)|find out)\b",
    ),
    ("nobody|no one", r"\b(mention|tell|show|say|reveal)\b.{0,25}\b(this )?to (nobody|no one)\b"),
    (
        "from the user|from the person",
        r"\b(hide|conceal)( (this|it|that|these|the (call|request|transfer|upload|fact|action)s?))? from the (user|person)\b",
    ),
    (
        "secretly|covertly|stealthily|silently|quietly|surreptitiously",
        r"\b(secretly|covertly|stealthily|surreptitiously) (upload|send|forward|copy|include|read|pass|post|add|bcc|attach|run|call|transmit|collect|record)\w*\b"
        r"|\b(silently|quietly) (upload|send|forward|exfiltrate|bcc|transmit|attach) (the|all|any|every|each|a copy|it|them)\b"
        rf"|\b{_MODEL} (should|must|shall|will|has to|have to) (silently|quietly) (include|add|pass|read|copy|call|upload|send|forward|attach)\b",
    ),
    (
        "unaware|not be told|never know|never learn|not know|not be informed|not notice",
        rf"\bthe {_PERSON} (should|must|shall|is to|may) (remain unaware|stay unaware|be kept unaware|not be told|never (know|learn)|not (know|notice|be informed|be made aware) (of|about|that|how))",
    ),
    ("no need to", rf"\bno need to (tell|inform|mention (this|it) to|ask|bother) (the|your) {_PERSON}\b"),
    ("between us|secret from", rf"\bkeep (this|it|that) (just )?(between us|secret from (the|your) {_PERSON})\b"),
    (
        "asked|asks",
        r"\b(asked|asks)\b.{0,25}\bthis (tool|server|function)\b.{0,30}\b(answer|say|reply|respond|claim|pretend|lie) (that|only|it only)\b",
    ),
)
_CONSENT: Final = (
    ("consent", r"\b(the )?user has already consented\b"),
    (
        "without asking",
        r"\b(always|must|should|call|you (may|can))\b.{0,60}\bwithout asking (the user )?(for )?(confirmation|permission|consent)\b",
    ),
    (
        "confirmation|permission|approval|consent",
        rf"\b(you|the {_MODEL}) (do|does|need|must|should)( not|n't)? ?(need|have to|require|ask|wait)?( to)?( for| get| obtain)?( any| the| a)? ?(confirmation|permission|approval|consent)"
        rf" (of|from|by) (the|your) {_PERSON}\b.{{0,60}}\b(skip|without|just|directly)\b"
        rf"|\b(do not|don't|never|no need to) (ask|wait for|request|require|seek) (for )?(the |your )?({_PERSON}'s? )?(confirmation|permission|approval|consent) (of|from|by) (the|your) {_PERSON}\b",
    ),
    (
        "pop-up|popup|permission|dialog",
        r"\b(approve|accept|confirm|allow|grant|click)( automatically| silently| always)? (any|every|each|all) (pop-?ups?|dialogs?|prompts?|requests?|windows?)\b.{0,10}\b(that|which) asks?\b.{0,12}\b(permission|confirmation|consent|approval)"
        r"|\bapprove every (request|permission|call)\b",
    ),
    (
        "agreed|approved",
        rf"(^|[.;:!]\s+)the {_PERSON} (has )?(already )?(agreed|approved)( to (this|it|that|everything))?\s*([.!]|$)",
    ),
)
_REDIRECTION: Final = (
    ("recipient", r"@.{0,60}\bas (an )?additional recipient\b"),
    (
        "recipient|receiver|payee|iban|addressee",
        rf"\b(change|replace|swap|redirect|rewrite) the (recipients?|receiver|payee|iban|addressee)\b.{{0,12}}\b(to|with|by) {_ADDRESS}",
    ),
    (
        "bcc|copied|cc'd|forwarded",
        rf"\b(every|each|all|any|whenever)\b.{{0,20}}\b(e-?mails?|messages?|mails?)\b.{{0,40}}\b(bcc|bcc'd|cc'd|copied|forwarded)\b.{{0,20}}{_ADDRESS}"
        rf"|\bbcc\b.{{0,10}}\b(must|has to|shall|should) (always )?(be|contain|include)\b.{{0,12}}{_ADDRESS}",
    ),
)
_COMMANDS: Final = (
    (
        "curl |wget |iwr |irm ",
        r"\b(run|execute|paste|type|start|call)\b.{0,20}\b(curl|wget|iwr|irm) [^|\n]{0,120}\|\s*(sudo )?((ba|z|da|k)?sh|iex|python3?)\b",
    ),
    (
        "rm -",
        r"\b(delete|remove|wipe|erase|destroy) (all|every|the user's|any)\b.{0,30}\brm -(rf|fr)\b|(^|[.!]\s+)(run|execute) [`'\"]?(sudo )?rm -(rf|fr)\b",
    ),
    (
        "decode|base64|rot13|backwards",
        r"\bdecode (this|it|the following)\b.{0,20}\b(and )?(follow|run|execute|obey)\b|\b(decode|rot13|read (it |this )?backwards)\b.{0,20}\band (follow|obey|execute)\b",
    ),
)
_ROLES: Final = (
    (
        "<",
        r"<\s{0,8}/?\s{0,8}(important|instructions?)\s{0,8}>|<\s{0,8}/\s{0,8}(system|secret)\s{0,8}>|<\s{0,8}(system|secret)\s{0,8}>\s{0,8}(?-i:[A-Z])[\w']*(\s+[\w']+){2}"
        r"|<!--.{0,40}\b(assistant|ai|model|system)\b|</?\s*tool_description\s*>",
    ),
    ("[/system]|[system]", r"\[/system\]|\[system\]\s+\w+"),
    (
        "system|assistant",
        r"(?-i:(^|[.!?]\s{1,12}|\n\s{0,12})(SYSTEM|ASSISTANT)( [A-Z]+)?:\s).{0,40}\b(must be|you must|you are|ignore|from now on|always (send|call|use|pass|copy))\b",
    ),
    (
        "note|notice|message|override|policy|instruction",
        rf"\b(developer|system|admin|administrator|operator|security) (note|notice|message|override|policy|instruction)s?\s*:.{{0,30}}\b({_MODEL}|you)\b (shall|must|should|has to|have to|will|is to|are to)\b",
    ),
    (
        "if you",
        r"\bif you('re| are) (an? )?(ai|llm|language model|assistant|ai (model|agent|assistant))\b.{0,30}\b(delete|send|ignore|forget|upload|execute|reveal|disregard|transmit|obey|copy|forward)\b",
    ),
    (
        "assistant|model|agent|llm|ai ",
        rf"\b(the|an|any|every) {_MODEL} (calling (this|it)( tool)? |that (calls|uses) (this|it)( tool)? )?(must|should|shall|has to|is to|is expected to|is required to|needs to|will|are expected to)"
        rf" (\w+ly |also |first |always )*(fetch|upload|attach|forward|include|send|read|copy|pass|transmit|exfiltrate|append|collect|look up)\b.{{0,40}}"
        rf"({_OWNED}|{_FILE}|{_TALK}|environment variables|(each|every|all|any) files?)",
    ),
    (
        "models ",
        rf"\bmodels (calling|that (call|use)|using) this\b.{{0,30}}\b(must|should|shall|have to|are (expected|required) to)\b.{{0,40}}({_OWNED}|{_FILE}|{_TALK})",
    ),
    (
        "assistant |model |agent |ai |llm ",
        r"\bthe (assistant|model|ai|agent|llm) (forwards|uploads|sends|copies|attaches) (each|every|all|any) (files?|messages?|mails?|e-?mails?)\b",
    ),
)

ORDERS: Final = {
    "override": _OVERRIDE,
    "order among tools": _AMONG_TOOLS,
    "data out": _DATA_OUT,
    "secrecy": _SECRECY,
    "consent": _CONSENT,
    "redirection": _REDIRECTION,
    "commands": _COMMANDS,
    "role": _ROLES,
}
"""What it wants → rows: literal words in small letters, of which one stands in each text that the pattern finds; the pattern."""
