"""Where pages come from: the web, a folder, a ZIM file, the memory itself."""
