"""How often the rule of docs/reference/effects.md is right: operations of real documents that people labelled, and what it says of them.

`operations.tsv` has keys and labels; the documents are those of `benchmarks.apis`. `tuned` made the rule. `apart` was labelled before
it; its totals were seen several times while the rule was tuned, its misses when it was done: precision of read-only 0.991, recall
0.940 at that moment. `fresh` was labelled after that, from documents of neither, and asked once: 0.974 and 0.841, the only figures
that nothing was tuned with then. The misses of both were mended afterwards. `later` was labelled after that, from 26 other documents,
and asked once: 1.000 and 0.771; nothing was changed for its misses. `unseen` was labelled
before verbs that the rule does not know were taken for changes, and asked once before that change and once after it: 1.000 and 1.000
both times (an operation of its documents that is none of its rows was looked at while mending). What the other sets give today only shows that nothing is lost.
"""
