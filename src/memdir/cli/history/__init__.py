"""Commands about the past of files: `history`, `restore`, `undelete`, and archives: `export`, `import`.

A path and a moment come in; former contents come back from the server. Start with `shared`: which memory and path is meant.
"""
