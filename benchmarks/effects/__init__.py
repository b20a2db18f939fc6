"""How often the rule of docs/reference/effects.md is right: operations of real documents that people labelled, and what it says of them.

`operations.tsv` has keys and labels; the documents are those of `benchmarks.apis`. The set `apart` was labelled before the rule was
written, and its misses are not looked at while the rule is changed.
"""
