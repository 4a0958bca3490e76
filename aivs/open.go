package aivs

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/aivs/pyjson"
)

const (
	openTool     = "plumbline.open.1" // tool name of the open row: our dialect and its version
	openFamily   = "plumbline.open."
	sealTool     = "aivs.content.sha256."
	aivsVersion  = "1.0"
	exportLayout = "2006-01-02T15:04:05Z"
)

// Opening is the content of the open row's inputs_json: everything in the manifest except the
// chain, and the digest of every member that the chain itself does not cover. The open row's hash
// does not cover its inputs; the seal row's hash does.
type Opening struct {
	SessionID          string   `json:"session_id"` // the original, not percent-encoded
	AgentID            string   `json:"agent_id,omitempty"`
	ExportedAt         string   `json:"exported_at"` // UTC, to the second
	Part               int64    `json:"part"`        // 1..n of the session's bundles
	LastPart           bool     `json:"last_part"`
	TraceCount         int64    `json:"trace_count"`                  // rows between open and seal
	Redactions         int64    `json:"redactions"`                   // values replaced by "[REDACTED]" by the draft's rule
	OptionalRedactions int64    `json:"optional_redactions,omitzero"` // values replaced by the optional rules
	Generator          string   `json:"generator"`
	GeneratorURL       string   `json:"generator_url"`
	KeyID              string   `json:"key_id,omitempty"` // absent: unsigned
	PreviousBundleHash string   `json:"previous_bundle_hash,omitempty"`
	Members            []Listed `json:"members"` // in archive order
}

// Listed is one member of the bundle as the open row lists it.
type Listed struct {
	Name   string `json:"name"` // path below session_proof/
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// manifest is manifest.json: the draft's seven members (section 5.2), then ours.
type manifest struct {
	SessionID          string `json:"session_id"` // as hashed in the rows
	ExportedAt         string `json:"exported_at"`
	ActionCount        int64  `json:"action_count"` // all rows, open and seal too
	ChainHash          string `json:"chain_hash"`
	AIVSVersion        string `json:"aivs_version"`
	Generator          string `json:"generator"`
	GeneratorURL       string `json:"generator_url"`
	OriginalSessionID  string `json:"original_session_id"`
	AgentID            string `json:"agent_id,omitempty"`
	TraceCount         int64  `json:"trace_count"`
	Redactions         int64  `json:"redactions"`
	OptionalRedactions int64  `json:"optional_redactions,omitzero"`
	Part               int64  `json:"part"`
	LastPart           bool   `json:"last_part"`
	PreviousBundleHash string `json:"previous_bundle_hash,omitempty"`
	KeyID              string `json:"key_id,omitempty"`
}

func exportedAt(unix int64) string { return time.Unix(unix, 0).UTC().Format(exportLayout) }

// row returns the open row before it is linked to the chain.
func (o *Opening) row() (Row, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return Row{}, fmt.Errorf("open row: %w", err)
	}
	at, err := time.Parse(exportLayout, o.ExportedAt)
	if err != nil {
		return Row{}, fmt.Errorf("open row: %w", err)
	}
	return Row{SessionID: Encode(o.SessionID), ActionType: ActionOpen, ToolName: openTool,
		InputsJSON: string(pyjson.Line(text)), OutputsJSON: "{}", Timestamp: UnixSeconds(at)}, nil
}

// parseOpening reads an open row's inputs_json.
func parseOpening(text string) (*Opening, error) {
	o := new(Opening)
	if err := inWords(json.Unmarshal([]byte(text), o, json.RejectUnknownMembers(true))); err != nil {
		return nil, err
	}
	at, err := time.Parse(exportLayout, o.ExportedAt)
	switch {
	case err != nil || at.Unix() < 0 || exportedAt(at.Unix()) != o.ExportedAt:
		return nil, fmt.Errorf("exported_at %.40q is not a UTC time to the second", o.ExportedAt)
	case o.Part < 1 || min(o.TraceCount, o.Redactions, o.OptionalRedactions) < 0 || max(o.Part, o.TraceCount, o.Redactions, o.OptionalRedactions) > maxCost:
		return nil, fmt.Errorf("part %d, trace_count %d, redactions %d or optional_redactions %d is out of range",
			o.Part, o.TraceCount, o.Redactions, o.OptionalRedactions)
	case o.PreviousBundleHash != "" && !hexDigest.MatchString(o.PreviousBundleHash):
		return nil, fmt.Errorf("previous_bundle_hash %.80q is not a SHA-256", o.PreviousBundleHash)
	}
	return o, checkListed(o.Members)
}

// checkListed checks the list of members as the builder does: verify.py first, then plain names,
// no name twice and none of the draft's files.
func checkListed(listed []Listed) error {
	if len(listed) == 0 || listed[0].Name != verifierFile {
		return errors.New("the first of its members is not verify.py")
	}
	names := make([]Member, len(listed)-1)
	for i, m := range listed {
		if m.Bytes < 0 || m.Bytes > maxCost || !hexDigest.MatchString(m.SHA256) {
			return fmt.Errorf("size or SHA-256 of member %.80q is malformed", m.Name)
		}
		if i > 0 {
			names[i-1].Name = m.Name
		}
	}
	if faults := checkNames(names); len(faults) > 0 {
		return faults[0]
	}
	return nil
}

// manifest returns manifest.json of the bundle with opening o: two-space indentation, ASCII, and
// a final line feed.
func (o *Opening) manifest(rows int64, chainHash string) ([]byte, error) {
	text, err := json.Marshal(manifest{
		SessionID: Encode(o.SessionID), ExportedAt: o.ExportedAt, ActionCount: rows, ChainHash: chainHash,
		AIVSVersion: aivsVersion, Generator: o.Generator, GeneratorURL: o.GeneratorURL,
		OriginalSessionID: o.SessionID, AgentID: o.AgentID, TraceCount: o.TraceCount, Redactions: o.Redactions,
		OptionalRedactions: o.OptionalRedactions, Part: o.Part, LastPart: o.LastPart, PreviousBundleHash: o.PreviousBundleHash, KeyID: o.KeyID,
	})
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	indented := jsontext.Value(bytes.Clone(pyjson.Line(text))) // escape before indenting: Line would remove the line breaks
	if err := indented.Format(jsontext.PreserveRawStrings(true), jsontext.WithIndent("  ")); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return append(indented, '\n'), nil
}

// predicate returns what the attestation states about the session.
func (o *Opening) predicate(rows int64, chainHash string) predicate {
	return predicate{SessionID: Encode(o.SessionID), ActionCount: rows, ChainHash: chainHash, PreviousBundleHash: o.PreviousBundleHash}
}
