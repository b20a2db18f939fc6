"""JSON Schema; only this package traverses schemas. `__init__` imports nothing, so a server loads only modules it uses.

| module | contents |
|---|---|
| `walk` | the table of keywords that contain schemas, `walk`, `map_schema`, `resolve`, tolerant readers of one schema |
| `merge` | `intersect_schemas` (`allOf`) and `unite_schemas` (`anyOf`): two schemas merged into one |
| `sample` | `sample`: a value for a schema; `alternative_values`: others; `invalid_values`: values just outside of it |
| `diff` | `property_changes`: values that callers can no longer send, or can send now |
| `client_dialects` | conversion of tools for clients with limits |
| `validation` | `compile_schema`: a validator of arguments, by pydantic-core |
| `builtin_types`, `pydantic_schemas` | schemas and validators of Python types |
"""
