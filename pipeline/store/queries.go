package store

import (
	"embed"
	"io/fs"
)

//go:embed sql/queries/*.sql
var querySQL embed.FS

// The queries of this package, each a file of sql/queries. Values reach them as
// bound parameters only.
var (
	queryPresentTraces   = mustQuery("present_traces")
	queryPresentVerdicts = mustQuery("present_verdicts")
	queryRunning         = mustQuery("running")
)

// mustQuery reads an embedded file: that it is there is settled when compiling
// and by the first test.
func mustQuery(name string) string {
	b, err := fs.ReadFile(querySQL, "sql/queries/"+name+".sql")
	if err != nil {
		panic("store: " + err.Error())
	}
	return string(b)
}
