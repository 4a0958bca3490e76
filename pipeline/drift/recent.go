package drift

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// fingerprint is the first 8 bytes of a SHA-256.
type fingerprint [8]byte

func fingerprintOf(text string) fingerprint {
	sum := sha256.Sum256([]byte(text))
	return fingerprint(sum[:])
}

func fingerprintOfDigest(d schema.Digest) fingerprint { return fingerprint(d[:]) }

// mention identifies a trace by its id and its content.
type mention struct{ id, content fingerprint }

const mentionBytes = 16

// recent lists the traces of a series that were applied last, oldest first. For an older trace
// this is not needed: a copy has the same time and is late, and another content with the same id
// is late, too, unless it has a newer time.
type recent []mention

// remembered is how many traces recent holds. Each takes 22 bytes in every stored state.
const remembered = 32

func (r *recent) add(m mention) {
	if len(*r) >= remembered {
		*r = slices.Delete(*r, 0, len(*r)-remembered+1)
	}
	*r = append(*r, m)
}

// content returns the content that was applied under a trace id.
func (r recent) content(id fingerprint) (fingerprint, bool) {
	for i := range r {
		if r[i].id == id {
			return r[i].content, true
		}
	}
	return fingerprint{}, false
}

// storedSeries is the stored form of a series' state.
type storedSeries struct {
	Recent []byte          `json:"recent,omitempty"` // mentions, oldest first
	Series json.RawMessage `json:"course"`           // the state of aap/drift
}

func encode(state *aapdrift.State, r recent) ([]byte, error) {
	series, err := state.Marshal()
	if err != nil {
		return nil, err
	}
	w := storedSeries{Recent: make([]byte, 0, mentionBytes*len(r)), Series: series}
	for i := range r {
		w.Recent = append(append(w.Recent, r[i].id[:]...), r[i].content[:]...)
	}
	data, err := json.Marshal(&w)
	if err != nil {
		return nil, fmt.Errorf("encode the state of a series: %w", err)
	}
	return data, nil
}

// StateOf returns the state of a series from its stored form.
func StateOf(row *store.DriftState) (*aapdrift.State, error) {
	state, _, err := decode(row.State)
	return state, err
}

func decode(data []byte) (*aapdrift.State, recent, error) {
	var w storedSeries
	if err := json.Unmarshal(data, &w); err != nil {
		return nil, nil, fmt.Errorf("decode the state of a series: %w", err)
	}
	if len(w.Recent)%mentionBytes != 0 {
		return nil, nil, fmt.Errorf("decode the state of a series: %d bytes of recent traces", len(w.Recent))
	}
	var r recent
	for pair := range slices.Chunk(w.Recent, mentionBytes) {
		r = append(r, mention{fingerprint(pair[:8]), fingerprint(pair[8:])})
	}
	state, err := aapdrift.UnmarshalState(w.Series)
	return state, r, err
}
