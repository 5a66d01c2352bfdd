"""Documents on their way to being searchable: read, cut, embedded, remembered.

Jobs of `store.jobs` come in; passages, vectors and memories go into the store. `worker` runs the steps (`pipeline`,
`memory_step`), `import_process` runs workers for imports beside the server. Start with `worker`.
"""
