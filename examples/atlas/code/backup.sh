#!/bin/sh
# Nightly copy of the platform's database to the other building. Run by cron at 01:40 as user backup.
set -eu

target=/srv/vault/$(date +%F)
keep_days=35

mkdir -p "$target"
pg_dump --format=custom --jobs=1 ferncliff > "$target/ferncliff.dump.part"
mv "$target/ferncliff.dump.part" "$target/ferncliff.dump"
sha256sum "$target/ferncliff.dump" > "$target/SHA256"

# Restore is rehearsed on the first Monday of the month; a copy nobody has read back is a wish.
find /srv/vault -mindepth 1 -maxdepth 1 -type d -mtime +"$keep_days" -exec rm -r {} +
