#!/bin/sh
# Runs the frameworks again and writes their fixtures. Needs node and npm. The ids, times and
# sessions of a new run differ, so the expected rows of the tests must be written again, too.
set -eu
cd "$(dirname "$0")"
export OTEL_SERVICE_NAME=kettles
export OTEL_RESOURCE_ATTRIBUTES=aap.agent_id=did:web:kettles.example,aap.card_id=ac-kettles,aap.action.category=bounded
for framework in vercel langgraph adk; do
    (cd $framework && npm ci --no-audit --no-fund --ignore-scripts && timeout 60 node run.mjs "../$framework.json")
done
