package aivs

import (
	"archive/tar"
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/aivs/aivstest"
	"github.com/plumbline/plumbline/aivs/pyjson"
)

// randomBundle draws the archive of a bundle of any generator, or of a forger, and often damages it.
func randomBundle(t testing.TB, r *rapid.T) []byte {
	if rapid.IntRange(0, 4).Draw(r, "forged") == 0 {
		return randomForgery(t, r)
	}
	var content []byte
	if rapid.Bool().Draw(r, "foreign") {
		content = randomForeign(t, r)
	} else {
		content = aivstest.Gunzip(t, build(t, randomInput(r), randomKey(r)).Bytes)
	}
	if rapid.IntRange(0, 3).Draw(r, "damaged") > 0 {
		content = damage(t, r, content)
	}
	return content
}

// randomInput draws a session with texts and times of every kind.
func randomInput(r *rapid.T) *Input {
	text := rapid.StringN(0, 12, 60)
	rows := make([]Row, rapid.IntRange(0, 6).Draw(r, "rows"))
	var traces bytes.Buffer
	for i := range rows {
		line := string(pyjson.AppendString(nil, text.Draw(r, "trace")))
		traces.WriteString(line + "\n")
		rows[i] = Row{
			ActionType:  "a" + text.Draw(r, "action"),
			ToolName:    "t" + text.Draw(r, "tool"),
			InputsJSON:  fmt.Sprintf(`{"trace_sha256":"%s"}`, hexSHA256([]byte(line))),
			OutputsJSON: text.Draw(r, "outputs"),
			CostCents:   rapid.Int64Range(0, maxCost).Draw(r, "cost"),
			Error:       text.Draw(r, "error"),
			Timestamp:   rapid.OneOf(rapid.Float64Range(0, 2e9), rapid.Float64Range(-1e300, 1e300)).Draw(r, "timestamp"),
		}
	}
	in := &Input{SessionID: "s" + text.Draw(r, "session"), AgentID: text.Draw(r, "agent"), ExportedAt: rapid.Int64Range(0, 4e9).Draw(r, "at"),
		Part: 1, LastPart: rapid.Bool().Draw(r, "last"), TraceCount: int64(len(rows)), Generator: text.Draw(r, "generator"),
		GeneratorURL: "https://example.org", Rows: SliceRows(rows)}
	if rapid.Bool().Draw(r, "with traces") {
		in.Members = append(in.Members, Member{Name: TracesMember, Data: traces.Bytes()})
	}
	if rapid.Bool().Draw(r, "with predecessor") {
		in.PreviousBundleSHA256 = hexSHA256(traces.Bytes())
	}
	return in
}

// randomForeign draws a bundle that another vendor's generator could write.
func randomForeign(t testing.TB, r *rapid.T) []byte {
	in, key, chain, log := randomInput(r), testKey("k"), NewChain(), ""
	end := rapid.SampledFrom([]string{"\n", "\r\n", "\n\n"}).Draw(r, "line end")
	further := rapid.SampledFrom([]string{"", `, "x": {"y": [1.50, null, "\u00e9"]}`, `, "inputs_digest": null`}).Draw(r, "further")
	link := func(row Row) {
		row.SessionID, row.ActionType, row.ToolName = Encode(in.SessionID), Encode(row.ActionType), Encode(row.ToolName)
		chain.Link(&row)
		text := row.AppendJSON(nil)
		log += string(text[:len(text)-1]) + further + "}" + end
	}
	for row, err := range in.Rows {
		if err != nil {
			t.Fatal(err)
		}
		link(*row)
	}
	if rapid.Bool().Draw(r, "sealed") {
		link(Row{ActionType: ActionSeal, ToolName: sealTool + chain.Content()})
	}
	manifest := fmt.Sprintf(`{"aivs_version": "1.0", "session_id": %s, "action_count": %d, "chain_hash": "%s"}`,
		pyjson.AppendString(nil, Encode(in.SessionID)), chain.Rows(), chain.Hash())
	files := map[string]string{logFile: log, manifestFile: manifest, signatureName: string(signatureFile(nil, chain.Hash())), keyFile: noKey}
	if rapid.Bool().Draw(r, "signed") {
		files[signatureName] = string(signatureFile(key, chain.Hash()))
		files[keyFile] = rapid.SampledFrom([]string{string(publicKeyFile(publicOf(key))), string(publicOf(key)), hex.EncodeToString(publicOf(key))}).Draw(r, "key")
		if rapid.Bool().Draw(r, "attested") {
			files[attestationFile] = envelopeOf(key, files, `{"_type": "`+statementType+`", "subject": [%s]}`, strings.TrimSpace)
		}
	} else if rapid.Bool().Draw(r, "with predecessor") {
		files[previousFile] = in.PreviousBundleSHA256
	}
	return tarOfFiles(t, membersOf(files)...)
}

func membersOf(files map[string]string) []Member {
	var members []Member
	for _, name := range slices.Sorted(maps.Keys(files)) {
		members = append(members, Member{Name: name, Data: []byte(files[name])})
	}
	return members
}

func randomKey(r *rapid.T) ed25519.PrivateKey {
	if rapid.IntRange(0, 4).Draw(r, "signed") == 0 {
		return nil
	}
	return testKey("k")
}

// damage changes one file of an archive in one place, removes a file, or adds one, and writes the
// archive again.
func damage(t testing.TB, r *rapid.T, content []byte) []byte {
	t.Helper()
	files := entries(t, content)
	victim := rapid.IntRange(0, len(files)-1).Draw(r, "file")
	switch kind := rapid.IntRange(0, 9).Draw(r, "kind"); kind {
	case 0:
		files = append(files[:victim:victim], files[victim+1:]...)
	case 1:
		files = append(files, Member{Name: "stray.txt", Data: []byte("x")})
	default:
		data := files[victim].Data
		at := rapid.IntRange(0, len(data)).Draw(r, "at")
		end := min(len(data), at+rapid.IntRange(0, 3).Draw(r, "remove"))
		insert := rapid.SampledFrom([]string{"", " ", "\n", "0", "\"", "a", ":", "#", "\\u0041", "\x00", "\xff", ",", "{}",
			"\r", "-", ".", "e1", "\\", "\\ud800", "null", "\u00e9", "[", "]", "\t", "F", "=", "1e400"}).Draw(r, "insert")
		files[victim].Data = append(append(bytes.Clone(data[:at]), insert...), data[end:]...)
	}
	return tarOfFiles(t, files...)
}

// entries returns an archive's files, with names below the root.
func entries(t testing.TB, content []byte) []Member {
	t.Helper()
	var files []Member
	archive := tar.NewReader(bytes.NewReader(content))
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, Member{Name: h.Name[len(root):], Data: data})
	}
}
