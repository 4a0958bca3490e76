package ingest

import (
	"compress/gzip"
	"errors"
	"io"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// The media types of AAP section 11.1. They may have the parameter version.
const (
	mediaTypeCard  = "application/aap-alignment-card+json"
	mediaTypeTrace = "application/aap-trace+json"
)

// The version of AAP that this service implements. Other versions with the same major number are
// accepted; members that they add are stored and ignored.
const (
	supportedVersion = "0.1.0"
	supportedMajor   = "0"
)

// versionForm matches the parameter version: major, major.minor, or all three numbers, with an
// optional pre-release or build suffix.
var versionForm = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})(\.(0|[1-9][0-9]{0,8})){0,2}([-+][0-9A-Za-z.+-]{1,64})?$`)

// The supported media types. A body without a media type is refused, because any web page can
// make a browser send such a body to a loopback address.
var (
	typesOfLines  = []string{"application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"}
	typesOfTrace  = []string{mediaTypeTrace, "application/json"}
	typesOfTraces = slices.Concat(typesOfLines, typesOfTrace)
	typesOfCard   = []string{mediaTypeCard, "application/json"}
	typesOfOther  = []string{"application/json"}
)

// mediaType returns the request's media type if it is one of the allowed ones.
func mediaType(r *http.Request, allowed ...string) (string, *problem) {
	given := r.Header.Get("Content-Type")
	parsed, parameters, err := mime.ParseMediaType(given)
	if err != nil || !slices.Contains(allowed, parsed) {
		return "", problemf(http.StatusUnsupportedMediaType, "media_type", "Content-Type is %q: send one of %s", given, strings.Join(allowed, ", "))
	}
	if version, stated := parameters["version"]; stated && (parsed == mediaTypeCard || parsed == mediaTypeTrace) {
		return parsed, checkVersion(parsed, version)
	}
	return parsed, nil
}

// checkVersion refuses an invalid version and one with another major number.
func checkVersion(mediaType, version string) *problem {
	major := versionForm.FindStringSubmatch(version)
	if major == nil {
		return problemf(http.StatusUnsupportedMediaType, "media_type", "version %q of %s is none: send version=%s, or no version",
			clip(version), mediaType, supportedVersion)
	}
	if major[1] != supportedMajor {
		return problemf(http.StatusUnsupportedMediaType, "media_type", "version %q of %s is not supported here: send version=%s, or no version",
			clip(version), mediaType, supportedVersion)
	}
	return nil
}

// packed reports whether the body is gzip.
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

// bodyReader returns the body, unpacked. Reading beyond limit is an error, both as sent and
// unpacked.
func (s *server) bodyReader(w http.ResponseWriter, r *http.Request, gzipped bool, unzip *gzip.Reader, limit int64) (io.Reader, *problem) {
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	s.pace.hold(w, r, s.cfg.RequestTimeout)
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

// document reads a whole JSON body of at most limit bytes.
func (s *server) document(w http.ResponseWriter, r *http.Request, limit int64, types ...string) ([]byte, *problem) {
	if _, p := mediaType(r, types...); p != nil {
		return nil, p
	}
	gzipped, p := packed(w, r)
	if p != nil {
		return nil, p
	}
	body, p := s.bodyReader(w, r, gzipped, new(gzip.Reader), limit)
	if p != nil {
		return nil, p
	}
	held := s.memory.hold(who(r))
	defer held.release()
	var raw []byte
	for {
		if len(raw) == cap(raw) {
			size := min(8*max(int64(cap(raw)), int64(windowSizes[0])/8), limit+1) // one more byte, to find the end
			if p := held.grow(r.Context(), size); p != nil {
				return nil, p
			}
			raw = append(make([]byte, 0, size), raw...)
		}
		n, err := body.Read(raw[len(raw):cap(raw)])
		raw = raw[:len(raw)+n]
		if errors.Is(err, io.EOF) {
			return raw, nil
		}
		if err != nil {
			return nil, bodyProblem(err)
		}
	}
}
