package drift

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"math"

	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
)

const (
	alertType      = "drift_detected"
	recommendation = "Review recent decisions for alignment drift"
)

// alert describes the streak that x made sustained (AAP section 8.4).
func (s *State) alert(x *Sample, p Params) *schema.DriftAlert {
	ids := make([]string, len(s.Low))
	for i := range s.Low {
		ids[i] = s.Low[i].TraceID
	}
	direction, indicators := s.judge(p.Profile)
	return &schema.DriftAlert{
		AlertID:            s.alertID(x, p),
		AlertType:          alertType,
		AgentID:            x.AgentID,
		CardID:             x.CardID,
		DetectionTimestamp: x.EventTime,
		Analysis: schema.DriftAnalysis{
			SimilarityScore:    similarity.Round4(s.Low[len(s.Low)-1].Similarity),
			SustainedTraces:    len(s.Low),
			Threshold:          p.SimilarityThreshold,
			DriftDirection:     direction,
			SpecificIndicators: indicators,
		},
		Recommendation: recommendation,
		TraceIDs:       ids,
		EngineVersion:  EngineVersion,
		Mode:           string(p.Mode),
		BaselineID:     s.Baseline.ID,
	}
}

// alertID is the SHA-256 of everything that identifies the alert, so a replay gives the same
// id. Strings and the list are preceded by their lengths. A pin is a parameter; any other
// baseline follows from the traces.
func (s *State) alertID(x *Sample, p Params) schema.Digest {
	h := sha256.New()
	writeString(h, x.AgentID)
	writeString(h, x.CardID)
	writeUint(h, uint64(len(s.Low)))
	for i := range s.Low {
		h.Write(s.Low[i].Digest[:])
	}
	writeString(h, EngineVersion)
	writeUint(h, math.Float64bits(p.SimilarityThreshold))
	writeUint(h, uint64(p.Sustained))
	writeUint(h, uint64(p.Window))
	writeString(h, string(p.Mode))
	writeString(h, string(p.Profile))
	if s.Baseline.Mode == ModePinned {
		h.Write(s.Baseline.ID[:])
	}
	return schema.Digest(h.Sum(nil))
}

func writeString(h hash.Hash, s string) {
	writeUint(h, uint64(len(s)))
	h.Write([]byte(s))
}

func writeUint(h hash.Hash, n uint64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	h.Write(b[:])
}
