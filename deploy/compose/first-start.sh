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
random=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
hash=$(printf %s "$random" | sha256sum | cut -d ' ' -f 1)
printf '%s\n' "$random" >token
# Under its name only when it is whole: ingest refuses half a file.
printf '{"name":"compose","sha256":"%s","agents":["*"],"scopes":["traces:write","traces:read","bundles:read","cards:write","cards:read","sessions:write"]}\n' "$hash" >tokens.jsonl.new
mv tokens.jsonl.new tokens.jsonl
