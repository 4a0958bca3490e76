#!/bin/sh
# Registers a card and publishes a session with curl.
#
# usage: sh publish.sh [DIRECTORY]   of card.json and session.jsonl
set -eu
cd "${1:-$(dirname "$0")/..}"
url=${PLUMBLINE_URL:-http://127.0.0.1:8080}
card_id=$(sed -n 's/.*"card_id": *"\([^"]*\)".*/\1/p' card.json)

post() { curl --silent --show-error --fail-with-body ${PLUMBLINE_TOKEN:+-H "Authorization: Bearer $PLUMBLINE_TOKEN"} "$@"; }

post -X PUT "$url/v1/cards/$card_id" -H 'Content-Type: application/aap-alignment-card+json' --data-binary @card.json

# The answer has one line for each trace. Sending a trace again is safe: it is stored once.
post "$url/v1/traces" -H 'Content-Type: application/x-ndjson' --data-binary @session.jsonl
