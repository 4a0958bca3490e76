package request

import (
	"io"
	"net/http"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// ServeContent answers a request that may be conditional or ask for a range. digest identifies the
// content. It returns the status code of the answer.
func ServeContent(w http.ResponseWriter, r *http.Request, mediaType, caching string, digest schema.Digest, content io.ReadSeeker) int {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("ETag", `"`+digest.String()+`"`)
	w.Header().Set("Cache-Control", caching)
	noted := &codeNoter{ResponseWriter: w}
	http.ServeContent(noted, r, "", time.Time{}, content)
	return noted.code
}

// codeNoter records the code of an answer.
type codeNoter struct {
	http.ResponseWriter
	code int
}

func (n *codeNoter) WriteHeader(code int) {
	n.code = code
	n.ResponseWriter.WriteHeader(code)
}
