package session

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/schema"
)

// subject distinguishes actions with the same name, by digests.
type subject struct {
	Matter string `json:"matter"` // target and parameters, without numbers, booleans and nulls
	Whole  string `json:"whole"`  // target and all parameters
}

func subjectOf(t *schema.Trace) subject {
	parameters := slices.Clone(t.Action.Parameters)
	slices.SortFunc(parameters, func(a, b schema.Member) int { return strings.Compare(a.Name, b.Name) })
	var matter, whole []byte
	add := func(text []byte, part string) []byte {
		return append(binary.AppendUvarint(text, uint64(len(part))), part...)
	}
	matter = add(add(matter, t.Action.Target.Type), t.Action.Target.Identifier)
	whole = append(whole, matter...)
	for _, p := range parameters {
		whole = add(add(whole, p.Name), string(p.Value))
		if c := p.Value[0]; c == '"' || c == '[' || c == '{' {
			matter = add(add(matter, p.Name), string(p.Value))
		}
	}
	return subject{Matter: digest(matter), Whole: digest(whole)}
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
