"""How often the rule of docs/reference/effects.md is right: operations of real documents that people labelled, and what it says of them.

`operations.tsv` has keys and labels; the documents are those of `benchmarks.apis`. The set `apart` was labelled before the rule was
written, and its misses were looked at once, when it was done; `fresh` was labelled after that, from documents of neither; what it
showed, asked once (precision of read-only 0.974, recall 0.841), was mended.
"""
