"""JSON Schema; only this package traverses schemas. `__init__` imports nothing, so a server loads only modules it uses.

| module | contents |
|---|---|
| `walk` | the table of keywords that contain schemas, `walk`, `map_schema`, `resolve`, tolerant readers of one schema |
| `merge` | `intersect_schemas` merges two schemas (`allOf`), and `unite_schemas` merges alternatives (`anyOf`) |
| `sample` | `sample`: a value for a schema; `alternative_values`: more values; `invalid_values`: invalid values |
| `diff` | `property_changes`: values that callers can no longer send, or can newly send |
| `client_dialects` | conversion of tools for clients with limits |
| `validation` | `compile_schema`: a validator of arguments, by pydantic-core |
| `builtin_types`, `pydantic_schemas` | schemas and validators of Python types |
"""
