#!/bin/sh
# Makes, once, the token that publishers of the compose installation show, and
# the token file that ingest checks it against. Read it with
#
#     docker-compose exec ingest cat /var/lib/plumbline/token
set -eu
umask 077
cd "${PLUMBLINE_DATA_DIR:-/var/lib/plumbline}"
if [ -s tokens.jsonl ]; then
    exit 0
fi
# The file gets its name last: without its token it would be of no use.
rm -f tokens.jsonl.new
plumbline token new --file tokens.jsonl.new --name compose --agent '*' \
    --scope traces:write,traces:read,bundles:read,cards:write,cards:read,sessions:write >token
mv tokens.jsonl.new tokens.jsonl
