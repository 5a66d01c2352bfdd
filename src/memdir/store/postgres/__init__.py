"""The store on PostgreSQL, shared by any number of server and worker processes. Start with `store`."""
