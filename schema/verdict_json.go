package schema

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
)

// AppendJSON appends the verdict to dst, byte for byte as json.Marshal writes it, in a fraction of
// the time. The error is that of json.Marshal: a number that is not finite, or a year that JSON
// times cannot have.
func (v *Verdict) AppendJSON(dst []byte) ([]byte, error) {
	a := jsonAppender{out: dst}
	a.raw(`{"verified":`).boolean(v.Verified)
	a.raw(`,"status":`).text(string(v.Status))
	a.raw(`,"recommended_action":`).text(string(v.RecommendedAction))
	a.raw(`,"trace_id":`).text(v.TraceID)
	a.raw(`,"agent_id":`).text(v.AgentID)
	a.raw(`,"card_id":`).text(v.CardID)
	a.raw(`,"timestamp":`).time(v.Timestamp)
	a.raw(`,"violations":`).remarks(v.Violations)
	a.raw(`,"warnings":`).remarks(v.Warnings)
	a.raw(`,"findings":`).remarks(v.Findings)
	a.raw(`,"similarity_score":`).number(v.SimilarityScore)
	a.raw(`,"verification_metadata":`).metadata(&v.Metadata)
	a.raw(`}`)
	if a.err != nil {
		return dst, fmt.Errorf("encode a verdict: %w", a.err)
	}
	return a.out, nil
}

// jsonAppender appends values in the form of json.Marshal, and keeps the first error.
type jsonAppender struct {
	out []byte
	err error
}

func (a *jsonAppender) raw(text string) *jsonAppender {
	a.out = append(a.out, text...)
	return a
}

// marshal appends a value as json.Marshal does. It is for values that are rare.
func (a *jsonAppender) marshal(value any) {
	text, err := json.Marshal(value)
	if err != nil && a.err == nil {
		a.err = err
	}
	a.out = append(a.out, text...)
}

// unescaped has the bytes that json.Marshal writes in a string as they are.
var unescaped = func() (plain [256]bool) {
	for c := ' '; c <= 0x7f; c++ {
		plain[c] = true
	}
	for _, c := range `"\<>&` {
		plain[c] = false
	}
	return plain
}()

func (a *jsonAppender) text(s string) {
	for i := range len(s) {
		if !unescaped[s[i]] {
			a.marshal(s)
			return
		}
	}
	a.out = append(append(append(a.out, '"'), s...), '"')
}

func (a *jsonAppender) boolean(b bool) { a.out = strconv.AppendBool(a.out, b) }

func (a *jsonAppender) integer(n int) { a.out = strconv.AppendInt(a.out, int64(n), 10) }

func (a *jsonAppender) number(f float64) {
	if abs := math.Abs(f); abs != 0 && !(abs >= 1e-6 && abs < 1e21) { // the others have an exponent, or are not finite
		a.marshal(f)
		return
	}
	a.out = strconv.AppendFloat(a.out, f, 'f', -1, 64)
}

func (a *jsonAppender) time(t time.Time) {
	text, err := t.AppendText(append(a.out, '"'))
	if err != nil && a.err == nil {
		a.err = err
	}
	a.out = append(text, '"')
}

func (a *jsonAppender) digest(d *Digest) {
	a.out = append(hex.AppendEncode(append(a.out, '"'), d[:]), '"')
}

func (a *jsonAppender) remarks(remarks []Remark) {
	appendList(a, remarks, func(r *Remark) {
		a.raw(`{"type":`).text(r.Type)
		if r.Severity != "" {
			a.raw(`,"severity":`).text(string(r.Severity))
		}
		a.raw(`,"description":`).text(r.Description)
		if r.Field != "" {
			a.raw(`,"trace_field":`).text(r.Field)
		}
		a.raw(`}`)
	})
}

func (a *jsonAppender) metadata(m *Metadata) {
	a.raw(`{"algorithm_version":`).text(m.AlgorithmVersion)
	a.raw(`,"engine_version":`).text(m.EngineVersion)
	a.raw(`,"profile":`).text(m.Profile)
	if m.Methodology != "" {
		a.raw(`,"methodology":`).text(m.Methodology)
	}
	a.raw(`,"card_digest":`).digest(&m.CardDigest)
	if !m.CardRevokedAt.IsZero() {
		a.raw(`,"card_revoked_at":`).time(m.CardRevokedAt)
	}
	a.raw(`,"trace_digest":`).digest(&m.TraceDigest)
	a.raw(`,"checks_performed":`)
	appendList(a, m.ChecksPerformed, func(check *string) { a.text(*check) })
	a.raw(`,"similarity_details":{"similarities":`)
	appendList(a, m.Similarity.Similarities, func(f *float64) { a.number(*f) })
	a.raw(`,"mean_similarity":`).number(m.Similarity.MeanSimilarity)
	a.raw(`,"trend":`).number(m.Similarity.Trend)
	a.raw(`}`)
	if m.GroundedClaims != 0 {
		a.raw(`,"grounded_claims":`).integer(m.GroundedClaims)
	}
	if m.InferredClaims != 0 {
		a.raw(`,"inferred_claims":`).integer(m.InferredClaims)
	}
	if len(m.AbsentTriggers) > 0 {
		a.raw(`,"absent_triggers":`)
		appendList(a, m.AbsentTriggers, func(index *int) { a.integer(*index) })
	}
	a.raw(`}`)
}

// appendList appends an array; a nil slice is null.
func appendList[T any](a *jsonAppender, elements []T, element func(*T)) {
	if elements == nil {
		a.raw(`null`)
		return
	}
	a.raw(`[`)
	for i := range elements {
		if i > 0 {
			a.raw(`,`)
		}
		element(&elements[i])
	}
	a.raw(`]`)
}
