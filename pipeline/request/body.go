package request

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/schema"
)

// The media types of AAP section 11.1, which may have the parameter version, and of JSON.
const (
	TypeCard  = "application/aap-alignment-card+json"
	TypeTrace = "application/aap-trace+json"
	TypeJSON  = "application/json"
)

// The version of AAP that this service implements. Other versions with the same major number are
// accepted; members that they add are stored and ignored.
const (
	supportedVersion = "0.1.0"
	supportedMajor   = "0"
)

// VersionForm matches the parameter version: major, major.minor, or all three numbers, with an
// optional pre-release or build suffix.
var VersionForm = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})(\.(0|[1-9][0-9]{0,8})){0,2}([-+][0-9A-Za-z.+-]{1,64})?$`)

// MediaType returns the request's media type if it is one of the allowed ones. A body without a
// media type is refused, because any web page can make a browser send such a body to a loopback
// address.
func MediaType(r *http.Request, allowed ...string) (string, error) {
	unsupported := func(format string, args ...any) error {
		return problem.New(http.StatusUnsupportedMediaType, "media_type", format, args...)
	}
	given := r.Header.Get("Content-Type")
	parsed, parameters, err := mime.ParseMediaType(given)
	if err != nil || !slices.Contains(allowed, parsed) {
		return "", unsupported("Content-Type is %q: send one of %s", given, strings.Join(allowed, ", "))
	}
	version, stated := parameters["version"]
	if !stated || parsed != TypeCard && parsed != TypeTrace {
		return parsed, nil
	}
	switch major := VersionForm.FindStringSubmatch(version); {
	case major == nil:
		return "", unsupported("%q is no version of %s: send version=%s, or no version", schema.Clip(version, schema.MaxIDBytes), parsed, supportedVersion)
	case major[1] != supportedMajor:
		return "", unsupported("version %q of %s is not supported here: send version=%s, or no version",
			schema.Clip(version, schema.MaxIDBytes), parsed, supportedVersion)
	}
	return parsed, nil
}

// Body returns the body, unpacked with unzip if it is gzip. Reading more than limit bytes is an
// error, both as sent and unpacked. BodyProblem converts errors of reading.
func (rt *Router) Body(w http.ResponseWriter, r *http.Request, unzip *gzip.Reader, limit int64) (io.Reader, error) {
	encoding := r.Header.Get("Content-Encoding")
	gzipped := encoding == "gzip" || encoding == "x-gzip"
	if !gzipped && encoding != "" && encoding != "identity" {
		return nil, problem.New(http.StatusUnsupportedMediaType, "encoding", "Content-Encoding is %q: send gzip or none", encoding).With("Accept-Encoding", "gzip")
	}
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	rt.Pace.hold(w, r, rt.Timeout)
	sent := http.MaxBytesReader(w, r.Body, limit)
	if !gzipped {
		return sent, nil
	}
	err := unzip.Reset(sent)
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, io.EOF) {
		return nil, problem.New(http.StatusBadRequest, "encoding", "Content-Encoding says gzip, but the body is not gzip")
	}
	if err != nil {
		return nil, BodyProblem(err)
	}
	return http.MaxBytesReader(nil, io.NopCloser(unzip), limit), nil
}

// BodyProblem converts an error of reading a body to a problem for the client.
func BodyProblem(err error) *problem.Problem {
	var known *problem.Problem
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &large):
		return tooLarge(large.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return problem.New(http.StatusRequestTimeout, "timeout", "the body did not arrive in time: send less in a request")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return problem.New(http.StatusBadRequest, "truncated", "the body is incomplete: send it again")
	default:
		return problem.New(http.StatusBadRequest, "unreadable", "the body cannot be read: %v", err)
	}
}

func tooLarge(limit int64) *problem.Problem {
	return problem.New(http.StatusRequestEntityTooLarge, "too_large",
		"the body is larger than %d bytes, as sent or unpacked: send traces in several requests; a document may not be larger", limit)
}

// lingerBytes is how much of the rest of a body that is too large is read and discarded.
const lingerBytes = 256 << 20

// linger reads the rest of a body that is too large, at the pace and within the time of a request.
// Without it, a client that sends its whole body before it reads the answer (urllib of Python)
// would find its connection reset. A client that asked with Expect: 100-continue reads first, and
// with HTTP/2 an answer arrives before the body ends.
func (rt *Router) linger(w http.ResponseWriter, r *http.Request, began time.Time) {
	if r.ProtoMajor != 1 || r.ContentLength > lingerBytes || r.Header.Get("Expect") != "" {
		return
	}
	rt.Pace.hold(w, r, rt.Timeout-time.Since(began))
	_, _ = io.CopyN(io.Discard, r.Body, lingerBytes) // however it ends, the answer stays
}

// Document reads a whole body of at most limit bytes, of one of the media types.
func (rt *Router) Document(w http.ResponseWriter, r *http.Request, limit int64, types ...string) ([]byte, error) {
	if _, err := MediaType(r, types...); err != nil {
		return nil, err
	}
	body, err := rt.Body(w, r, new(gzip.Reader), limit)
	if err != nil {
		return nil, err
	}
	held := rt.Hold(r)
	defer held.Release()
	return held.ReadAll(r.Context(), body, limit)
}

// ReadAll reads a whole body of at most limit bytes into memory that it reserves as the bytes arrive.
func (h *Holding) ReadAll(ctx context.Context, body io.Reader, limit int64) (raw []byte, err error) {
	before := h.bytes
	for {
		if len(raw) == cap(raw) {
			size := min(max(8<<10, 8*int64(cap(raw))), limit+1) // one more byte, to find the end
			if err := h.Grow(ctx, before+size); err != nil {
				return nil, err
			}
			raw = append(make([]byte, 0, size), raw...)
		}
		n, err := body.Read(raw[len(raw):cap(raw)])
		raw = raw[:len(raw)+n]
		if errors.Is(err, io.EOF) {
			return raw, nil
		}
		if err != nil {
			return nil, BodyProblem(err)
		}
	}
}

// JSON decodes a body of at most limit bytes into a struct. Unknown members are refused, unless an
// option allows them. form says which form the body must have, or where it is described.
func (rt *Router) JSON(w http.ResponseWriter, r *http.Request, limit int64, into any, form string, options ...json.Options) error {
	raw, err := rt.Document(w, r, limit, TypeJSON)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into, append([]json.Options{json.RejectUnknownMembers(true)}, options...)...); err != nil {
		return Unreadable(form, err)
	}
	return nil
}
