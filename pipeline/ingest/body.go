package ingest

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The media types that are understood. A body without one is refused, since a
// web page may send such a body to a loopback address unasked.
var (
	typesOfLines  = []string{"application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"}
	typesOfTrace  = []string{"application/aap-trace+json", "application/json"} // AAP section 11.1
	typesOfTraces = slices.Concat(typesOfLines, typesOfTrace)
	typesOfCard   = []string{"application/aap-alignment-card+json", "application/json"}
	typesOfOther  = []string{"application/json"}
)

// mediaType returns the request's type if it is among the allowed.
func mediaType(r *http.Request, allowed ...string) (string, *problem) {
	given := r.Header.Get("Content-Type")
	parsed, _, err := mime.ParseMediaType(given)
	if err != nil || !slices.Contains(allowed, parsed) {
		return "", problemf(http.StatusUnsupportedMediaType, "media_type", "Content-Type is %q: send one of %s", given, strings.Join(allowed, ", "))
	}
	return parsed, nil
}

// packed tells whether the body is gzip.
func packed(w http.ResponseWriter, r *http.Request) (bool, *problem) {
	switch encoding := r.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
		return false, nil
	case "gzip", "x-gzip":
		return true, nil
	default:
		w.Header().Set("Accept-Encoding", "gzip")
		return false, problemf(http.StatusUnsupportedMediaType, "encoding", "Content-Encoding is %q: send gzip or none", encoding)
	}
}

// bodyReader returns the body, unpacked, with an error instead of what is
// beyond limit, both as sent and unpacked.
func bodyReader(w http.ResponseWriter, r *http.Request, gzipped bool, unzip *gzip.Reader, limit int64) (io.Reader, *problem) {
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	sent := http.MaxBytesReader(w, r.Body, limit)
	if !gzipped {
		return sent, nil
	}
	err := unzip.Reset(sent)
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, io.EOF) {
		return nil, problemf(http.StatusBadRequest, "encoding", "Content-Encoding says gzip, but the body is not gzip")
	}
	if err != nil {
		return nil, bodyProblem(err)
	}
	return http.MaxBytesReader(nil, io.NopCloser(unzip), limit), nil
}

// document reads a JSON body of at most limit bytes whole.
func (s *server) document(w http.ResponseWriter, r *http.Request, limit int64, types ...string) ([]byte, *problem) {
	if _, p := mediaType(r, types...); p != nil {
		return nil, p
	}
	gzipped, p := packed(w, r)
	if p != nil {
		return nil, p
	}
	release, p := s.reserve(r.Context(), limit)
	if p != nil {
		return nil, p
	}
	defer release()
	body, p := bodyReader(w, r, gzipped, new(gzip.Reader), limit)
	if p != nil {
		return nil, p
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		return nil, bodyProblem(err)
	}
	return raw, nil
}

// patience is how long a request waits for memory before it is pushed back.
const patience = 5 * time.Second

// reserve waits until the memory for a body is free.
func (s *server) reserve(ctx context.Context, bytes int64) (release func(), p *problem) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.memory.Acquire(ctx, bytes); err != nil {
		return nil, pushBack(time.Second, "too many requests are in hand: send the same again a little later")
	}
	return func() { s.memory.Release(bytes) }, nil
}
