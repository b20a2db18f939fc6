"""JSON Schema; only this package traverses schemas. `__init__` imports nothing, so a server loads only modules it uses.

`walk` has the table of keywords that contain schemas, and tolerant readers of one schema. `merge` merges two schemas
(`allOf`) or alternatives (`anyOf`). `sample` creates valid, alternative and invalid values. `diff` finds values that
callers can no longer send, or can newly send. `client_dialects` converts tools for clients with limits. `validation`
compiles a validator of arguments. `builtin_types` and `pydantic_schemas` convert Python types.
"""
