"""The store on SQLite: one folder, one database, one server process. Start with `store`."""
