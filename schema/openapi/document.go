// Package openapi holds the OpenAPI 3.1 document of ingest's HTTP interface: every route, with its
// scope, parameters, bodies, statuses and headers.
//
// It owns only the document. The handlers are in pipeline/ingest, pipeline/api, pipeline/reading and
// pipeline/obs. Tests compare the document with them: the routes and scopes
// (pipeline/ingest.TestRoutesAreThoseOfTheDocument), every answer of the tests of these packages
// (pipeline/pipelinetest/requests), and the table of docs/PUBLISH.md. Bodies that are records of AAP
// refer to the JSON Schemas of schema/json, by addresses relative to /v1/openapi.json.
package openapi

import _ "embed" // for Text

// MediaType is the media type under which the document is served.
const MediaType = "application/json"

// Text is the document. It is shared: do not modify it.
//
//go:embed openapi.json
var Text []byte
