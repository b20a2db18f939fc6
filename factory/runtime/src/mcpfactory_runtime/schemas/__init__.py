"""JSON Schema: the only package that walks it. Nothing is imported here, so that each server loads only what it uses.

| module | offers |
|---|---|
| `walk` | the table of keywords that hold schemas, `walk`, `map_schema`, `resolve`, and tolerant readers of one schema |
| `merge` | `both` (`allOf`) and `either` (`anyOf`) of two schemas as one |
| `sample` | `sample`: one value for a schema; `alternative_values`: others; `invalid_values`: values just outside of it |
| `diff` | `member_changes`: what callers can no longer send, or can send now |
| `dialects` | tools within the limits of clients |
| `validation` | `compile_schema`: a validator of arguments, by pydantic-core |
| `annotations`, `models` | schemas and validators of Python types |
"""
