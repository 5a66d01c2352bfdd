-- Where the server has given contents: a file that was renamed here before its bytes came is fetched from where they still are.
create index remote_by_hash on remote (content_hash) where kind = 'file';
create index base_by_hash on base (content_hash) where kind = 'file';
